//! The server's own token.

use std::fs;

use axum::body::Body;
use axum::http::Request;
use plimsoll_server::access;
use secrecy::ExposeSecret as _;

use crate::app::{App, release};

async fn status_with(app: &App, token: &str) -> u16 {
    let body = Body::from(release("v1.0.0", 0).report().to_json());
    let request = Request::post("/api/v1/snapshots").header("authorization", format!("bearer {token}"));
    app.send(request.body(body).unwrap()).await.status.as_u16()
}

#[tokio::test]
async fn a_removed_token_file_means_a_new_token_and_the_end_of_the_old() {
    let app = App::new().await;
    let folder = tempfile::tempdir().unwrap();
    let (first, path) = access::ensure(&app.pool, folder.path()).await.unwrap();
    let (same, _) = access::ensure(&app.pool, folder.path()).await.unwrap();
    assert_eq!(first.expose_secret(), same.expose_secret());
    assert_eq!(status_with(&app, first.expose_secret()).await, 201);

    fs::remove_file(&path).unwrap();
    let (second, _) = access::ensure(&app.pool, folder.path()).await.unwrap();
    assert_eq!(status_with(&app, first.expose_secret()).await, 401);
    assert_eq!(status_with(&app, second.expose_secret()).await, 200);

    fs::write(&path, "short\n").unwrap();
    assert!(access::ensure(&app.pool, folder.path()).await.is_err());
}

#[tokio::test]
async fn servers_that_share_a_database_keep_their_tokens() {
    let app = App::new().await;
    let folder = tempfile::tempdir().unwrap();
    // The same path on two hosts.
    let path = folder.path().join("data");
    fs::create_dir(&path).unwrap();
    let (one, _) = access::ensure(&app.pool, &path).await.unwrap();
    fs::rename(&path, folder.path().join("elsewhere")).unwrap();
    fs::create_dir(&path).unwrap();
    let (two, _) = access::ensure(&app.pool, &path).await.unwrap();
    assert_eq!(status_with(&app, one.expose_secret()).await, 201);
    assert_eq!(status_with(&app, two.expose_secret()).await, 200);
    // A folder that moves stays the same server's.
    let moved = folder.path().join("elsewhere");
    fs::remove_file(moved.join("token")).unwrap();
    access::ensure(&app.pool, &moved).await.unwrap();
    assert_eq!(status_with(&app, one.expose_secret()).await, 401);
    assert_eq!(status_with(&app, two.expose_secret()).await, 200);
}

//! As which App a server acts.

use std::path::Path;

use plimsoll_server::config::Config;
use plimsoll_server::github::{AppFile, Client, Identity};
use plimsoll_server::serve::{ServeError, Server};
use plimsoll_server::state::{AppState, Settings};

use super::super::fake::{APP, FakeGitHub, KEY, SLUG};
use crate::app::database;
use crate::program::command;

#[tokio::test]
async fn the_state_holds_the_app_from_the_start_or_from_its_registration() {
    let github = FakeGitHub::start().await;
    let pool = sqlx::postgres::PgPoolOptions::new().connect_lazy("postgres://127.0.0.1:1/none").unwrap();
    let state = AppState::new(pool.clone(), github.settings());
    assert_eq!(state.app().expect("an App").about().await.unwrap().slug, SLUG);
    assert!(!state.set_app(github.client()), "it has one");
    let without = AppState::new(pool, Settings { github_site: github.site(), ..Settings::default() });
    assert!(without.app().is_none());
    assert!(without.set_app(github.client()));
    assert_eq!(without.app().expect("an App").app_id(), APP);
    assert_eq!(without.github_site().api_url, github.api_url());
    github.end();
}

fn registered(pem: &str) -> AppFile {
    AppFile {
        id: APP,
        slug: SLUG.to_owned(),
        client_id: "Iv1.1".to_owned(),
        client_secret: "client".into(),
        webhook_secret: "webhook".into(),
        pem: pem.into(),
    }
}

async fn config(data_dir: &Path) -> Config {
    Config { database_url: Some(database().await), ..Config::local(data_dir) }
}

#[tokio::test]
async fn a_server_starts_with_the_app_in_its_data_directory() {
    let folder = tempfile::tempdir().unwrap();
    registered(KEY).write(folder.path()).unwrap();
    let server = Server::start(config(folder.path()).await).await.unwrap();
    server.stop().await.unwrap();

    std::fs::write(folder.path().join("github-app.json"), "{").unwrap();
    let refused = Server::start(config(folder.path()).await).await.unwrap_err();
    assert!(matches!(refused, ServeError::AppFile(_)), "{refused}");
    // The configuration's goes first, and the file is not looked at.
    let github = FakeGitHub::start().await;
    let given = Config { github_app: Some(github.identity()), ..config(folder.path()).await };
    Server::start(given).await.unwrap().stop().await.unwrap();
}

#[tokio::test]
async fn a_key_that_is_none_is_found_at_the_start() {
    let folder = tempfile::tempdir().unwrap();
    registered("a key").write(folder.path()).unwrap();
    let refused = Server::start(config(folder.path()).await).await.unwrap_err().to_string();
    assert!(refused.contains("the App's private key is not an RSA key in PEM form"), "{refused}");
    let github = FakeGitHub::start().await;
    let identity = Identity { api_url: "not an address".to_owned(), ..github.identity() };
    let refused = Client::new(identity).unwrap_err().to_string();
    assert!(refused.contains("not an address"), "{refused}");
}

#[test]
fn part_of_an_app_is_refused_at_the_start_and_its_secret_is_not_told() {
    let folder = tempfile::tempdir().unwrap();
    let secret = "hush-hush-hush";
    for (name, value, missing) in [
        ("PLIMSOLL_GITHUB_APP_ID", "12", "the webhook secret is missing"),
        ("PLIMSOLL_GITHUB_WEBHOOK_SECRET", secret, "the id is missing"),
    ] {
        let output = command(folder.path()).env(name, value).output().unwrap();
        let told = String::from_utf8_lossy(&output.stderr);
        assert!(!output.status.success() && told.contains(missing), "{name}: {told}");
        assert!(told.contains("PLIMSOLL_GITHUB_PRIVATE_KEY_FILE") && !told.contains(secret), "{name}: {told}");
    }
}

//! What the server does for callers that it does not know, before it asks the database.

use std::net::SocketAddr;
use std::num::NonZeroU32;

use axum::body::Body;
use axum::extract::ConnectInfo;
use axum::http::Request;
use plimsoll_server::access::Allowance;
use plimsoll_server::router::router;
use plimsoll_server::state::{AppState, Settings};
use tower::ServiceExt as _;

use crate::app::App;

#[tokio::test]
async fn what_watches_is_answered_while_the_database_is_away() {
    let app = App::new().await;
    app.pool.close().await;
    let favicon = "/favicon.ico";
    for path in ["/healthz", "/api/v1/openapi.json", favicon] {
        for request in [app.read(path).await, app.get(path).await] {
            assert_eq!(request.status.as_u16(), 200, "{path}: {request:?}");
        }
    }
    assert_eq!(app.read("/methodology").await.status.as_u16(), 503, "pages show who is signed in");
}

/// How often the address may ask before it is told to wait, and what it is answered until then. The database is away:
/// nothing that asks it has another answer.
async fn answers(path: &str, header: (&str, &str)) -> (u16, usize) {
    let app = App::new().await;
    app.pool.close().await;
    let one = NonZeroU32::MIN;
    let allowance = Allowance { requests_per_second: one, failures_per_minute: one };
    let router = router(AppState::new(app.pool.clone(), Settings { allowance, ..Settings::default() }));
    let (mut first, mut taken) = (0, 0);
    for _ in 0..100 {
        let mut request = Request::get(path).header(header.0, header.1).body(Body::empty()).unwrap();
        request.extensions_mut().insert(ConnectInfo::<SocketAddr>("192.0.2.7:1".parse().unwrap()));
        match router.clone().oneshot(request).await.unwrap().status().as_u16() {
            429 => break,
            status => (first, taken) = (status, taken + 1),
        }
    }
    (first, taken)
}

#[tokio::test]
async fn an_address_is_counted_before_anything_is_looked_up() {
    let token = ("authorization", "Bearer a-guess-that-is-long-enough");
    for (path, header, status) in [
        ("/api/v1/projects", token, 503),
        ("/api/v1/projects", ("cookie", "plimsoll=made-up"), 503),
        ("/no/such/page/at/all", token, 404),
        ("/no/such/page/at/all", ("cookie", "plimsoll=made-up"), 404),
        ("/no/such/page/at/all", ("accept", "text/html"), 404),
    ] {
        let (answered, taken) = answers(path, header).await;
        assert_eq!(answered, status, "{path} with {header:?}");
        // Four at once, and one in each second that this takes.
        assert!((4..20).contains(&taken), "{path} with {header:?}: {taken}");
    }
}

//! The door: what is GitHub's is stored, once, whatever it says; what is not is turned away.

use std::net::SocketAddr;
use std::num::NonZeroU32;
use std::path::PathBuf;

use axum::body::Body;
use axum::extract::ConnectInfo;
use axum::http::Request;
use axum::http::request::Builder;
use futures_util::future::join_all;
use hmac::{Hmac, KeyInit as _, Mac as _};
use plimsoll_server::access::Allowance;
use plimsoll_server::github::webhook::MAX_BYTES;
use plimsoll_server::github::{Client, Identity, Site};
use plimsoll_server::state::Settings;
use plimsoll_server::store::Pool;
use serde_json::{Value, json};
use sha2::Sha256;

use super::events::table;
use super::fake::KEY;
use super::payloads::{APP, HEAD, NONE, ping, push};
use crate::app::{Answer, App};

pub(super) const SECRET: &str = "It's a Secret to Everybody";

/// A server that is a GitHub App, with GitHub at an address where nobody answers.
pub(super) fn settings(secret: &str) -> Settings {
    let identity = Identity {
        app_id: APP,
        private_key: KEY.into(),
        webhook_secret: secret.into(),
        api_url: "http://127.0.0.1:1".to_owned(),
        within: Identity::WITHIN,
    };
    Settings { github_app: Some(Client::new(identity).unwrap()), github_site: Site::default(), ..Settings::default() }
}

pub(super) async fn app() -> App {
    App::with(settings(SECRET)).await
}

pub(super) fn signature(secret: &str, body: &[u8]) -> String {
    let mut mac = Hmac::<Sha256>::new_from_slice(secret.as_bytes()).unwrap();
    mac.update(body);
    let digest = mac.finalize().into_bytes();
    format!("sha256={}", digest.iter().map(|byte| format!("{byte:02x}")).collect::<String>())
}

/// A delivery without its signature.
fn unsigned(delivery: &str, event: &str) -> Builder {
    Request::post("/github/webhook")
        .header("content-type", "application/json")
        .header("x-github-delivery", delivery)
        .header("x-github-event", event)
        .header("user-agent", "GitHub-Hookshot/0000000")
}

fn signed(delivery: &str, event: &str, body: impl Into<Vec<u8>>) -> Request<Body> {
    let body = body.into();
    unsigned(delivery, event)
        .header("x-hub-signature-256", signature(SECRET, &body))
        .header("content-length", body.len())
        .body(body.into())
        .unwrap()
}

pub(super) async fn deliver(app: &App, delivery: &str, event: &str, payload: &Value) -> Answer {
    app.send(signed(delivery, event, payload.to_string())).await
}

async fn stored(pool: &Pool) -> i64 {
    sqlx::query_scalar("select count(*) from github_inbox").fetch_one(pool).await.unwrap()
}

#[tokio::test(flavor = "multi_thread")]
async fn whatever_github_says_is_stored_once() {
    let app = app().await;
    let table = table();
    for (n, (name, event, payload, _)) in table.iter().enumerate() {
        let answer = deliver(&app, &format!("d-{n}"), event, payload).await;
        assert_eq!(answer.status.as_u16(), 202, "{name}: {answer:?}");
        assert_eq!(answer.json, json!({ "delivery": format!("d-{n}"), "new": true }), "{name}");
        let again = deliver(&app, &format!("d-{n}"), event, payload).await;
        assert_eq!((again.status.as_u16(), &again.json["new"]), (200, &json!(false)), "{name}");
    }
    for (n, body) in ["", "null", "[", "{}", "\u{0}", "{\"repository\": 5}"].iter().enumerate() {
        let answer = app.send(signed(&format!("odd-{n}"), "push", *body)).await;
        assert_eq!(answer.status.as_u16(), 202, "{body:?}: {answer:?}");
    }
    assert_eq!(stored(&app.pool).await, i64::try_from(table.len()).unwrap() + 6);
}

#[tokio::test]
async fn a_form_is_the_payload_in_it() {
    let app = app().await;
    let payload = push("refs/heads/main", NONE, HEAD, Some(HEAD)).to_string();
    let form = url::form_urlencoded::Serializer::new(String::new()).append_pair("payload", &payload).finish();
    let request = unsigned("d-1", "push")
        .header("x-hub-signature-256", signature(SECRET, form.as_bytes()))
        .body(Body::from(form))
        .unwrap();
    let (mut head, body) = request.into_parts();
    head.headers.insert("content-type", "application/x-www-form-urlencoded".parse().unwrap());
    let answer = app.send(Request::from_parts(head, body)).await;
    assert_eq!(answer.status.as_u16(), 202, "{answer:?}");
    let kept: Vec<u8> = sqlx::query_scalar("select body from github_inbox").fetch_one(&app.pool).await.unwrap();
    assert_eq!(String::from_utf8(kept).unwrap(), payload);
}

#[tokio::test]
async fn what_is_not_githubs_is_turned_away_and_uses_up_no_id() {
    let app = app().await;
    // GitHub's own example.
    let example = "sha256=757107ea0eb2509fc211221cce984b8a37570b6d7586c22c46f4379c8b043e17";
    let hello = "Hello, World!";
    let cases: [(&str, Builder, &str, u16); 7] = [
        ("no signature", unsigned("d-1", "push"), hello, 401),
        (
            "that by SHA-1 alone",
            unsigned("d-1", "push").header("x-hub-signature", "sha1=01dc10d0c83e72ed246219cdd91669667fe2ca59"),
            hello,
            401,
        ),
        ("another body", unsigned("d-1", "push").header("x-hub-signature-256", example), "Hello, World?", 401),
        ("another secret", unsigned("d-1", "push").header("x-hub-signature-256", signature("x", b"{}")), "{}", 401),
        ("no hexadecimal", unsigned("d-1", "push").header("x-hub-signature-256", "sha256=é"), hello, 401),
        ("a long id", unsigned(&"x".repeat(101), "push").header("x-hub-signature-256", example), hello, 400),
        ("a long event", unsigned("d-1", &"x".repeat(65)).header("x-hub-signature-256", example), hello, 400),
    ];
    for (what, request, body, status) in cases {
        let answer = app.send(request.body(body.into()).unwrap()).await;
        assert_eq!(answer.status.as_u16(), status, "{what}: {answer:?}");
        assert!(answer.json["detail"].as_str().unwrap().starts_with("X-"), "{what}: {answer:?}");
    }
    let nameless = Request::post("/github/webhook").header("x-hub-signature-256", example).body(hello.into()).unwrap();
    assert_eq!(app.send(nameless).await.status.as_u16(), 400);
    assert_eq!(stored(&app.pool).await, 0);

    let right = unsigned("d-1", "push").header("x-hub-signature-256", example).body(hello.into()).unwrap();
    assert_eq!(app.send(right).await.status.as_u16(), 202);
}

#[tokio::test]
async fn a_body_has_25_mebibytes_at_most() {
    let app = app().await;
    let of = |length: usize| {
        let mut body = br#"{"zen": ""#.to_vec();
        body.resize(length - 2, b'x');
        body.extend(br#""}"#);
        body
    };
    let chunked = |delivery: &str, body: Vec<u8>| {
        let (mut head, body) = signed(delivery, "ping", body).into_parts();
        head.headers.remove("content-length");
        Request::from_parts(head, body)
    };
    for (request, status) in [
        (signed("d-1", "ping", of(MAX_BYTES)), 202),
        (signed("d-2", "ping", of(MAX_BYTES + 1)), 413),
        (chunked("d-3", of(MAX_BYTES + 1)), 413),
        (chunked("d-4", of(300 << 10)), 202),
    ] {
        let answer = app.send(request).await;
        assert_eq!(answer.status.as_u16(), status, "{answer:?}");
    }
    assert_eq!(stored(&app.pool).await, 2);
}

#[tokio::test]
async fn a_server_that_is_no_app_says_so() {
    let answer = deliver(&App::new().await, "d-1", "ping", &ping(false)).await;
    assert_eq!(answer.status.as_u16(), 404);
    assert!(answer.json["detail"].as_str().unwrap().contains("PLIMSOLL_GITHUB_WEBHOOK_SECRET"), "{answer:?}");
}

/// Who has a proxy in front that is not believed has all callers behind one address.
#[tokio::test]
async fn deliveries_are_never_one_too_many() {
    let allowance = Allowance { requests_per_second: NonZeroU32::MIN, failures_per_minute: NonZeroU32::MIN };
    let app = App::with(Settings { allowance, ..settings(SECRET) }).await;
    for n in 0..50 {
        let mut right = signed(&format!("d-{n}"), "ping", "{}");
        let mut wrong = unsigned("d", "ping").header("x-hub-signature-256", "sha256=00").body("{}".into()).unwrap();
        for request in [&mut right, &mut wrong] {
            request.extensions_mut().insert(ConnectInfo::<SocketAddr>("192.0.2.7:1".parse().unwrap()));
        }
        assert_eq!(app.send(wrong).await.status.as_u16(), 401);
        assert_eq!(app.send(right).await.status.as_u16(), 202);
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn two_hundred_at_once_are_all_taken_and_a_duplicate_is_taken_once() {
    let app = app().await;
    let payload = push("refs/heads/main", NONE, HEAD, Some(HEAD));
    let ids: Vec<String> = (0..200).map(|n| format!("d-{}", n / 2)).collect();
    let answers = join_all(ids.iter().map(|id| deliver(&app, id, "push", &payload))).await;
    let count = |status: u16| answers.iter().filter(|answer| answer.status.as_u16() == status).count();
    assert_eq!((count(202), count(200)), (100, 100));
    assert_eq!(stored(&app.pool).await, 100);
}

#[tokio::test]
async fn one_that_was_given_up_is_taken_again() {
    let app = app().await;
    deliver(&app, "d-1", "push", &json!({ "n": 1 })).await;
    let sql = "update github_inbox set failed_at = now(), attempts = 9, body = '', last_error = 'x',
                   next_at = now() + interval '1 day', received_at = now() - interval '2 days'";
    sqlx::raw_sql(sql).execute(&app.pool).await.unwrap();
    assert_eq!(deliver(&app, "d-1", "push", &json!({ "n": 2 })).await.status.as_u16(), 202);
    let fresh = "select attempts = 0 and failed_at is null and last_error is null and next_at <= now()
                     and received_at > now() - interval '1 hour' and body = '{\"n\":2}'
                 from github_inbox";
    assert!(sqlx::query_scalar::<_, bool>(fresh).fetch_one(&app.pool).await.unwrap());
    assert_eq!(deliver(&app, "d-1", "push", &json!({ "n": 3 })).await.status.as_u16(), 200);
}

#[tokio::test]
async fn what_waits_is_bounded() {
    let app = app().await;
    let fill = "insert into github_inbox (delivery, event, body)
                select 'old-' || n, 'ping', '{}' from generate_series(1, 20000) n";
    sqlx::raw_sql(fill).execute(&app.pool).await.unwrap();
    let refused = deliver(&app, "d-1", "ping", &ping(false)).await;
    assert_eq!(refused.status.as_u16(), 503, "{refused:?}");
    assert!(refused.headers.contains_key("retry-after"));
    assert_eq!(deliver(&app, "old-1", "ping", &ping(false)).await.status.as_u16(), 200, "it is here already");
    assert_eq!(stored(&app.pool).await, 20_000);
    sqlx::raw_sql("update github_inbox set handled_at = now() where delivery = 'old-1'")
        .execute(&app.pool)
        .await
        .unwrap();
    // One that has not counted yet.
    let other = app.beside_with(settings(SECRET)).await;
    assert_eq!(deliver(&other, "d-1", "ping", &ping(false)).await.status.as_u16(), 202);
}

/// Deliveries as GitHub sent them, where somebody has some: `deliveries.json` names the files, their headers and the
/// secret.
#[tokio::test(flavor = "multi_thread")]
async fn recorded_deliveries_are_taken_and_read() {
    let beside = || PathBuf::from(concat!(env!("CARGO_MANIFEST_DIR"), "/../../shared/cases/webhooks"));
    let folder = std::env::var_os("PLIMSOLL_WEBHOOK_CASES").map_or_else(beside, PathBuf::from);
    let Ok(index) = std::fs::read(folder.join("deliveries.json")) else { return };
    let index: Value = serde_json::from_slice(&index).unwrap();
    let app = App::with(settings(index["secret"].as_str().unwrap())).await;
    let deliveries = index["deliveries"].as_array().unwrap();
    for recorded in deliveries {
        let text = |key: &str| recorded[key].as_str().unwrap_or_else(|| panic!("{key} in {recorded}"));
        let body = std::fs::read(folder.join(text("file"))).unwrap();
        let request = |signature: &str| {
            Request::post("/github/webhook")
                .header("content-type", text("content_type"))
                .header("x-github-delivery", text("delivery"))
                .header("x-github-event", text("event"))
                .header("x-hub-signature-256", signature)
                .body(Body::from(body.clone()))
                .unwrap()
        };
        assert_eq!(app.send(request("sha256=00")).await.status.as_u16(), 401, "{recorded}");
        let answer = app.send(request(text("x-hub-signature-256"))).await;
        assert_eq!(answer.status.as_u16(), 202, "{recorded}: {answer:?}");
    }
    assert_eq!(stored(&app.pool).await, i64::try_from(deliveries.len()).unwrap());
    let rows: Vec<(String, String, Vec<u8>)> =
        sqlx::query_as("select delivery, event, body from github_inbox").fetch_all(&app.pool).await.unwrap();
    for (delivery, event, body) in rows {
        let read = plimsoll_server::github::events::read(&event, &body);
        assert!(read.is_ok(), "{event} {delivery}: {read:?}");
    }
}

//! What is attacked: the real router on a real Postgres, asked without sockets.

use axum::Router;
use axum::body::{Body, to_bytes};
use axum::http::{HeaderMap, Request, StatusCode};
use plimsoll_domain::synthetic::Synthetic;
use plimsoll_server::access::{Grant, Route, Scope, hash};
use plimsoll_server::postgres::scratch::Scratch;
use plimsoll_server::router;
use plimsoll_server::state::{AppState, Settings};
use plimsoll_server::store::{Pool, database, tokens};
use secrecy::SecretString;
use serde_json::Value;
use tokio::sync::OnceCell;
use tower::ServiceExt as _;

static SCRATCH: OnceCell<Scratch> = OnceCell::const_new();
/// May do everything.
pub(crate) const TOKEN: &str = "an-administrator-of-these-tests";

pub(crate) struct Target {
    router: Router,
    pub(crate) table: Vec<Route>,
    pub(crate) pool: Pool,
}

pub(crate) struct Seen {
    pub(crate) status: StatusCode,
    pub(crate) headers: HeaderMap,
    pub(crate) body: Vec<u8>,
}

pub(crate) async fn database_url() -> SecretString {
    let scratch = SCRATCH.get_or_init(async || Scratch::start().await.expect("a scratch Postgres")).await;
    scratch.database().await.expect("a database")
}

/// Lets [`TOKEN`] in.
pub(crate) async fn admit(pool: &Pool) {
    let grant = Grant { scope: Scope::Admin, project: None };
    let new = tokens::New { name: "administrator", grant: &grant, created_by: "a test", lasts: None };
    tokens::insert(pool, &hash(TOKEN), &new).await.expect("the database").expect("a free name");
}

impl Target {
    pub(crate) async fn new() -> Self {
        let pool = database::open(&database_url().await, 4).await.expect("connections");
        admit(&pool).await;
        let state = AppState::new(pool.clone(), Settings::default());
        Self { router: router::router(state.clone()), table: router::table(&state), pool }
    }

    pub(crate) async fn send(&self, request: Request<Body>) -> Seen {
        let (parts, body) = self.router.clone().oneshot(request).await.expect("the router does not fail").into_parts();
        // Live events never end by themselves.
        let kind = parts.headers.get("content-type").and_then(|kind| kind.to_str().ok()).unwrap_or_default();
        let body = match kind.starts_with("text/event-stream") {
            true => Vec::new(),
            false => to_bytes(body, 256 << 20).await.expect("a whole body").to_vec(),
        };
        Seen { status: parts.status, headers: parts.headers, body }
    }

    /// As an administrator with a browser.
    pub(crate) async fn get(&self, path: &str) -> Seen {
        let request =
            Request::get(path).header("authorization", format!("Bearer {TOKEN}")).header("accept", "text/html");
        self.send(request.body(Body::empty()).expect("a request")).await
    }

    /// As an administrator.
    pub(crate) async fn change(&self, method: &str, path: &str, body: impl Into<Body>) -> Seen {
        let request = Request::builder().method(method).uri(path).header("authorization", format!("Bearer {TOKEN}"));
        let request = request.header("content-type", "application/json").body(body.into());
        self.send(request.expect("a request")).await
    }

    pub(crate) async fn upload(&self, report: impl Into<Body>) -> Seen {
        self.change("POST", "/api/v1/snapshots", report).await
    }

    pub(crate) async fn snapshots(&self) -> i64 {
        sqlx::query_scalar("select count(*) from snapshots").fetch_one(&self.pool).await.expect("the table is there")
    }
}

impl Seen {
    pub(crate) fn text(&self) -> String {
        String::from_utf8_lossy(&self.body).into_owned()
    }

    pub(crate) fn json(&self) -> Value {
        serde_json::from_slice(&self.body).unwrap_or_default()
    }

    pub(crate) fn detail(&self) -> String {
        self.json()["detail"].as_str().unwrap_or_default().to_owned()
    }

    pub(crate) fn is_page(&self) -> bool {
        self.headers.get("content-type").is_some_and(|kind| kind.as_bytes().starts_with(b"text/html"))
    }
}

/// A short run; `n` tells them apart.
pub(crate) fn small(n: u64) -> Synthetic {
    let started_at = 1_764_000_000 + i64::try_from(n).expect("a small number") * 60;
    Synthetic {
        tag: Some(format!("v1.0.{n}")),
        commit: Some(format!("{:040x}", 0x00c0_ffee + n)),
        branch: Some("main".to_owned()),
        staircase: vec![5, 10],
        step_s: 5,
        stability_s: 10,
        started_at: jiff::Timestamp::from_second(started_at).expect("an instant"),
        seed: n + 1,
        ..Synthetic::default()
    }
}

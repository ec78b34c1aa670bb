//! An actor: a server with a database of its own, and what a client says to it.

use axum::Router;
use axum::body::{Body, to_bytes};
use axum::http::{Request, StatusCode};
use plimsoll_domain::report::Report;
use plimsoll_domain::synthetic::Synthetic;
use plimsoll_server::access::{self, Grant, Scope, Tokens};
use plimsoll_server::postgres::scratch::Scratch;
use plimsoll_server::router::router;
use plimsoll_server::state::{AppState, Settings};
use plimsoll_server::store::projects::Visibility;
use plimsoll_server::store::tokens::New;
use plimsoll_server::store::{self, Pool};
use secrecy::{ExposeSecret as _, SecretString};
use serde::Serialize;
use serde_json::Value;
use tokio::sync::OnceCell;
use tower::ServiceExt as _;

/// One cluster for all tests of this process; it ends with the process.
static SCRATCH: OnceCell<Scratch> = OnceCell::const_new();

pub(crate) const TOKEN: &str = "a-token-for-these-tests-only";

pub(crate) struct App {
    router: Router,
    pub(crate) state: AppState,
    /// A token that may also set policies.
    admin: SecretString,
    pub(crate) pool: Pool,
    url: SecretString,
}

/// The address of a migrated, empty database.
pub(crate) async fn database() -> SecretString {
    let scratch = SCRATCH.get_or_init(async || Scratch::start().await.expect("a scratch Postgres")).await;
    scratch.database().await.expect("a database")
}

/// An answer. `json` is null when the body is none.
#[derive(Debug)]
pub(crate) struct Answer {
    pub(crate) status: StatusCode,
    pub(crate) kind: String,
    pub(crate) headers: axum::http::HeaderMap,
    pub(crate) json: Value,
}

/// The head of an answer, and its body if it is JSON.
#[derive(Debug)]
pub(crate) struct Probed {
    pub(crate) status: StatusCode,
    pub(crate) headers: axum::http::HeaderMap,
    pub(crate) json: Value,
}

impl App {
    pub(crate) async fn new() -> Self {
        Self::with(Settings::default()).await
    }

    /// With these settings, and the usual token.
    pub(crate) async fn with(settings: Settings) -> Self {
        Self::on(database().await, settings).await
    }

    /// Another server on the same database.
    pub(crate) async fn beside(&self) -> Self {
        self.beside_with(Settings::default()).await
    }

    pub(crate) async fn beside_with(&self, settings: Settings) -> Self {
        Self::on(self.url.clone(), settings).await
    }

    async fn on(url: SecretString, settings: Settings) -> Self {
        let pool = store::database::open(&url, 4).await.expect("connections");
        let tokens = Tokens::new(&[SecretString::from(TOKEN)]);
        let folder = tempfile::tempdir().expect("a temporary directory");
        let (admin, _) = access::ensure(&pool, folder.path()).await.expect("the server's own token");
        let state = AppState::new(pool.clone(), Settings { tokens, ..settings });
        Self { router: router(state.clone()), state, admin, pool, url }
    }

    pub(crate) async fn send(&self, request: Request<Body>) -> Answer {
        let response = self.router.clone().oneshot(request).await.expect("the router does not fail");
        let (parts, body) = response.into_parts();
        let bytes = to_bytes(body, 256 << 20).await.expect("a whole body");
        let kind = parts.headers.get("content-type").map(|kind| kind.to_str().unwrap().to_owned());
        Answer {
            status: parts.status,
            kind: kind.unwrap_or_default(),
            headers: parts.headers,
            json: serde_json::from_slice(&bytes).unwrap_or_default(),
        }
    }

    /// A new token, for one project or all.
    pub(crate) async fn token(&self, scope: Scope, project: Option<&str>) -> String {
        let token = access::random().unwrap();
        let project = project.map(|slug| slug.parse().unwrap());
        if let Some(project) = &project {
            store::projects::ensure(&self.pool, project, Visibility::Public).await.unwrap();
        }
        let grant = Grant { scope, project };
        let new = New { name: &token[..8], grant: &grant, created_by: "a test", lasts: None };
        store::tokens::insert(&self.pool, &access::hash(&token), &new).await.unwrap().unwrap();
        token
    }

    /// A request as JSON, signed by an administrator's token.
    pub(crate) async fn ask(&self, method: &str, path: &str, body: &impl Serialize) -> Answer {
        self.ask_by(self.admin.expose_secret(), method, path, body).await
    }

    pub(crate) async fn ask_by(&self, token: &str, method: &str, path: &str, body: &impl Serialize) -> Answer {
        let request = Request::builder().method(method).uri(path);
        self.send(signed_by(token, request).body(serde_json::to_string(body).unwrap().into()).unwrap()).await
    }

    /// A request whose answer's body is not read.
    pub(crate) async fn open(&self, request: Request<Body>) -> axum::response::Response {
        self.router.clone().oneshot(request).await.expect("the router does not fail")
    }

    /// How a request is answered: of a success only the head, since it may be a stream.
    pub(crate) async fn probe(&self, request: Request<Body>) -> Probed {
        let (parts, body) = self.router.clone().oneshot(request).await.expect("the router does not fail").into_parts();
        let kind = parts.headers.get("content-type").and_then(|kind| kind.to_str().ok()).unwrap_or_default();
        let whole = kind.contains("json");
        let bytes = if whole { to_bytes(body, 64 << 20).await.expect("a whole body") } else { Default::default() };
        let json = serde_json::from_slice(&bytes).unwrap_or_default();
        Probed { status: parts.status, headers: parts.headers, json }
    }

    pub(crate) async fn get(&self, path: &str) -> Answer {
        self.send(Request::get(path).body(Body::empty()).unwrap()).await
    }

    pub(crate) async fn put(&self, path: &str, body: impl Into<Body>) -> Answer {
        self.send(signed_by(self.admin.expose_secret(), Request::put(path)).body(body.into()).unwrap()).await
    }

    /// As an administrator.
    pub(crate) async fn read(&self, path: &str) -> Answer {
        self.send(signed_by(self.admin.expose_secret(), Request::get(path)).body(Body::empty()).unwrap()).await
    }

    /// As an administrator, with a document as body.
    pub(crate) async fn change(&self, method: &str, path: &str, body: Value) -> Answer {
        let request = signed_by(self.admin.expose_secret(), Request::builder().method(method).uri(path));
        self.send(request.body(body.to_string().into()).unwrap()).await
    }

    /// Uploads a report that must be new, as an administrator: whatever it is of, it gates.
    pub(crate) async fn upload(&self, report: &Report) -> Answer {
        let request = signed_by(self.admin.expose_secret(), Request::post("/api/v1/snapshots"));
        let answer = self.send(request.body(report.to_json().into()).unwrap()).await;
        assert_eq!(answer.status, StatusCode::CREATED, "{answer:?}");
        answer
    }

    pub(crate) async fn post(&self, body: impl Into<Body>) -> Answer {
        self.send(signed(Request::post("/api/v1/snapshots")).body(body.into()).unwrap()).await
    }

    /// Waits until no transaction is open: one that was dropped keeps its locks until its connection has rolled back.
    pub(crate) async fn settled(&self) {
        let open = "select count(*) from pg_stat_activity
                    where datname = current_database() and pid <> pg_backend_pid() and xact_start is not null";
        let wait = async {
            while sqlx::query_scalar::<_, i64>(open).fetch_one(&self.pool).await.unwrap() > 0 {
                tokio::task::yield_now().await;
            }
        };
        tokio::time::timeout(std::time::Duration::from_secs(30), wait).await.expect("a transaction stays open");
    }

    /// Rows of every table that an upload writes to.
    pub(crate) async fn rows(&self) -> [i64; 5] {
        let mut counts = [0; 5];
        for (count, table) in counts.iter_mut().zip(["projects", "testbeds", "snapshots", "reports", "verdicts"]) {
            let sql = sqlx::AssertSqlSafe(format!("select count(*) from {table}"));
            *count = sqlx::query_scalar(sql).fetch_one(&self.pool).await.unwrap();
        }
        counts
    }
}

pub(crate) fn signed(request: axum::http::request::Builder) -> axum::http::request::Builder {
    signed_by(TOKEN, request)
}

fn signed_by(token: &str, request: axum::http::request::Builder) -> axum::http::request::Builder {
    request.header("authorization", format!("Bearer {token}")).header("content-type", "application/json")
}

/// A short run of a release. `day` places it in time.
pub(crate) fn release(tag: &str, day: i64) -> Synthetic {
    let started_at = jiff::Timestamp::from_second(1_764_000_000 + day * 86_400).unwrap();
    Synthetic { tag: Some(tag.to_owned()), started_at, seed: u64::try_from(day).unwrap() + 1, ..Synthetic::default() }
}

/// The same, with a plan that leaves the load of the stability phase to the server.
pub(crate) fn unpinned(run: &Synthetic) -> Report {
    let mut report = run.report();
    report.plan.phases.stability.workers = None;
    report.plan_digest = report.plan.digest();
    report
}

//! A server with a database of its own, and what a browser sees of it.

use axum::Router;
use axum::body::{Body, to_bytes};
use axum::http::{HeaderMap, Request, StatusCode};
use plimsoll_domain::report::Report;
use plimsoll_domain::synthetic::Synthetic;
use plimsoll_server::access::Tokens;
use plimsoll_server::postgres::scratch::Scratch;
use plimsoll_server::router::router;
use plimsoll_server::state::{AppState, Settings};
use plimsoll_server::store::{Pool, database};
use scraper::{Html, Selector};
use secrecy::SecretString;
use tokio::sync::OnceCell;
use tower::ServiceExt as _;

static SCRATCH: OnceCell<Scratch> = OnceCell::const_new();
const TOKEN: &str = "a-token-for-these-tests-only";

pub(crate) struct Site {
    router: Router,
    pub(crate) pool: Pool,
}

impl Site {
    pub(crate) async fn new(reports: &[Report]) -> Self {
        Self::with(Settings::default(), reports).await
    }

    pub(crate) async fn with(settings: Settings, reports: &[Report]) -> Self {
        let scratch = SCRATCH.get_or_init(async || Scratch::start().await.expect("a scratch Postgres")).await;
        let pool = database::open(&scratch.database().await.expect("a database"), 4).await.expect("connections");
        let tokens = Tokens::new(&[SecretString::from(TOKEN)]);
        let state = AppState::new(pool.clone(), Settings { tokens, ..settings });
        let site = Self { router: router(state), pool };
        for report in reports {
            let upload = Request::post("/api/v1/snapshots")
                .header("authorization", format!("Bearer {TOKEN}"))
                .header("content-type", "application/json")
                .body(Body::from(report.to_json()));
            assert_eq!(site.send(upload.unwrap()).await.status, StatusCode::CREATED);
        }
        site
    }

    /// What a browser gets that follows no redirect.
    pub(crate) async fn get(&self, path: &str) -> Seen {
        self.send(Request::get(path).header("accept", "text/html,*/*").body(Body::empty()).unwrap()).await
    }

    /// A page that must be there.
    pub(crate) async fn page(&self, path: &str) -> Seen {
        let seen = self.get(path).await;
        assert_eq!(seen.status, StatusCode::OK, "{path}: {}", seen.body);
        seen
    }

    pub(crate) async fn send(&self, request: Request<Body>) -> Seen {
        let (parts, body) = self.router.clone().oneshot(request).await.expect("the router does not fail").into_parts();
        let bytes = to_bytes(body, 64 << 20).await.expect("a whole body");
        Seen { status: parts.status, headers: parts.headers, body: String::from_utf8_lossy(&bytes).into_owned() }
    }
}

pub(crate) struct Seen {
    pub(crate) status: StatusCode,
    pub(crate) headers: HeaderMap,
    pub(crate) body: String,
}

impl Seen {
    /// The texts of all elements that match, white space joined.
    pub(crate) fn all(&self, selector: &str) -> Vec<String> {
        let html = Html::parse_document(&self.body);
        let selector = css(selector);
        let texts = html.select(&selector).map(|element| element.text().collect::<String>());
        texts.map(|text| text.split_whitespace().collect::<Vec<_>>().join(" ")).collect()
    }

    pub(crate) fn one(&self, selector: &str) -> String {
        let mut all = self.all(selector);
        assert_eq!(all.len(), 1, "{selector}: {all:?}");
        all.remove(0)
    }

    pub(crate) fn attributes(&self, selector: &str, name: &str) -> Vec<String> {
        let html = Html::parse_document(&self.body);
        html.select(&css(selector)).filter_map(|element| element.attr(name)).map(ToOwned::to_owned).collect()
    }

    /// Rows of the table in the scroller with this name; cells as texts.
    pub(crate) fn table(&self, name: &str) -> Vec<Vec<String>> {
        let html = Html::parse_document(&self.body);
        let rows = css(&format!("[aria-label=\"{name}\"] tbody tr"));
        let cells = css("th, td");
        html.select(&rows)
            .map(|row| row.select(&cells).map(|cell| cell.text().collect::<String>().trim().to_owned()).collect())
            .collect()
    }

    pub(crate) fn header(&self, name: &str) -> &str {
        self.headers.get(name).and_then(|value| value.to_str().ok()).unwrap_or_default()
    }
}

fn css(selector: &str) -> Selector {
    Selector::parse(selector).expect("a selector")
}

/// A short run of a release on a pool of this size; `day` places it in time.
pub(crate) fn release(tag: &str, day: i64, pool: u32) -> Synthetic {
    Synthetic {
        tag: Some(tag.to_owned()),
        commit: Some(format!("{:07x}0000", 0x00c0_ffee + day)),
        started_at: jiff::Timestamp::from_second(1_764_000_000 + day * 86_400).unwrap(),
        pool,
        step_s: 10,
        seed: u64::try_from(day).unwrap() + 1,
        ..Synthetic::default()
    }
}

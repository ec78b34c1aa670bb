//! The HTTP around the model: every request is kept, may meet with a fault, and names who sends it.

use std::collections::HashMap;
use std::time::Duration;

use axum::Router;
use axum::body::{Body, Bytes, to_bytes};
use axum::extract::{Request, State};
use axum::http::HeaderMap;
use axum::response::{IntoResponse as _, Response};
use futures_util::{StreamExt as _, stream};
use serde_json::Value;
use url::Url;

use super::auth::{self, Caller};
use super::faults::{Fault, fits};
use super::route::{Incoming, Reply, route};
use super::{FakeGitHub, Inner};

/// The path under which the API is.
pub(super) const BASE: &str = "/api/v3";

#[derive(Debug, Clone)]
pub(crate) struct Recorded {
    pub(crate) method: String,
    /// Below the API's own path, without the query.
    pub(crate) path: String,
    pub(crate) query: HashMap<String, String>,
    pub(crate) body: Value,
    /// What was answered; `None` while nothing was.
    pub(crate) status: Option<u16>,
    /// The installation whose token it came with.
    pub(crate) installation: Option<i64>,
    /// Whether the model was changed by it, or shown.
    pub(crate) done: bool,
    pub(super) read: bool,
    pub(super) unknown: bool,
}

impl Recorded {
    pub(crate) fn fits(&self, on: &str) -> bool {
        fits(on, &self.method, &self.path)
    }

    /// Into a repository.
    pub(crate) fn is_write(&self) -> bool {
        self.method != "GET" && !self.path.starts_with("/app")
    }

    pub(super) fn take(&mut self) -> String {
        self.read = true;
        self.line()
    }

    /// In short, without what differs from run to run.
    pub(super) fn line(&self) -> String {
        let rest = match self.path.strip_prefix("/repos/") {
            Some(path) => path.splitn(3, '/').nth(2).unwrap_or_default(),
            None => &self.path,
        };
        let text = |name: &str| self.body[name].as_str().map(|text| format!(" {text}")).unwrap_or_default();
        let what = format!("{}{}{}", text("name"), text("status"), text("conclusion"));
        let status = self.status.map_or("no answer".to_owned(), |status| status.to_string());
        format!("{} {rest}{what} → {status}", self.method)
    }
}

pub(super) fn router(fake: FakeGitHub) -> Router {
    Router::new().fallback(handle).with_state(fake)
}

/// Longer than anything that is sent.
const MAX_BODY: usize = 4 << 20;

async fn handle(State(fake): State<FakeGitHub>, request: Request) -> Response {
    let (parts, body) = request.into_parts();
    let body = to_bytes(body, MAX_BODY).await.unwrap_or_default();
    let uri = parts.uri.to_string();
    let Some(path) = parts.uri.path().strip_prefix(BASE) else { return Reply::missing().into_response(None) };
    let query =
        Url::parse(&format!("http://fake{uri}")).expect("a request's address").query_pairs().into_owned().collect();
    let recorded = Recorded {
        method: parts.method.to_string(),
        path: path.to_owned(),
        query,
        body: serde_json::from_slice(&body).unwrap_or_default(),
        status: None,
        installation: None,
        done: false,
        read: false,
        unknown: false,
    };
    let (number, fault) = {
        let mut inner = fake.inner();
        let fault = inner.faults.take(&recorded.method, &recorded.path);
        inner.requests.push(recorded);
        (inner.requests.len() - 1, fault)
    };
    match fault {
        Some(Fault::Silent) => return std::future::pending().await,
        Some(Fault::Late(time)) => return late(time, fake, number, parts.headers, uri).await,
        Some(Fault::Endless) => return endless(),
        _ => {}
    }
    let reply = answer(&mut fake.inner(), number, fault, &parts.headers);
    reply.into_response(Some((&fake.api_url(), &uri)))
}

/// It is done whether or not somebody still waits.
async fn late(time: Duration, fake: FakeGitHub, number: usize, headers: HeaderMap, uri: String) -> Response {
    let done = tokio::spawn(async move {
        tokio::time::sleep(time).await;
        let reply = answer(&mut fake.inner(), number, None, &headers);
        reply.into_response(Some((&fake.api_url(), &uri)))
    });
    done.await.expect("the answer does not fail")
}

fn answer(inner: &mut Inner, number: usize, fault: Option<Fault>, headers: &HeaderMap) -> Reply {
    let recorded = &mut inner.requests[number];
    let mut reply = match fault.and_then(Fault::reply) {
        Some(reply) if fault != Some(Fault::Lost) => reply,
        _ => {
            let reply = right(&mut inner.model, recorded, headers);
            recorded.done = reply.status < 300;
            reply
        }
    };
    if fault == Some(Fault::Lost) {
        reply = Fault::Lost.reply().expect("it has one");
    }
    recorded.status = Some(reply.status);
    reply
}

fn right(model: &mut super::Model, recorded: &mut Recorded, headers: &HeaderMap) -> Reply {
    let header = |name: &str| headers.get(name).and_then(|value| value.to_str().ok());
    if header("user-agent").is_none() {
        return Reply::text(403, "Request forbidden by administrative rules.");
    }
    // Whoever has the code needs nothing else.
    if let ("POST", ["", "app-manifests", code, "conversions"]) =
        (recorded.method.as_str(), recorded.path.split('/').collect::<Vec<_>>().as_slice())
    {
        return auth::convert(model, code).unwrap_or_else(|refused| refused);
    }
    let caller = match auth::caller(model, header("authorization")) {
        Ok(caller) => caller,
        Err(reply) => return reply,
    };
    if let Caller::Installation(id) = caller {
        recorded.installation = Some(id);
        if let Some(reply) = model.limit(recorded.method != "GET") {
            return reply;
        }
    }
    let segments = recorded.path.split('/').skip(1).map(decoded).collect();
    let incoming =
        Incoming { method: &recorded.method, segments, query: &recorded.query, body: &recorded.body, caller };
    let reply = route(model, &incoming).unwrap_or_else(|refused| refused);
    recorded.unknown = reply.unknown;
    reply
}

fn decoded(segment: &str) -> String {
    let form = segment.replace('+', "%2B");
    url::form_urlencoded::parse(format!("x={form}").as_bytes())
        .next()
        .map(|(_, value)| value.into_owned())
        .unwrap_or_default()
}

fn endless() -> Response {
    let chunk = Bytes::from(vec![b' '; 64 << 10]);
    let chunks = stream::repeat(chunk).map(Ok::<_, std::io::Error>);
    Body::from_stream(chunks).into_response()
}

//! The service over HTTP: `POST /predict`, `GET /health`, `GET /metrics`.

use std::net::SocketAddr;
use std::sync::Arc;

use axum::Router;
use axum::body::Bytes;
use axum::extract::{DefaultBodyLimit, State};
use axum::http::StatusCode;
use axum::response::{IntoResponse, Json, Response};
use axum::routing::{get, post};
use axum::serve::ListenerExt as _;

use super::answer::Question;
use super::machine::{Failed, Full, Machine};
use super::parameters::Parameters;

/// A started service; dropping it stops it.
#[derive(Debug)]
pub struct Running {
    address: SocketAddr,
    serving: tokio::task::JoinHandle<std::io::Result<()>>,
}

const MAX_BODY: usize = 64 << 10;

/// Starts a service on `listen` (port 0 takes a free one) on the current runtime.
#[expect(clippy::disallowed_methods, reason = "a service of its own, without anything to guard")]
pub async fn start(parameters: Parameters, listen: SocketAddr) -> std::io::Result<Running> {
    let machine = Arc::new(Machine::start(parameters)?);
    let router = Router::new()
        .route("/predict", post(predict))
        .route("/health", get(async || Json(serde_json::json!({ "status": "ok" }))))
        .route("/metrics", get(metrics))
        .layer(DefaultBodyLimit::max(MAX_BODY))
        .with_state(machine);
    let listener = tokio::net::TcpListener::bind(listen).await?;
    let address = listener.local_addr()?;
    // An answer is one small segment; without this it may wait for the acknowledgement of the one before it.
    let listener = listener.tap_io(|stream| drop(stream.set_nodelay(true)));
    let serving = tokio::spawn(async move { axum::serve(listener, router).await });
    Ok(Running { address, serving })
}

impl Running {
    pub fn address(&self) -> SocketAddr {
        self.address
    }

    /// Waits until serving fails.
    pub async fn wait(mut self) -> std::io::Result<()> {
        (&mut self.serving).await.map_err(std::io::Error::other)?
    }
}

impl Drop for Running {
    fn drop(&mut self) {
        self.serving.abort();
    }
}

async fn predict(State(machine): State<Arc<Machine>>, body: Bytes) -> Response {
    let question: Question = match serde_json::from_slice(&body) {
        Ok(question) => question,
        Err(e) => return error(StatusCode::BAD_REQUEST, &format!("expected {{\"text\": \"…\"}}: {e}")),
    };
    let outcome = match machine.submit(question.text) {
        Ok(outcome) => outcome,
        Err(Full) => return error(StatusCode::SERVICE_UNAVAILABLE, "the queue is full"),
    };
    match outcome.await {
        Ok(Ok(answer)) => Json(answer).into_response(),
        Ok(Err(Failed)) => error(StatusCode::INTERNAL_SERVER_ERROR, "the model failed"),
        Err(_) => error(StatusCode::SERVICE_UNAVAILABLE, "the service is stopping"),
    }
}

async fn metrics(State(machine): State<Arc<Machine>>) -> Response {
    ([("content-type", "text/plain; version=0.0.4")], machine.metrics()).into_response()
}

fn error(status: StatusCode, message: &str) -> Response {
    (status, Json(serde_json::json!({ "error": message }))).into_response()
}

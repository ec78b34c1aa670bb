//! Makes every error response a problem, whoever wrote it: handlers, extractors, limits, timeouts, panics.

use std::any::Any;

use axum::body::{Body, to_bytes};
use axum::extract::Request;
use axum::http::{HeaderMap, header};
use axum::middleware::Next;
use axum::response::{IntoResponse, Response};

use super::{AppError, Problem};

/// A plain message of a layer or an extractor that is longer than this is dropped.
const MAX_MESSAGE: usize = 4_096;

/// Middleware: logs failures of ours once and adds the request id to what is answered.
pub async fn problems(request: Request, next: Next) -> Response {
    let request_id = request.headers().get("x-request-id").and_then(|id| id.to_str().ok()).map(ToOwned::to_owned);
    let (method, path) = (request.method().clone(), request.uri().path().to_owned());
    let mut response = next.run(request).await;
    if !response.status().is_client_error() && !response.status().is_server_error() {
        return response;
    }
    let problem = response.extensions_mut().remove::<Problem>();
    let request_id = request_id.as_deref();
    if let Some(cause) = problem.as_ref().and_then(|problem| problem.cause.as_deref()) {
        tracing::error!(request_id, %method, path, cause, "request failed");
    }
    match problem {
        // A page of its own.
        _ if is(response.headers(), "text/html") => response,
        Some(problem) => {
            let request_id = request_id.filter(|_| problem.status.is_server_error());
            problem.render(request_id)
        }
        None => adopt(response, request_id).await,
    }
}

/// A panic in a handler is an error of ours.
pub fn panicked(panic: Box<dyn Any + Send>) -> Response {
    let text = panic.downcast_ref::<&str>().map(|text| (*text).to_owned());
    let text = text.or_else(|| panic.downcast_ref::<String>().cloned()).unwrap_or_default();
    AppError::internal(format!("panic: {text}")).into_response()
}

/// A problem with the status and the plain message of `response`; its other headers (`Allow`, …) stay.
async fn adopt(response: Response, request_id: Option<&str>) -> Response {
    let (parts, body) = response.into_parts();
    let message = if is(&parts.headers, "text/plain") { text(body).await } else { String::new() };
    let detail = if message.is_empty() {
        parts.status.canonical_reason().unwrap_or("the request failed").to_lowercase()
    } else {
        message
    };
    let problem = Problem { status: parts.status, detail, retry_after: None, cause: None, received: None };
    let mut answer = problem.render(request_id.filter(|_| parts.status.is_server_error()));
    for (name, value) in &parts.headers {
        if ![header::CONTENT_TYPE, header::CONTENT_LENGTH].contains(name) {
            answer.headers_mut().insert(name, value.clone());
        }
    }
    answer
}

async fn text(body: Body) -> String {
    let bytes = to_bytes(body, MAX_MESSAGE).await.unwrap_or_default();
    String::from_utf8_lossy(&bytes).into_owned()
}

fn is(headers: &HeaderMap, kind: &str) -> bool {
    headers.get(header::CONTENT_TYPE).and_then(|value| value.to_str().ok()).is_some_and(|value| value.starts_with(kind))
}

#[cfg(test)]
mod tests {
    use axum::Router;
    use axum::http::StatusCode;
    use axum::routing::get;
    use tower::ServiceExt as _;
    use tower_http::catch_panic::CatchPanicLayer;

    use super::*;

    #[expect(clippy::disallowed_methods, reason = "a router of the test's own")]
    async fn answer(path: &str) -> (StatusCode, serde_json::Value) {
        let app = Router::new()
            .route("/panic", get(async || -> &str { panic!("a secret") }))
            .route("/text", get(async || (StatusCode::CONFLICT, "in plain words")))
            .route("/page", get(async || (StatusCode::NOT_FOUND, axum::response::Html("<p>a page"))))
            .layer(CatchPanicLayer::custom(panicked))
            .layer(axum::middleware::from_fn(problems));
        let request = Request::get(path).header("x-request-id", "7").body(Body::empty()).unwrap();
        let response = app.oneshot(request).await.unwrap();
        let status = response.status();
        (status, serde_json::from_str(&text(response.into_body()).await).unwrap_or_default())
    }

    #[tokio::test]
    async fn every_failure_is_a_problem_and_none_tells_more_than_it_may() {
        let (status, panic) = answer("/panic").await;
        assert_eq!((status, &panic["request_id"]), (StatusCode::INTERNAL_SERVER_ERROR, &"7".into()));
        assert!(!panic.to_string().contains("secret"), "{panic}");
        let (status, plain) = answer("/text").await;
        assert_eq!((status, &plain["detail"]), (StatusCode::CONFLICT, &"in plain words".into()));
        assert_eq!(answer("/page").await, (StatusCode::NOT_FOUND, serde_json::Value::Null));
        assert_eq!(answer("/nothing").await.1["status"], 404);
    }
}

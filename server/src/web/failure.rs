//! Failures as pages: what went wrong, where to go from here, and the request id that the log has too.

use askama::Template;
use axum::extract::Request;
use axum::http::{HeaderMap, StatusCode, header};
use axum::middleware::Next;
use axum::response::{IntoResponse, Response};

use super::view::{Here, Look, Page, render};
use crate::error::{AppError, Problem};

#[derive(Template)]
#[template(path = "failure.html")]
struct Failure {
    page: Page,
    status: u16,
    heading: &'static str,
    detail: String,
    request_id: Option<String>,
    missing: bool,
}

/// The fallback of the whole server.
pub(super) async fn not_found(request: Request) -> AppError {
    AppError::not_found(format!("page {}", request.uri().path()))
}

/// Middleware: turns error responses into pages for those who asked for one. The problem stays attached, so that its
/// cause is logged further out.
pub(super) async fn pages(request: Request, next: Next) -> Response {
    let wanted = wants_page(request.headers()) && !request.uri().path().starts_with("/api/");
    let request_id = request.headers().get("x-request-id").and_then(|id| id.to_str().ok()).map(ToOwned::to_owned);
    let response = next.run(request).await;
    let status = response.status();
    if !wanted || !(status.is_client_error() || status.is_server_error()) {
        return response;
    }
    let problem = response.extensions().get::<Problem>().cloned();
    let detail = problem.as_ref().map_or_else(
        || status.canonical_reason().unwrap_or("The request failed").to_owned(),
        |problem| problem.detail.clone(),
    );
    let mut page = failure(status, detail, request_id).into_response();
    *page.status_mut() = status;
    for (name, value) in response.headers() {
        if ![header::CONTENT_TYPE, header::CONTENT_LENGTH].contains(name) {
            page.headers_mut().insert(name, value.clone());
        }
    }
    if let Some(problem) = problem {
        page.extensions_mut().insert(problem);
    }
    page
}

fn failure(status: StatusCode, detail: String, request_id: Option<String>) -> Response {
    let missing = status == StatusCode::NOT_FOUND;
    let heading = match status {
        StatusCode::NOT_FOUND => "Nothing is here",
        StatusCode::SERVICE_UNAVAILABLE => "Not available at the moment",
        status if status.is_client_error() => "This request cannot be answered",
        _ => "Something broke on our side",
    };
    let request_id = request_id.filter(|_| status.is_server_error());
    let mut detail = detail;
    if let Some(first) = detail.get_mut(..1) {
        first.make_ascii_uppercase();
    }
    let page = Page::new(heading, Look::Void, None, Here::Elsewhere);
    render(&Failure { page, status: status.as_u16(), heading, detail, request_id, missing })
}

/// Browsers name HTML; other clients get the problem.
fn wants_page(headers: &HeaderMap) -> bool {
    let accepts = headers.get(header::ACCEPT).and_then(|accept| accept.to_str().ok());
    accepts.is_some_and(|accept| accept.contains("text/html"))
}

//! Failures as pages: what went wrong, where to go from here, and the request id that the log has too.

use askama::Template;
use axum::extract::{Request, State};
use axum::http::{HeaderMap, StatusCode, header};
use axum::middleware::Next;
use axum::response::{IntoResponse, Response};

use super::frame::address;
use super::view::{Frame, Here, Look, Page, render, sentence};
use crate::access::{self, Caller, Who};
use crate::error::{AppError, Problem};
use crate::state::AppState;

#[derive(Template)]
#[template(path = "failure.html")]
struct Failure {
    page: Page,
    status: u16,
    heading: &'static str,
    detail: String,
    request_id: Option<String>,
    missing: bool,
    /// Nobody is signed in, and whoever is may see more.
    anonymous: bool,
}

/// The fallback of the whole server, before which no guard stands: it counts requests itself.
pub(super) async fn not_found(State(state): State<AppState>, request: Request) -> Response {
    let missing = AppError::not_found(format!("page {}", request.uri().path()));
    match access::caller(&state, request.extensions(), request.headers()).await {
        Ok(caller) => {
            let mut response = state.limits().request(&caller).err().unwrap_or(missing).into_response();
            response.extensions_mut().insert(caller);
            response
        }
        Err(refusal) if refusal.status() == StatusCode::TOO_MANY_REQUESTS => refusal.into_response(),
        // Whoever it is, and while the database is away: there is no such page.
        Err(_) => missing.into_response(),
    }
}

/// Middleware: turns error responses into pages for those who asked for one. The problem stays attached, so that its
/// cause is logged further out.
pub(super) async fn pages(request: Request, next: Next) -> Response {
    let wanted = wants_page(request.headers()) && !request.uri().path().starts_with("/api/");
    let request_id = request.headers().get("x-request-id").and_then(|id| id.to_str().ok()).map(ToOwned::to_owned);
    let address = address(request.uri()).to_owned();
    let response = next.run(request).await;
    let status = response.status();
    // A form that says itself what is wrong stays as it is.
    if !wanted || !(status.is_client_error() || status.is_server_error()) || is_page(&response) {
        return response;
    }
    let caller = response.extensions().get::<Caller>().cloned().unwrap_or_else(Caller::anonymous);
    let problem = response.extensions().get::<Problem>().cloned();
    let detail = problem.as_ref().map_or_else(
        || status.canonical_reason().unwrap_or("The request failed").to_owned(),
        |problem| problem.detail.clone(),
    );
    let mut page = failure(status, detail, request_id, Frame::new(caller, address));
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

fn failure(status: StatusCode, detail: String, request_id: Option<String>, frame: Frame) -> Response {
    let missing = status == StatusCode::NOT_FOUND;
    let anonymous = frame.caller.who == Who::Anonymous && (missing || status == StatusCode::UNAUTHORIZED);
    let heading = match status {
        StatusCode::NOT_FOUND => "Nothing is here",
        StatusCode::UNAUTHORIZED => "Sign in to see this",
        StatusCode::FORBIDDEN => "You may not do this",
        StatusCode::SERVICE_UNAVAILABLE => "Not available at the moment",
        status if status.is_client_error() => "This request cannot be answered",
        _ => "Something broke on our side",
    };
    let detail = match status {
        // The problem speaks to programs.
        StatusCode::UNAUTHORIZED => "It is shown to those who have a token or are members.".to_owned(),
        _ => sentence(&detail),
    };
    let request_id = request_id.filter(|_| status.is_server_error());
    let page = Page::new(heading, Look::Void, frame, Here::Elsewhere);
    render(&Failure { page, status: status.as_u16(), heading, detail, request_id, missing, anonymous })
}

fn is_page(response: &Response) -> bool {
    let kind = response.headers().get(header::CONTENT_TYPE).and_then(|kind| kind.to_str().ok());
    kind.is_some_and(|kind| kind.starts_with("text/html"))
}

/// Browsers name HTML; other clients get the problem.
fn wants_page(headers: &HeaderMap) -> bool {
    let accepts = headers.get(header::ACCEPT).and_then(|accept| accept.to_str().ok());
    accepts.is_some_and(|accept| accept.contains("text/html"))
}

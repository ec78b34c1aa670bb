//! Counts each request by its route.

use std::sync::Arc;
use std::time::Instant;

use axum::extract::{MatchedPath, Request, State};
use axum::http::{Method, StatusCode};
use axum::middleware::Next;
use axum::response::Response;

use crate::state::AppState;

/// Middleware.
pub async fn count(State(state): State<AppState>, request: Request, next: Next) -> Response {
    let route: Arc<str> = request.extensions().get::<MatchedPath>().map_or("none", MatchedPath::as_str).into();
    let method = method(request.method());
    let since = Instant::now();
    let response = next.run(request).await;
    state.metrics().request(method, route, class(response.status()), since.elapsed());
    response
}

fn method(method: &Method) -> &'static str {
    match *method {
        Method::GET => "GET",
        Method::HEAD => "HEAD",
        Method::POST => "POST",
        Method::PUT => "PUT",
        Method::PATCH => "PATCH",
        Method::DELETE => "DELETE",
        _ => "other",
    }
}

fn class(status: StatusCode) -> &'static str {
    match status.as_u16() {
        100..=199 => "1xx",
        200..=299 => "2xx",
        300..=399 => "3xx",
        400..=499 => "4xx",
        _ => "5xx",
    }
}

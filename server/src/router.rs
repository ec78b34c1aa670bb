//! All routes, and what holds for every request: a request id, limits in time and size, one form of error.

use std::future::ready;
use std::time::Duration;

use axum::Router;
use axum::http::{HeaderName, StatusCode};
use axum::middleware::{from_fn, map_response};
use axum::response::Response;
use tower_http::catch_panic::CatchPanicLayer;
use tower_http::compression::CompressionLayer;
use tower_http::request_id::{MakeRequestUuid, PropagateRequestIdLayer, SetRequestIdLayer};
use tower_http::timeout::TimeoutLayer;
use tower_http::trace::TraceLayer;

use crate::access::Route;
use crate::state::AppState;
use crate::{api, error, web};

/// A request that takes longer is given up.
const WITHIN: Duration = Duration::from_secs(60);

/// Every route with what it needs.
pub fn table(state: &AppState) -> Vec<Route> {
    api::routes(state).merge(web::routes(state)).table().to_vec()
}

/// The whole application.
pub fn router(state: AppState) -> Router {
    let request_id = HeaderName::from_static("x-request-id");
    let over_tls = state.public_url().is_some_and(|url| url.starts_with("https://"));
    let api = api::routes(&state).router();
    let pages = web::framed(web::routes(&state).router());
    api.merge(pages)
        .with_state(state)
        // From the inside out.
        .layer(CatchPanicLayer::custom(error::panicked))
        .layer(TimeoutLayer::with_status_code(StatusCode::SERVICE_UNAVAILABLE, WITHIN))
        .layer(from_fn(error::problems))
        .layer(map_response(move |mut response: Response| {
            web::headers::secure(response.headers_mut(), over_tls);
            ready(response)
        }))
        .layer(CompressionLayer::new())
        .layer(PropagateRequestIdLayer::new(request_id.clone()))
        // Failures are logged where they are handled, in `error`.
        .layer(TraceLayer::new_for_http().on_failure(()))
        .layer(SetRequestIdLayer::new(request_id, MakeRequestUuid))
}

//! All routes, and what holds for every request: a request id, limits in time and size, one form of error.

use std::future::ready;
use std::time::Duration;

use axum::Router;
use axum::extract::{MatchedPath, Request};
use axum::http::{HeaderName, StatusCode, Uri};
use axum::middleware::{from_fn, from_fn_with_state, map_response};
use axum::response::Response;
use tower_http::CompressionLevel;
use tower_http::catch_panic::CatchPanicLayer;
use tower_http::compression::CompressionLayer;
use tower_http::request_id::{MakeRequestUuid, PropagateRequestIdLayer, SetRequestIdLayer};
use tower_http::timeout::TimeoutLayer;
use tower_http::trace::TraceLayer;

use crate::access::{Route, request_id};
use crate::error::AppError;
use crate::state::AppState;
use crate::{api, error, metrics, web};

/// A request that takes longer is given up.
const WITHIN: Duration = Duration::from_secs(60);

/// Every route with what it needs.
pub fn table(state: &AppState) -> Vec<Route> {
    api::routes(state).merge(web::routes(state)).table().to_vec()
}

/// The whole application.
pub fn router(state: AppState) -> Router {
    let request_id = HeaderName::from_static("x-request-id");
    let over_tls = state.over_tls();
    let api = api::routes(&state).router();
    let pages = web::framed(web::routes(&state).router());
    api.merge(pages)
        .with_state(state.clone())
        // From the inside out.
        .layer(CatchPanicLayer::custom(error::panicked))
        .layer(TimeoutLayer::with_status_code(StatusCode::SERVICE_UNAVAILABLE, WITHIN))
        .layer(from_fn(error::problems))
        .layer(map_response(move |mut response: Response| {
            web::headers::secure(response.headers_mut(), over_tls);
            ready(response)
        }))
        .layer(from_fn_with_state(state, metrics::count_requests))
        // The default takes longer than the page itself.
        .layer(CompressionLayer::new().quality(CompressionLevel::Fastest))
        .layer(PropagateRequestIdLayer::new(request_id.clone()))
        // Failures are logged where they are handled, in `error`.
        .layer(TraceLayer::new_for_http().make_span_with(span).on_failure(()))
        .layer(SetRequestIdLayer::new(request_id, MakeRequestUuid))
}

/// What is answered while the database was not reached yet: that this process lives, and everything else with 503.
pub(crate) fn waiting(over_tls: bool) -> Router {
    let request_id = HeaderName::from_static("x-request-id");
    let answer = async |uri: Uri| match uri.path() {
        "/healthz" => Ok("ok\n"),
        _ => Err(AppError::new(
            StatusCode::SERVICE_UNAVAILABLE,
            "the server waits for its database, which does not answer; try again",
        )),
    };
    Router::new()
        .fallback(answer)
        .layer(from_fn(error::problems))
        .layer(map_response(move |mut response: Response| {
            web::headers::secure(response.headers_mut(), over_tls);
            ready(response)
        }))
        .layer(PropagateRequestIdLayer::new(request_id.clone()))
        .layer(SetRequestIdLayer::new(request_id, MakeRequestUuid))
}

/// What each line of the log about a request carries. The guard fills in who calls and for which run. Neither headers nor
/// the query are logged: there may be secrets in them.
fn span(request: &Request) -> tracing::Span {
    let id = request_id(request.headers());
    let route = request.extensions().get::<MatchedPath>().map(MatchedPath::as_str);
    let (method, empty) = (request.method().as_str(), tracing::field::Empty);
    tracing::info_span!("request", request_id = id, method, route, caller = empty, run = empty)
}

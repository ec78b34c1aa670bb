//! The pages. They read like a person asks: the answer first, then the reason, the evidence, and the raw data.
//!
//! Handlers load, views compute what a template shows from domain values, templates lay it out. Nothing here computes
//! a statistic or writes SQL, and no page needs a script.

mod assets;
mod compare;
mod failure;
mod headers;
mod history;
mod markup;
mod methodology;
mod projects;
mod snapshot;
mod view;

use axum::Router;
use axum::middleware::from_fn;
use axum::routing::get;
use tower_http::catch_panic::CatchPanicLayer;

use crate::error;
use crate::state::AppState;

/// All pages, the assets, and a fallback that answers unknown paths with a page (for a browser) or a problem.
pub fn routes() -> Router<AppState> {
    Router::new()
        .route("/", get(projects::page))
        .route("/methodology", get(methodology::page))
        .route("/assets/{name}", get(assets::serve))
        .route("/favicon.ico", get(assets::favicon))
        .route("/{project}", get(history::redirect))
        .route("/{project}/history", get(history::page))
        .route("/{project}/snapshots/{run}", get(snapshot::page))
        .route("/{project}/compare", get(compare::redirect))
        .route("/{project}/compare/{pair}", get(compare::page))
        .fallback(failure::not_found)
        .layer(CatchPanicLayer::custom(error::panicked))
        .layer(from_fn(failure::pages))
        .layer(from_fn(headers::secure))
}

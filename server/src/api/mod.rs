//! The JSON API. Reading is open; writing needs a token, and a policy one that may more than upload.

mod body;
mod health;
mod policy;
mod read;
mod upload;

use axum::Router;
use axum::routing::{get, post};

use crate::error::AppError;
use crate::state::AppState;

pub fn routes() -> Router<AppState> {
    let v1 = Router::new()
        .route("/snapshots", post(upload::post))
        .route("/snapshots/{run_id}", get(read::snapshot))
        .route("/snapshots/{run_id}/report", get(read::report))
        .route("/snapshots/{run_id}/comparison", get(read::stored_comparison))
        .route("/comparisons", get(read::comparison))
        .route("/projects", get(read::projects))
        .route("/projects/{project}", get(read::project))
        .route("/projects/{project}/snapshots", get(read::history))
        .route("/projects/{project}/pinned-load", get(read::pinned_load))
        .route("/projects/{project}/policy", get(policy::get).put(policy::put))
        .fallback(async || AppError::not_found("such API endpoint"));
    Router::new().nest("/api/v1", v1).route("/healthz", get(health::alive)).route("/readyz", get(health::ready))
}

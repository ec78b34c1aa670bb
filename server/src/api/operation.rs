//! For those who run the server: figures for Prometheus, and the doctor.

use axum::Json;
use axum::extract::State;
use axum::http::header;
use axum::response::IntoResponse;
use serde::Serialize;

use crate::doctor::{self, Check};
use crate::state::AppState;

#[derive(Debug, Serialize, utoipa::ToSchema)]
pub(super) struct Examined {
    /// Whether nothing failed.
    sound: bool,
    checks: Vec<Check>,
}

/// Figures in Prometheus' text format.
#[utoipa::path(get, path = "/metrics", responses((status = 200, body = String, content_type = "text/plain")))]
pub(super) async fn metrics(State(state): State<AppState>) -> impl IntoResponse {
    let page = state.metrics().page(state.pool()).await;
    ([(header::CONTENT_TYPE, "text/plain; version=0.0.4; charset=utf-8")], page)
}

/// What `plimsoll-server doctor` says.
#[utoipa::path(get, path = "/api/v1/doctor", responses((status = 200, body = Examined)))]
pub(super) async fn doctor(State(state): State<AppState>) -> Json<Examined> {
    let checks = doctor::examine(Ok(state.pool()), &state.patient()).await;
    Json(Examined { sound: doctor::is_sound(&checks), checks })
}

//! Whether this process lives, and whether it can do its work.

use axum::extract::State;
use axum::http::StatusCode;

use crate::error::{AppError, Result};
use crate::state::AppState;
use crate::store;

/// 200 while the process serves.
#[utoipa::path(get, path = "/healthz", responses((status = 200, body = String, content_type = "text/plain")))]
pub(super) async fn alive() -> &'static str {
    "ok\n"
}

/// The database answers and has the schema this program needs; else 503.
#[utoipa::path(get, path = "/readyz", responses((status = 200, body = String, content_type = "text/plain")))]
pub(super) async fn ready(State(state): State<AppState>) -> Result<&'static str> {
    let unready = |why| AppError::new(StatusCode::SERVICE_UNAVAILABLE, why);
    match store::migrate::is_current(state.pool()).await {
        Ok(true) => Ok("ready\n"),
        Ok(false) => Err(unready("the database's schema is not up to date")),
        Err(error) => {
            tracing::warn!(%error, "not ready");
            Err(unready("the database does not answer"))
        }
    }
}

//! Whether this process lives, and whether it can do its work.

use std::time::Duration;

use axum::extract::State;
use axum::http::StatusCode;

use crate::error::{AppError, Result};
use crate::state::AppState;
use crate::store;

/// Whoever asks has little patience.
const ANSWERS_WITHIN: Duration = Duration::from_secs(2);

/// 200 while the process serves.
#[utoipa::path(get, path = "/healthz", responses((status = 200, body = String, content_type = "text/plain")))]
pub(super) async fn alive() -> &'static str {
    "ok\n"
}

/// The database answers and has the schema this program needs; else 503.
#[utoipa::path(get, path = "/readyz", responses((status = 200, body = String, content_type = "text/plain")))]
pub(super) async fn ready(State(state): State<AppState>) -> Result<&'static str> {
    let unready = |why| AppError::new(StatusCode::SERVICE_UNAVAILABLE, why);
    match tokio::time::timeout(ANSWERS_WITHIN, store::migrate::is_current(state.pool())).await {
        Ok(Ok(true)) => Ok("ready\n"),
        Ok(Ok(false)) => Err(unready("the database's schema is not up to date")),
        Err(_) => Err(unready("the database does not answer")),
        Ok(Err(error)) => {
            tracing::warn!(%error, "not ready");
            Err(unready("the database does not answer"))
        }
    }
}

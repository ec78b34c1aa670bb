//! What has ended is removed: sessions, and counts of callers that have not been here for a while.

use crate::state::AppState;
use crate::store::{self, StoreError};

/// Nothing is left to do at once.
pub async fn run_once(state: &AppState) -> Result<usize, StoreError> {
    state.limits().tidy();
    let ended = store::sessions::delete_expired(state.pool()).await?;
    tracing::debug!(ended, "sessions removed");
    Ok(0)
}

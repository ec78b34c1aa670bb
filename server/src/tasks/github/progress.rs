//! How what is being measured goes on: told about every minute, as long as what may be sent allows it.

use std::time::Duration;

use crate::state::AppState;
use crate::store::StoreError;
use crate::store::github::standing;

const EVERY: Duration = Duration::from_secs(45);
/// Half of what is sent at most: verdicts go first.
const A_MINUTE: i32 = 35;
const AN_HOUR: i32 = 225;

/// Also looks at what waits for something that brings no event of its own, such as another run's baseline.
pub async fn run_once(state: &AppState) -> Result<usize, StoreError> {
    if state.app().is_none() {
        return Ok(0);
    }
    let told = standing::refresh(state.pool(), EVERY, A_MINUTE, AN_HOUR).await?;
    Ok(usize::try_from(told).unwrap_or(usize::MAX))
}

//! Checks that the merge queue waits for no longer: without a verdict in time they fail.

use super::facts::Facts;
use crate::state::AppState;
use crate::store::github::checks::{self, Conclusion, Settled};
use crate::store::github::{standing, writes};
use crate::store::{self, StoreError, jobs};

/// Looked at in one call.
const MOST: i64 = 50;

/// How many were concluded. One that has its verdict keeps it.
pub async fn run_once(state: &AppState) -> Result<usize, StoreError> {
    let mut concluded = 0;
    for id in standing::overdue(state.pool(), MOST).await? {
        let Some(check) = checks::get(state.pool(), id).await? else { continue };
        let head = format!("head {} {}", check.project, check.head_sha);
        if !Facts::of(state, check).await?.is_open() {
            continue;
        }
        let mut transaction = store::begin(state.pool()).await?;
        jobs::hold(&mut *transaction, &head).await?;
        checks::settle(&mut *transaction, id, &late()).await?;
        writes::check(&mut *transaction, id).await?;
        store::commit(transaction).await?;
        tracing::warn!(check = %id, "no verdict in time for the merge queue");
        concluded += 1;
    }
    Ok(concluded)
}

fn late() -> Settled {
    Settled {
        conclusion: Conclusion::TimedOut,
        title: "No verdict in time for the merge queue".to_owned(),
        summary: "The run was not judged before the merge queue's deadline, so the merge is blocked. \
                  Add the pull request to the queue again once a runner is free."
            .to_owned(),
    }
}

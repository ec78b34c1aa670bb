//! Jobs whose runner was lost, or that nobody takes.

use std::time::Duration;

use plimsoll_domain::job::State;

use super::Result;
use super::jobs::{LEASE, lost, step};
use crate::state::AppState;
use crate::store::{self, jobs};

/// A lost runner is noticed at most this long after its lease is over.
pub const INTERVAL: Duration = Duration::from_secs(10);
/// After a start, or when the database was away, runners had no one to tell that they live: they get this long.
const GRACE: Duration = Duration::from_secs(20);
/// Jobs of one pass; the rest waits for the next.
const MAX_AT_ONCE: usize = 1_000;

/// The first pass waits for this, and each one after a failure.
pub async fn grace(state: &AppState) {
    let mut draining = state.draining();
    let _ = tokio::time::timeout(GRACE, draining.wait_for(|draining| *draining)).await;
}

/// [`INTERVAL`], from a half of it to all, so that replicas that start together do not stay together.
pub fn pause() -> Duration {
    let mut byte = [0];
    let _ = getrandom::fill(&mut byte);
    INTERVAL.mul_f64(0.5 + f64::from(byte[0]) / 510.0)
}

/// Takes jobs back from lost runners, and ends those that no runner took in time. Returns how many.
pub async fn run_once(state: &AppState) -> Result<usize> {
    for done in 0..MAX_AT_ONCE {
        let mut transaction = store::begin(state.pool()).await?;
        let Some(run_id) = jobs::overdue(&mut *transaction).await? else { return Ok(done) };
        // Its row is locked since it was found.
        let Some(job) = jobs::lock(&mut transaction, run_id).await? else { continue };
        if job.run.state == State::Queued {
            step(&mut transaction, &job, State::Expired, Some("no runner took it")).await?;
        } else {
            lost(&mut transaction, &job).await?;
        }
        store::commit(transaction).await?;
    }
    Ok(MAX_AT_ONCE)
}

const _: () = assert!(INTERVAL.as_secs() < LEASE.as_secs() && GRACE.as_secs() < LEASE.as_secs());

//! Runs that nobody waits for any more, since something newer is to be judged or nothing at all.

use plimsoll_domain::ids::ProjectSlug;
use plimsoll_domain::job::State;

use crate::store::github::checks::{self, Conclusion, Kind, Settled};
use crate::store::github::writes;
use crate::store::{Transaction, jobs};
use crate::tasks::Result;
use crate::tasks::jobs::stop;

use super::start::Head;

/// Cancels what a head takes the place of. Of a branch a run that goes on is let be: where pushes come faster than runs
/// end there would never be a baseline.
pub(super) async fn cancel(transaction: &mut Transaction, head: &Head<'_>, reason: &str) -> Result<()> {
    let Some(key) = head.key else { return Ok(()) };
    let reach = if head.kind == Kind::Branch { Reach::Waiting } else { Reach::All };
    cancel_all(transaction, &head.link.project, key, reach, reason).await.map(drop)
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Reach {
    /// Those that no runner has.
    Waiting,
    All,
}

/// Cancels the project's runs with this key, and tells their checks so; says how many there were.
pub(super) async fn cancel_all(
    transaction: &mut Transaction,
    project: &ProjectSlug,
    key: &str,
    reach: Reach,
    reason: &str,
) -> Result<usize> {
    jobs::hold(&mut **transaction, &format!("key {project} {key}")).await?;
    let settled = Settled {
        conclusion: Conclusion::Cancelled,
        title: format!("Cancelled: {reason}"),
        summary: format!("This commit was not measured to the end: {reason}."),
    };
    let mut cancelled = 0;
    for run_id in jobs::superseded(&mut **transaction, project, key).await? {
        let Some(job) = jobs::lock(transaction, run_id).await? else { continue };
        if job.run.state.is_final() || (reach == Reach::Waiting && job.run.state != State::Queued) {
            continue;
        }
        stop(transaction, &job, reason).await?;
        cancelled += 1;
        for check in checks::of_run(&mut **transaction, run_id).await? {
            if check.settled.is_none() {
                checks::settle(&mut **transaction, check.id, &settled).await?;
                writes::check(&mut **transaction, check.id).await?;
            }
        }
    }
    Ok(cancelled)
}

//! One step of a job from state to state, with everything that must be written along with it.

use plimsoll_domain::ids::RunId;
use plimsoll_domain::job::{Live, Run, State};

use super::told::{tell, tell_end};
use super::{LEASE, TAKE_WITHIN, get};
use crate::store::jobs::{self, Attempt, Change, Job};
use crate::store::{Transaction, live};
use crate::tasks::{Error, Result};

/// Moves a locked job.
pub(in crate::tasks) async fn step(
    transaction: &mut Transaction,
    job: &Job,
    to: State,
    reason: Option<&str>,
) -> Result<()> {
    go(transaction, job, to, reason, Attempt::Counts).await
}

/// Back to the queue, as if the runner had never taken it.
pub(super) async fn release(transaction: &mut Transaction, job: &Job, reason: &str) -> Result<()> {
    go(transaction, job, State::Queued, Some(reason), Attempt::Uncounted).await
}

/// Takes back a locked job whose runner asks for another. One that never said a word of the job has not got it: the
/// answer was lost on the way, and the attempt does not count. A runner that ends each time before its first word looks
/// the same: past a few times it counts.
pub(super) async fn given_back(transaction: &mut Transaction, job: &Job) -> Result<()> {
    let run = &job.run;
    let is_new = run.state == State::Leased && !job.heard && job.undelivered < MAX_UNDELIVERED;
    if !is_new || job.cancel.is_some() || run.verdict.is_some() {
        return lost(transaction, job).await;
    }
    let name = run.runner.as_deref().unwrap_or("its runner");
    let reason = format!("{name} asked again without having heard of it");
    tracing::warn!(run_id = %run.run_id, undelivered = job.undelivered + 1, "{reason}");
    go(transaction, job, State::Queued, Some(&reason), Attempt::Undelivered).await
}

/// So often in all.
const MAX_UNDELIVERED: u32 = 10;

/// Moves a locked job whose runner is gone.
pub(in crate::tasks) async fn lost(transaction: &mut Transaction, job: &Job) -> Result<()> {
    if job.run.verdict.is_some() {
        // Its report came by an earlier version of the server, which knows no jobs.
        return measured(transaction, job).await;
    }
    if let Some(reason) = &job.cancel {
        return step(transaction, job, State::Cancelled, Some(reason)).await;
    }
    let name = job.run.runner.as_deref().unwrap_or("a runner that is not known any more");
    // Without its name, which is not for everybody who reads the reason.
    let heard = job.lease_expires_at.map(|end| format!(": it was last heard at {:.0}", end - LEASE));
    let reason = format!("runner lost{}", heard.unwrap_or_default());
    let to = if job.run.attempt < job.run.max_attempts { State::Queued } else { State::Expired };
    tracing::warn!(run_id = %job.run.run_id, attempt = job.run.attempt, runner = name, next = to.name(), "{reason}");
    step(transaction, job, to, Some(&reason)).await
}

/// The snapshot of a locked job is stored and judged. What was measured counts, whoever had the lease by then: a job
/// that was given up is done after all. One that was cancelled or failed stays so, with a verdict.
pub(in crate::tasks) async fn measured(transaction: &mut Transaction, job: &Job) -> Result<()> {
    if job.run.state.may_become(State::Done) {
        step(transaction, job, State::Done, None).await?;
        let run = get(transaction, job.run.run_id).await?.run;
        tell_verdict(transaction, &run).await
    } else {
        judged(transaction, job.run.run_id).await
    }
}

/// A run that is over has a new verdict.
pub(in crate::tasks) async fn judged(transaction: &mut Transaction, run_id: RunId) -> Result<()> {
    let run = get(transaction, run_id).await?.run;
    tell_verdict(transaction, &run).await?;
    tell_end(transaction, &run).await
}

/// Tells who follows the run.
async fn tell_verdict(transaction: &mut Transaction, run: &Run) -> Result<()> {
    let (Some(verdict), Some(sentence)) = (run.verdict, run.sentence.clone()) else {
        return Err(Error::internal("a run was judged, and was not"));
    };
    let event = Live::Verdict { verdict, sentence, path: run.path.clone() };
    Ok(live::append(&mut **transaction, run.run_id, &[event]).await?)
}

async fn go(transaction: &mut Transaction, job: &Job, to: State, reason: Option<&str>, attempt: Attempt) -> Result<()> {
    let run = &job.run;
    if !run.state.may_become(to) {
        let (from, to) = (run.state.name(), to.name());
        return Err(Error::internal(format!("run {} cannot become {to}: it is {from}", run.run_id)));
    }
    let change = Change { to, reason, attempt, take_within: TAKE_WITHIN };
    jobs::change(&mut **transaction, run.run_id, change).await?;
    let state = Live::State {
        state: to,
        attempt: run.attempt - u32::from(attempt != Attempt::Counts),
        runner: run.runner.clone(),
        reason: reason.map(ToOwned::to_owned),
    };
    live::append(&mut **transaction, run.run_id, &[state]).await?;
    match to {
        State::Queued => live::wake_runners(&mut **transaction, &run.project).await?,
        State::Running if run.started_at.is_none() => {
            let started = get(transaction, run.run_id).await?.run;
            tell(transaction, &started, "run.started").await?;
        }
        State::Done | State::Failed | State::Cancelled | State::Expired => {
            let over = get(transaction, run.run_id).await?.run;
            tell_end(transaction, &over).await?;
        }
        State::Leased | State::Running => {}
    }
    Ok(())
}

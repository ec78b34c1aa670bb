//! Runs that somebody asks for: asked, cancelled, and carried out by runners. `docs/architecture.md` draws the states.

mod lease;
mod step;
mod told;

use std::time::Duration;

use plimsoll_domain::ids::{ProjectSlug, RunId};
use plimsoll_domain::job::{Kind, Live, Run, RunRequest, State};
use uuid::Uuid;

use super::{Error, Result};
use crate::access::{Caller, Scope};
use crate::state::AppState;
use crate::store::jobs::{self, Job, NewJob};
use crate::store::{self, Transaction, audit, live, projects};

pub use lease::{claim, end, heartbeat};
pub(in crate::tasks) use step::{judged, lost, measured, step};
pub(in crate::tasks) use told::{tell, tell_upload};

/// A lease lasts this long after the runner was heard.
pub const LEASE: Duration = Duration::from_secs(60);
/// A job that no runner took in this time expires.
pub const TAKE_WITHIN: Duration = Duration::from_secs(24 * 3_600);
/// Jobs of one project that wait at the same time.
const MAX_QUEUED: i64 = 1_000;

/// Queues a run; false when the very same was asked for before.
pub async fn create(state: &AppState, caller: &Caller, request: RunRequest) -> Result<(Run, bool)> {
    request.check().map_err(unprocessable)?;
    caller.require(Scope::Upload, &request.project)?;
    let run_id = request.run_id.unwrap_or_else(|| RunId(Uuid::now_v7()));
    let mut transaction = store::begin(state.pool()).await?;
    jobs::hold(&mut *transaction, &format!("run {run_id}")).await?;
    if let Some(job) = jobs::look(&mut *transaction, run_id).await? {
        return if job.answers(&request) { Ok((job.run, false)) } else { Err(known(run_id)) };
    }
    if projects::of_run(&mut *transaction, run_id).await?.is_some() {
        return Err(known(run_id));
    }
    projects::ensure(&mut *transaction, &request.project, state.new_projects()).await?;
    has_room(&mut transaction, &request.project).await?;
    supersede(&mut transaction, &request, run_id).await?;
    let job = NewJob {
        run_id,
        project: &request.project,
        kind: Kind::Measure,
        priority: request.priority().rank(),
        revision: &request.revision,
        plan: request.plan.as_deref(),
        plan_commit: request.plan_commit.as_ref(),
        profile: request.profile,
        labels: &request.labels,
        supersedes: request.supersedes.as_deref(),
        baseline_of: None,
        requested_by: &caller.name(),
        take_within: TAKE_WITHIN,
    };
    queue(&mut transaction, &job).await?;
    let entry = caller.entry("run.create").project(Some(&request.project)).subject(run_id.to_string());
    audit::write(&mut *transaction, &entry).await?;
    let run = get(&mut transaction, run_id).await?.run;
    store::commit(transaction).await?;
    tracing::info!(project = %run.project, %run_id, by = caller.name(), "queued");
    Ok((run, true))
}

/// Fails when too many runs of the project wait.
pub(in crate::tasks) async fn has_room(transaction: &mut Transaction, project: &ProjectSlug) -> Result<()> {
    if jobs::queued(&mut **transaction, project).await? >= MAX_QUEUED {
        let detail = format!("{MAX_QUEUED} runs of project {project} wait already");
        return Err(Error::limited(detail));
    }
    Ok(())
}

/// Stores a new job, with everything that is told of it; false when it is known already.
pub(in crate::tasks) async fn queue(transaction: &mut Transaction, job: &NewJob<'_>) -> Result<bool> {
    if !jobs::insert(&mut **transaction, job).await? {
        return Ok(false);
    }
    let queued = Live::State { state: State::Queued, attempt: 0, runner: None, reason: None };
    live::append(&mut **transaction, job.run_id, &[queued]).await?;
    let run = get(transaction, job.run_id).await?.run;
    tell(transaction, &run, "run.requested").await?;
    live::wake_runners(&mut **transaction, job.project).await?;
    Ok(true)
}

/// At once while nobody has it; else its runner is told with its next heartbeat.
pub async fn cancel(state: &AppState, caller: &Caller, run_id: RunId, reason: &str) -> Result<Run> {
    let reason = plain(reason);
    let mut transaction = store::begin(state.pool()).await?;
    let job = jobs::lock(&mut transaction, run_id).await?.ok_or_else(|| no_job(run_id))?;
    caller.require(Scope::Upload, &job.run.project)?;
    match job.run.state {
        State::Cancelled => return Ok(job.run),
        over if over.is_final() => {
            let detail = format!("run {run_id} is over: it is {}", over.name());
            return Err(Error::Conflict(detail));
        }
        _ => stop(&mut transaction, &job, &reason).await?,
    }
    let entry = caller.entry("run.cancel").project(Some(&job.run.project)).subject(run_id.to_string());
    audit::write(&mut *transaction, &entry.detail(serde_json::json!({ "reason": reason }))).await?;
    let run = get(&mut transaction, run_id).await?.run;
    store::commit(transaction).await?;
    tracing::info!(project = %run.project, %run_id, by = caller.name(), reason, "to be cancelled");
    Ok(run)
}

/// Of several requests with one key the newest counts, also when they come at the same time.
async fn supersede(transaction: &mut Transaction, request: &RunRequest, by: RunId) -> Result<()> {
    let Some(key) = &request.supersedes else { return Ok(()) };
    jobs::hold(&mut **transaction, &format!("key {} {key}", request.project)).await?;
    for run_id in jobs::superseded(&mut **transaction, &request.project, key).await? {
        if let Some(job) = jobs::lock(transaction, run_id).await? {
            stop(transaction, &job, &format!("superseded by run {by}")).await?;
        }
    }
    Ok(())
}

/// Ends a locked job at once while nobody has it; else its runner is told with its next heartbeat.
pub(in crate::tasks) async fn stop(transaction: &mut Transaction, job: &Job, reason: &str) -> Result<()> {
    match job.run.state {
        State::Queued => step(transaction, job, State::Cancelled, Some(reason)).await,
        State::Leased | State::Running => Ok(jobs::set_cancel(&mut **transaction, job.run.run_id, reason).await?),
        State::Done | State::Failed | State::Cancelled | State::Expired => Ok(()),
    }
}

/// A job of which is known that it is there.
async fn get(transaction: &mut Transaction, run_id: RunId) -> Result<Job> {
    let job = jobs::look(&mut **transaction, run_id).await?;
    job.ok_or_else(|| Error::internal("a job is stored, and is not"))
}

fn unprocessable(why: String) -> Error {
    Error::Unfit(why)
}

fn known(run_id: RunId) -> Error {
    let detail = format!("run {run_id} is known already, and is another: choose a new run id");
    Error::Conflict(detail)
}

pub(crate) fn no_job(run_id: RunId) -> Error {
    Error::not_found(format!("run {run_id} that was asked for"))
}

/// Somebody's reason, fit for a line.
fn plain(reason: &str) -> String {
    const MAX_REASON: usize = 1_000;
    let text: String = reason.trim().chars().take(MAX_REASON).map(|c| if c.is_control() { ' ' } else { c }).collect();
    if text.is_empty() { "no reason given".to_owned() } else { text }
}

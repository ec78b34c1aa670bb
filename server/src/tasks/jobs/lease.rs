//! What runners say: give me a job, I am still at it, it ended without a report.

use std::time::Duration;

use plimsoll_domain::ids::RunId;
use plimsoll_domain::job::{
    self, Assignment, Claim, Ended, Ending, Heartbeat, HeartbeatAnswer, LeaseId, Live, MAX_PROGRESS, RunnerFacts, State,
};
use tokio::time::Instant;
use uuid::Uuid;

use super::step::{given_back, release, step};
use super::{LEASE, get, no_job, plain, unprocessable};
use crate::access::{Caller, Refusal, Scope, Who};
use crate::state::AppState;
use crate::store::jobs::{self, Claimed, Job};
use crate::store::live::Signal;
use crate::store::{self, Transaction, live, runners};
use crate::tasks::{Error, Result};

/// A claim waits at most this long for a job.
const MAX_WAIT: Duration = Duration::from_secs(30);
const MAX_PROJECTS: usize = 1_000;
/// Past so many events of a run only the newest progress of a heartbeat is kept.
const MAX_EVENTS: u64 = 50_000;

/// The next job for a runner, waited for; `None` without one, and when the server stops.
pub async fn claim(state: &AppState, caller: &Caller, claim: &Claim) -> Result<Option<Assignment>> {
    check(&claim.runner)?;
    let projects = served(caller, &claim.runner)?;
    let until = Instant::now() + Duration::from_secs(claim.wait_s.into()).min(MAX_WAIT);
    let mut draining = state.draining();
    // Before the first look, so that what comes between look and wait is not missed.
    let mut waiter = state.hub().runner(caller)?;
    let claimant = Claimant { id: Uuid::now_v7(), runner: &claim.runner, projects: &projects };
    if *draining.borrow() {
        return Ok(None);
    }
    let mut found = claimant.introduce(state, caller).await?;
    loop {
        if let Some(found) = found {
            return Ok(Some(found));
        }
        let ours = |signal: &Signal| match signal {
            Signal::Job(project) => projects.iter().any(|own| own == project.as_str()),
            Signal::All => true,
            Signal::Run(_) => false,
        };
        tokio::select! {
            _ = draining.wait_for(|draining| *draining) => return Ok(None),
            () = tokio::time::sleep_until(until) => return Ok(None),
            () = waiter.wait(ours) => {}
        }
        match claimant.again(state).await? {
            Again::Taken(assignment) => found = Some(*assignment),
            Again::Nothing => found = None,
            Again::Replaced => return Ok(None),
        }
    }
}

/// Renews the lease and tells what happened since.
pub async fn heartbeat(state: &AppState, run_id: RunId, heartbeat: &Heartbeat) -> Result<HeartbeatAnswer> {
    let progress = &heartbeat.progress[..];
    if progress.len() > MAX_PROGRESS {
        return Err(unprocessable(format!("progress: more than {MAX_PROGRESS} entries")));
    }
    if !progress.iter().all(job::Progress::is_sound) {
        return Err(unprocessable("progress: a figure is negative, not finite or not a share".to_owned()));
    }
    let mut transaction = store::begin(state.pool()).await?;
    jobs::heard(&mut *transaction, run_id, heartbeat.lease).await?;
    let job = leased(&mut transaction, run_id, heartbeat.lease).await?;
    jobs::renew(&mut *transaction, run_id, LEASE).await?;
    if heartbeat.draining {
        runners::ends(&mut *transaction, run_id).await?;
    }
    if job.run.state == State::Leased && progress.iter().any(|at| at.stage.is_measuring()) {
        step(&mut transaction, &job, State::Running, None).await?;
    }
    let kept = if job.run.last_seq < MAX_EVENTS { progress } else { &progress[progress.len().saturating_sub(1)..] };
    if !kept.is_empty() {
        let events: Vec<_> = kept.iter().cloned().map(Live::Progress).collect();
        live::append(&mut *transaction, run_id, &events).await?;
    }
    store::commit(transaction).await?;
    Ok(HeartbeatAnswer { lease_s: lease_s(), cancel: job.cancel })
}

/// The runner ends it without a report.
pub async fn end(state: &AppState, run_id: RunId, ended: &Ended) -> Result<()> {
    let reason = plain(&ended.reason);
    let mut transaction = store::begin(state.pool()).await?;
    jobs::heard(&mut *transaction, run_id, ended.lease).await?;
    let job = leased(&mut transaction, run_id, ended.lease).await?;
    match (ended.how, &job.cancel) {
        (Ending::Failed, _) => step(&mut transaction, &job, State::Failed, Some(&reason)).await?,
        (Ending::Released, None) => release(&mut transaction, &job, &reason).await?,
        (Ending::Cancelled, None) => step(&mut transaction, &job, State::Cancelled, Some(&reason)).await?,
        (Ending::Released | Ending::Cancelled, Some(asked)) => {
            step(&mut transaction, &job, State::Cancelled, Some(asked)).await?;
        }
    }
    store::commit(transaction).await?;
    tracing::info!(project = %job.run.project, %run_id, how = ?ended.how, reason, "ended by its runner");
    Ok(())
}

/// One request for a job.
struct Claimant<'a> {
    id: Uuid,
    runner: &'a RunnerFacts,
    projects: &'a [String],
}

enum Again {
    Taken(Box<Assignment>),
    Nothing,
    /// The runner asks anew elsewhere: the answer to this request would be lost.
    Replaced,
}

impl Claimant<'_> {
    /// Remembers the runner, takes back what it had, and looks for a job.
    async fn introduce(&self, state: &AppState, caller: &Caller) -> Result<Option<Assignment>> {
        let token = match caller.who {
            Who::Token { id, .. } => id,
            Who::Anonymous | Who::Member { .. } | Who::Workflow(_) => None,
        };
        let claim = (!self.runner.projects.is_empty()).then_some(self.id);
        let mut transaction = store::begin(state.pool()).await?;
        if !runners::put(&mut *transaction, self.runner, self.projects, token, claim).await? {
            let most = runners::MAX_OF_TOKEN;
            let detail = format!(
                "{} has brought {most} runners already: a runner keeps its id on its disk, or use a token of its own",
                caller.name()
            );
            return Err(Error::limited(detail));
        }
        for run_id in jobs::held_by(&mut *transaction, self.runner.id).await? {
            let Some(job) = jobs::lock(&mut transaction, run_id).await? else { continue };
            if job.lease.is_none() {
                continue;
            }
            if !caller.may(Scope::Agent, &job.run.project) {
                let detail = "a runner with this id carries out a run of a project that your token does not reach";
                return Err(Error::Conflict(detail.to_owned()));
            }
            given_back(&mut transaction, &job).await?;
        }
        let taken = self.take(&mut transaction).await?;
        store::commit(transaction).await?;
        Ok(taken)
    }

    async fn again(&self, state: &AppState) -> Result<Again> {
        let mut transaction = store::begin(state.pool()).await?;
        if !runners::is_claiming(&mut *transaction, self.runner.id, self.id).await? {
            return Ok(Again::Replaced);
        }
        let taken = self.take(&mut transaction).await?;
        store::commit(transaction).await?;
        Ok(taken.map_or(Again::Nothing, |assignment| Again::Taken(Box::new(assignment))))
    }

    async fn take(&self, transaction: &mut Transaction) -> Result<Option<Assignment>> {
        let lease = LeaseId(Uuid::now_v7());
        let by = Claimed {
            runner: self.runner.id,
            projects: self.projects,
            labels: &self.runner.labels,
            lease,
            lease_for: LEASE,
        };
        let Some(run_id) = jobs::claim(&mut **transaction, by).await? else { return Ok(None) };
        let job = get(transaction, run_id).await?;
        let leased = Live::State {
            state: State::Leased,
            attempt: job.run.attempt,
            runner: Some(self.runner.name.clone()),
            reason: None,
        };
        live::append(&mut **transaction, run_id, &[leased]).await?;
        tracing::info!(project = %job.run.project, %run_id, runner = self.runner.name, "taken");
        Ok(Some(Assignment {
            run_id,
            lease,
            lease_s: lease_s(),
            attempt: job.run.attempt,
            kind: job.run.kind,
            project: job.run.project,
            revision: job.run.revision,
            plan: job.plan,
            plan_commit: job.plan_commit,
            profile: job.profile,
        }))
    }
}

/// The job, if this lease is its own.
async fn leased(transaction: &mut Transaction, run_id: RunId, lease: LeaseId) -> Result<Job> {
    let job = jobs::lock(transaction, run_id).await?.ok_or_else(|| no_job(run_id))?;
    if job.lease == Some(lease.0) {
        return Ok(job);
    }
    let detail = format!("this lease of run {run_id} is over: the run is {}, stop it", job.run.state.name());
    Err(Error::Conflict(detail))
}

fn check(runner: &RunnerFacts) -> Result<()> {
    for (at, text) in [("runner.name", &runner.name), ("runner.version", &runner.version)] {
        job::check_name(text).map_err(|why| unprocessable(format!("{at}: {why}")))?;
    }
    job::check_labels(&runner.labels).map_err(|why| unprocessable(format!("runner.{why}")))?;
    if runner.projects.len() > MAX_PROJECTS {
        return Err(unprocessable(format!("runner.projects: more than {MAX_PROJECTS}")));
    }
    Ok(())
}

/// The projects that the runner has a recipe for and that its token reaches.
fn served(caller: &Caller, runner: &RunnerFacts) -> Result<Vec<String>> {
    let reached = runner.projects.iter().filter(|project| caller.may(Scope::Agent, project));
    let reached: Vec<String> = reached.map(ToString::to_string).collect();
    if reached.is_empty() && !runner.projects.is_empty() {
        let detail = format!("{} reaches none of the projects that this runner has a recipe for", caller.name());
        return Err(Refusal::OutOfReach(detail).into());
    }
    Ok(reached)
}

fn lease_s() -> u32 {
    u32::try_from(LEASE.as_secs()).unwrap_or(u32::MAX)
}

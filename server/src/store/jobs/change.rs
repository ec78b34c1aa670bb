//! What changes a job. Times are the database's.

use std::collections::BTreeMap;
use std::time::Duration;

use plimsoll_domain::ids::{CommitSha, ProjectSlug, RunId};
use plimsoll_domain::job::{Kind, LeaseId, State, Wanted};
use plimsoll_domain::plan::Profile;
use sqlx::types::Json;
use uuid::Uuid;

use crate::store::{Executor, Result};

/// A job that is to be queued.
#[derive(Debug, Clone)]
pub struct NewJob<'a> {
    pub run_id: RunId,
    pub project: &'a ProjectSlug,
    pub kind: Kind,
    pub priority: i16,
    pub revision: &'a Wanted,
    pub plan: Option<&'a str>,
    pub plan_commit: Option<&'a CommitSha>,
    pub profile: Option<Profile>,
    pub labels: &'a BTreeMap<String, String>,
    pub supersedes: Option<&'a str>,
    pub baseline_of: Option<RunId>,
    pub requested_by: &'a str,
    /// It expires when no runner took it within this time.
    pub take_within: Duration,
}

/// Queues a job; false when the run is known already, or the same backfill is under way.
pub async fn insert(executor: impl Executor<'_>, job: &NewJob<'_>) -> Result<bool> {
    let done = sqlx::query!(
        "insert into jobs (run_id, project, kind, priority, revision, label, plan, plan_commit, profile, labels,
             supersedes, baseline_of, requested_by, take_by)
         values ($1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11, $12, $13, now() + make_interval(secs => $14))
         on conflict do nothing",
        job.run_id.0,
        job.project.as_str(),
        kind_name(job.kind),
        job.priority,
        Json(job.revision) as _,
        job.revision.revision().label(),
        job.plan,
        job.plan_commit.map(|sha| sha.as_str()),
        job.profile.map(profile_name),
        Json(job.labels) as _,
        job.supersedes,
        job.baseline_of.map(|run| run.0),
        job.requested_by,
        job.take_within.as_secs_f64(),
    )
    .execute(executor)
    .await?;
    Ok(done.rows_affected() > 0)
}

/// Who asks for a job, and for how long they get it.
#[derive(Debug, Clone, Copy)]
pub struct Claimed<'a> {
    pub runner: Uuid,
    /// The projects it has a recipe for and may serve.
    pub projects: &'a [String],
    pub labels: &'a BTreeMap<String, String>,
    pub lease: LeaseId,
    pub lease_for: Duration,
}

/// Takes the next job: the highest priority, of these a job of the project that waited longest, of these the oldest.
pub async fn claim(executor: impl Executor<'_>, by: Claimed<'_>) -> Result<Option<RunId>> {
    let taken = sqlx::query_scalar!(
        r#"with next as (
             select j.run_id from jobs j join projects p on p.slug = j.project
             where j.state = 'queued' and j.take_by > now() and j.project = any($2) and j.labels <@ $3
             order by j.priority desc, p.last_claimed_at nulls first, j.created_at, j.run_id
             limit 1 for update of j skip locked),
           taken as (
             update jobs set state = 'leased', runner = $1, lease = $4,
                 lease_expires_at = now() + make_interval(secs => $5), attempt = attempt + 1, reason = null,
                 progress = null, heard = false
             where run_id = (select run_id from next) returning run_id, project),
           served as (
             update projects set last_claimed_at = clock_timestamp() where slug = (select project from taken))
           select run_id from taken"#,
        by.runner,
        by.projects,
        Json(by.labels) as _,
        by.lease.0,
        by.lease_for.as_secs_f64(),
    );
    Ok(taken.fetch_optional(executor).await?.map(RunId))
}

/// The runner was heard: the lease lasts from now on.
pub async fn renew(executor: impl Executor<'_>, run_id: RunId, lease_for: Duration) -> Result<()> {
    sqlx::query!(
        "update jobs set lease_expires_at = now() + make_interval(secs => $2), heard = true
         where run_id = $1 and state in ('leased', 'running')",
        run_id.0,
        lease_for.as_secs_f64(),
    )
    .execute(executor)
    .await?;
    Ok(())
}

/// Remembers that the runner with this lease was heard. Comes before the job's lock, as in a claim.
pub async fn heard(executor: impl Executor<'_>, run_id: RunId, lease: LeaseId) -> Result<()> {
    sqlx::query!(
        "update runners set last_seen_at = now()
         where id = (select runner from jobs where run_id = $1 and lease = $2)",
        run_id.0,
        lease.0,
    )
    .execute(executor)
    .await?;
    Ok(())
}

/// Asks the runner to stop, unless it was asked.
pub async fn set_cancel(executor: impl Executor<'_>, run_id: RunId, reason: &str) -> Result<()> {
    sqlx::query!("update jobs set cancel = coalesce(cancel, $2) where run_id = $1", run_id.0, reason)
        .execute(executor)
        .await?;
    Ok(())
}

/// What the step says of the attempt that it belongs to.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Attempt {
    Counts,
    /// As if the runner had never taken the job.
    Uncounted,
    /// Nor does this, but how often it happens is counted.
    Undelivered,
}

/// The next state of a locked job.
#[derive(Debug, Clone, Copy)]
pub struct Change<'a> {
    pub to: State,
    pub reason: Option<&'a str>,
    pub attempt: Attempt,
    /// A job that is queued again has this much time to be taken, but never longer than a week since it was asked for.
    pub take_within: Duration,
}

/// Everything that follows from the state: a lease only while it is carried out, an end only when it is over.
pub async fn change(executor: impl Executor<'_>, run_id: RunId, change: Change<'_>) -> Result<()> {
    sqlx::query!(
        "update jobs set state = $2, reason = $3,
             lease = case when $2 in ('leased', 'running') then lease end,
             lease_expires_at = case when $2 in ('leased', 'running') then lease_expires_at end,
             attempt = attempt - $4, undelivered = undelivered + $6,
             started_at = case when $2 = 'running' then coalesce(started_at, now()) else started_at end,
             finished_at = case when $2 in ('done', 'failed', 'cancelled', 'expired') then now() end,
             take_by = case when $2 = 'queued'
                 then greatest(take_by, least(now() + make_interval(secs => $5), created_at + interval '7 days'))
                 else take_by end
         where run_id = $1",
        run_id.0,
        change.to.name(),
        change.reason,
        i32::from(change.attempt != Attempt::Counts),
        change.take_within.as_secs_f64(),
        i32::from(change.attempt == Attempt::Undelivered),
    )
    .execute(executor)
    .await?;
    Ok(())
}

fn kind_name(kind: Kind) -> &'static str {
    match kind {
        Kind::Measure => "measure",
        Kind::Backfill => "backfill",
    }
}

fn profile_name(profile: Profile) -> &'static str {
    match profile {
        Profile::Standard => "standard",
        Profile::Pr => "pr",
        Profile::Quick => "quick",
    }
}

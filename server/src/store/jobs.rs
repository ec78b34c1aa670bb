//! Jobs: the runs that somebody asked for. One row each; every change goes through its lock.

mod change;
mod row;

use jiff::Timestamp;
use plimsoll_domain::ids::{CommitSha, ProjectSlug, RunId};
use plimsoll_domain::job::{Kind, Run, RunRequest, State, Wanted};
use plimsoll_domain::plan::Profile;
use plimsoll_domain::report::Report;
use sqlx::types::Json;
use uuid::Uuid;

use super::projects::Readable;
use super::{Executor, Result, Transaction};

pub use change::{Attempt, Change, Claimed, NewJob, change, claim, heard, insert, renew, set_cancel};
pub(super) use row::{Row, rows};

/// A job as the server sees it.
#[derive(Debug, Clone, PartialEq)]
pub struct Job {
    /// As it is told.
    pub run: Run,
    /// What was asked for, as far as the run does not say it.
    pub plan: Option<String>,
    pub plan_commit: Option<CommitSha>,
    pub profile: Option<Profile>,
    pub supersedes: Option<String>,
    pub priority: i16,
    /// The run whose missing baseline it measures.
    pub baseline_of: Option<RunId>,
    /// Whose lease is valid.
    pub lease: Option<Uuid>,
    pub lease_expires_at: Option<Timestamp>,
    /// Whether the runner was heard since it was given the job.
    pub heard: bool,
    /// How often the answer that gave it to a runner was lost.
    pub undelivered: u32,
    /// Why the runner was asked to stop.
    pub cancel: Option<String>,
}

impl Job {
    /// Whether it is what `request` asks for.
    pub fn answers(&self, request: &RunRequest) -> bool {
        self.run.kind == Kind::Measure
            && self.run.project == request.project
            && self.run.revision == request.revision
            && self.run.labels == request.labels
            && self.plan == request.plan
            && self.plan_commit == request.plan_commit
            && self.profile == request.profile
            && self.supersedes == request.supersedes
            && self.priority == request.priority().rank()
    }
}

/// Which jobs, the newest first.
#[derive(Debug, Clone, Copy, Default)]
pub struct Filter<'a> {
    pub project: Option<&'a ProjectSlug>,
    pub state: Option<State>,
    /// The last one of the page before.
    pub before: Option<RunId>,
    pub limit: u32,
}

pub async fn get(executor: impl Executor<'_>, run_id: RunId) -> Result<Option<Run>> {
    let row = rows!("where j.run_id = $1", run_id.0).fetch_optional(executor).await?;
    row.map(|row| Ok(Job::try_from(row)?.run)).transpose()
}

/// The whole job, without its lock.
pub async fn look(executor: impl Executor<'_>, run_id: RunId) -> Result<Option<Job>> {
    rows!("where j.run_id = $1", run_id.0).fetch_optional(executor).await?.map(TryInto::try_into).transpose()
}

/// The job, which nobody else changes until the transaction ends. Read after the lock is there: what it was before the
/// wait does not count.
pub async fn lock(transaction: &mut Transaction, run_id: RunId) -> Result<Option<Job>> {
    let held = sqlx::query!("select run_id from jobs where run_id = $1 for update", run_id.0)
        .fetch_optional(&mut **transaction)
        .await?;
    if held.is_none() { Ok(None) } else { look(&mut **transaction, run_id).await }
}

pub async fn list(executor: impl Executor<'_>, filter: Filter<'_>) -> Result<Vec<Run>> {
    list_readable(executor, filter, &Readable::All).await
}

pub async fn list_readable(executor: impl Executor<'_>, filter: Filter<'_>, readable: &Readable) -> Result<Vec<Run>> {
    let found = rows!(
        "where ($1::text is null or j.project = $1) and ($2::text is null or j.state = $2)
           and ($3::uuid is null
                or (j.created_at, j.run_id) < (select b.created_at, b.run_id from jobs b where b.run_id = $3))
           and ($4::text[] is null or j.project = any($4)
                or exists (select 1 from projects p where p.slug = j.project and p.visibility = 'public'))
         order by j.created_at desc, j.run_id desc limit $5",
        filter.project.map(ProjectSlug::as_str),
        filter.state.map(State::name),
        filter.before.map(|run| run.0),
        readable.own(),
        i64::from(filter.limit),
    );
    found.fetch_all(executor).await?.into_iter().map(|row| Ok(Job::try_from(row)?.run)).collect()
}

/// The jobs that are not over and have the same key: what a new one replaces.
pub async fn superseded(executor: impl Executor<'_>, project: &ProjectSlug, key: &str) -> Result<Vec<RunId>> {
    let found = sqlx::query_scalar!(
        "select run_id from jobs
         where project = $1 and supersedes = $2 and state in ('queued', 'leased', 'running') order by run_id",
        project.as_str(),
        key,
    );
    Ok(found.fetch_all(executor).await?.into_iter().map(RunId).collect())
}

/// What a runner has.
pub async fn held_by(executor: impl Executor<'_>, runner: Uuid) -> Result<Vec<RunId>> {
    let found = sqlx::query_scalar!(
        "select run_id from jobs where runner = $1 and state in ('leased', 'running') order by run_id",
        runner,
    );
    Ok(found.fetch_all(executor).await?.into_iter().map(RunId).collect())
}

/// A job whose lease is over or that nobody took in time, locked; replicas that look at the same time find different
/// ones.
pub async fn overdue(executor: impl Executor<'_>) -> Result<Option<RunId>> {
    let found = sqlx::query_scalar!(
        "select run_id from jobs
         where (state in ('leased', 'running') and lease_expires_at < now()) or (state = 'queued' and take_by < now())
         limit 1 for update skip locked",
    );
    Ok(found.fetch_optional(executor).await?.map(RunId))
}

/// Jobs of a project that wait.
pub async fn queued(executor: impl Executor<'_>, project: &ProjectSlug) -> Result<i64> {
    let found = sqlx::query_scalar!(
        r#"select count(*) as "count!" from jobs where project = $1 and state = 'queued'"#,
        project.as_str(),
    );
    Ok(found.fetch_one(executor).await?)
}

/// Holds a name until the transaction ends. `run ID`: asking for a run and storing its report exclude each other;
/// `key PROJECT KEY`: so do requests of which the newest counts.
pub async fn hold(executor: impl Executor<'_>, name: &str) -> Result<()> {
    sqlx::query!("select pg_advisory_xact_lock(hashtextextended($1, 0))", name).execute(executor).await?;
    Ok(())
}

/// Whether a commit was measured by this plan on this testbed, soundly or not.
pub async fn is_measured(executor: impl Executor<'_>, report: &Report, commit: &CommitSha) -> Result<bool> {
    let testbed = report.testbed.fingerprint();
    let found = sqlx::query_scalar!(
        r#"select exists (select 1 from snapshots
             where project = $1 and plan_digest = $2 and testbed = $3 and gates
               and (commit_sha like $4 || '%' or $4 like commit_sha || '%')) as "exists!""#,
        report.project.as_str(),
        report.plan_digest.as_str(),
        testbed.as_str(),
        commit.as_str(),
    );
    Ok(found.fetch_one(executor).await?)
}

/// Whether somebody cancelled the backfill of this commit in the last week: nobody but a person does.
pub async fn is_unwanted(executor: impl Executor<'_>, project: &ProjectSlug, commit: &CommitSha) -> Result<bool> {
    let found = sqlx::query_scalar!(
        r#"select exists (select 1 from jobs
             where project = $1 and kind = 'backfill' and state = 'cancelled' and revision ->> 'commit' = $2
               and finished_at > now() - interval '7 days') as "exists!""#,
        project.as_str(),
        commit.as_str(),
    );
    Ok(found.fetch_one(executor).await?)
}

/// The runs that were judged without a baseline and wait for `report`, the newest first: the one it was queued for, and
/// others with the same merge base or parent.
pub async fn waiting_for(
    executor: impl Executor<'_>,
    report: &Report,
    baseline_of: RunId,
    limit: i64,
) -> Result<Vec<RunId>> {
    let testbed = report.testbed.fingerprint();
    let found = sqlx::query_scalar!(
        "select s.run_id from snapshots s join verdicts v on v.run_id = s.run_id
         where s.project = $1 and v.verdict = 'no_baseline' and s.run_id <> $6
           and (s.run_id = $2
                or (s.plan_digest = $3 and s.testbed = $4
                    and coalesce(s.revision ->> 'merge_base', s.revision -> 'ancestors' ->> 0) = $5))
         order by s.started_at desc limit $7",
        report.project.as_str(),
        baseline_of.0,
        report.plan_digest.as_str(),
        testbed.as_str(),
        report.revision.commit.as_ref().map(|sha| sha.as_str()),
        report.run_id.0,
        limit,
    );
    Ok(found.fetch_all(executor).await?.into_iter().map(RunId).collect())
}

/// For the checked macros.
pub(super) type WantedJson = Json<Wanted>;

//! What beside its run says how a check stands, and which checks are to be looked at without an event.

use std::time::Duration;

use jiff::Timestamp;
use plimsoll_domain::ids::RunId;
use uuid::Uuid;

use super::super::time::from_db;
use super::super::{Executor, ProgressJson, Result};

/// Of a run that is stored.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Stored {
    /// Whether it may decide a check.
    pub gates: bool,
    /// The measurement of its missing baseline, while that is under way, and the time left of it.
    pub backfill: Option<(RunId, Option<Duration>)>,
}

pub async fn stored(executor: impl Executor<'_>, run_id: RunId) -> Result<Option<Stored>> {
    let found = sqlx::query!(
        r#"select s.gates, b.run_id as "backfill?", b.progress as "progress?: ProgressJson"
           from snapshots s left join lateral (
               select j.run_id, j.progress from jobs j
               where j.project = s.project and j.kind = 'backfill' and j.state in ('queued', 'leased', 'running')
                 and (j.baseline_of = s.run_id or j.revision ->> 'commit' =
                      coalesce(s.revision ->> 'merge_base', s.revision -> 'ancestors' ->> 0))
               order by j.created_at limit 1) b on true
           where s.run_id = $1"#,
        run_id.0,
    );
    Ok(found.fetch_optional(executor).await?.map(|row| {
        let left = row.progress.and_then(|progress| progress.0.left_ms).map(Duration::from_millis);
        Stored { gates: row.gates, backfill: row.backfill.map(|run| (RunId(run), left)) }
    }))
}

/// A regression that a person took on.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Accepted {
    /// A gated metric, or `all`.
    pub metric: String,
    pub by: String,
    pub reason: String,
    pub at: Timestamp,
}

pub async fn accepted(executor: impl Executor<'_>, run_id: RunId) -> Result<Vec<Accepted>> {
    let found = sqlx::query!(
        "select metric, accepted_by, reason, accepted_at from acceptances where run_id = $1
         order by accepted_at, metric",
        run_id.0,
    );
    let rows = found.fetch_all(executor).await?.into_iter();
    let accepted = rows.map(|row| Accepted {
        metric: row.metric,
        by: row.accepted_by,
        reason: row.reason,
        at: from_db(row.accepted_at),
    });
    Ok(accepted.collect())
}

/// Checks that should be concluded by now, and of which GitHub does not know that they are.
pub async fn overdue(executor: impl Executor<'_>, limit: i64) -> Result<Vec<Uuid>> {
    let found = sqlx::query_scalar!(
        "select id from github_checks
         where deadline < now() and superseded_at is null and settled is null
           and (told is null or told not like 'completed:%')
         order by deadline limit $1",
        limit,
    );
    Ok(found.fetch_all(executor).await?)
}

/// Has GitHub told how checks go on that are not concluded, and were told before `every`: how many. What is being
/// measured changes all the time: its comment waits for the end. Nothing where half of what may be sent is spent.
pub async fn refresh(
    executor: impl Executor<'_>,
    every: Duration,
    half_a_minute: i32,
    half_an_hour: i32,
) -> Result<u64> {
    let done = sqlx::query!(
        "with stale as (
             select c.id, c.project, c.repository, c.pull_request,
                 c.repository || coalesce('#' || c.pull_request, '@' || c.head_sha) as lane,
                 coalesce(j.state in ('leased', 'running'), false) as runs
             from github_checks c
             join github_repositories r on r.id = c.repository and r.removed_at is null
             left join github_pace p on p.installation = r.installation
             left join jobs j on j.run_id = c.run_id
             where c.superseded_at is null and c.told not like 'completed:%'
               and c.told_at < now() - make_interval(secs => $1) and c.created_at > now() - interval '14 days'
               and (p.installation is null or (p.not_before <= now()
                    and (p.minute_writes < $2 or p.minute_at <= now() - interval '1 minute')
                    and (p.hour_writes < $3 or p.hour_at <= now() - interval '1 hour')))
               and not exists (select from github_writes w
                               where w.lane = c.repository || coalesce('#' || c.pull_request, '@' || c.head_sha)
                                 and w.done_at is null and w.failed_at is null)
             order by c.told_at limit 100),
           comments as (
             insert into github_writes (lane, comment_project, comment_repository, comment_pull)
             select distinct lane, project, repository, pull_request from stale
             where pull_request is not null and not runs)
         insert into github_writes (lane, check_id) select lane, id from stale",
        every.as_secs_f64(),
        half_a_minute,
        half_an_hour,
    );
    Ok(done.execute(executor).await?.rows_affected())
}

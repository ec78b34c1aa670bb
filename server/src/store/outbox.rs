//! What others are to be told, written in the transaction that decides it.

use plimsoll_domain::ids::{ProjectSlug, RunId};

use super::{Executor, Result};

/// Appends to the run's sequence, and one delivery for each webhook of the project; GitHub is to be told of the checks
/// that the run decides, and of the one whose baseline it measures. The caller holds what orders the run's events: its
/// job's row, its id, or its verdict's row.
pub async fn append(
    executor: impl Executor<'_>,
    run_id: RunId,
    project: &ProjectSlug,
    event: &str,
    payload: &serde_json::Value,
) -> Result<()> {
    sqlx::query!(
        "with event as (
             insert into outbox (run_id, project, seq, event, payload)
             select $1, $2, coalesce(max(seq), 0) + 1, $3, $4 from outbox where run_id = $1 returning id),
           told as (
             select c.id, c.project, c.repository, c.pull_request,
                 c.repository || coalesce('#' || c.pull_request, '@' || c.head_sha) as lane
             from github_checks c
             where c.run_id in (select $1 union all
                                select baseline_of from jobs where run_id = $1 and baseline_of is not null)),
           checks as (
             insert into github_writes (lane, check_id) select lane, id from told order by id),
           comments as (
             insert into github_writes (lane, comment_project, comment_repository, comment_pull)
             select distinct lane, project, repository, pull_request from told where pull_request is not null)
         insert into deliveries (event, webhook)
         select event.id, w.id from event, webhooks w where w.project = $2",
        run_id.0,
        project.as_str(),
        event,
        payload,
    )
    .execute(executor)
    .await?;
    Ok(())
}

/// Appends that the run is over. `run.finished` is told once: after it the event is `run.rejudged`. The payload's `event`
/// is filled in.
pub async fn append_end(
    executor: impl Executor<'_>,
    run_id: RunId,
    project: &ProjectSlug,
    payload: &serde_json::Value,
) -> Result<()> {
    sqlx::query!(
        "with event as (
             insert into outbox (run_id, project, seq, event, payload)
             select $1, $2, before.seq + 1, now.event, $3::jsonb || jsonb_build_object('event', now.event)
             from (select coalesce(max(seq), 0) as seq, coalesce(bool_or(event = 'run.finished'), false) as told
                   from outbox where run_id = $1) before
             cross join lateral
                  (select case when before.told then 'run.rejudged' else 'run.finished' end as event) now
             returning id),
           told as (
             select c.id, c.project, c.repository, c.pull_request,
                 c.repository || coalesce('#' || c.pull_request, '@' || c.head_sha) as lane
             from github_checks c
             where c.run_id in (select $1 union all
                                select baseline_of from jobs where run_id = $1 and baseline_of is not null)),
           checks as (
             insert into github_writes (lane, check_id) select lane, id from told order by id),
           comments as (
             insert into github_writes (lane, comment_project, comment_repository, comment_pull)
             select distinct lane, project, repository, pull_request from told where pull_request is not null)
         insert into deliveries (event, webhook)
         select event.id, w.id from event, webhooks w where w.project = $2",
        run_id.0,
        project.as_str(),
        payload,
    )
    .execute(executor)
    .await?;
    Ok(())
}

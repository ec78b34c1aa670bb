//! What others are to be told, written in the transaction that decides it.

use plimsoll_domain::ids::{ProjectSlug, RunId};

use super::{Executor, Result};

/// Appends to the run's sequence, and one delivery for each webhook of the project. The caller holds what orders the
/// run's events: its job's row, its id, or its verdict's row.
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
             select $1, $2, coalesce(max(seq), 0) + 1, $3, $4 from outbox where run_id = $1 returning id)
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
             returning id)
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

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

/// Whether the run was told to be finished.
pub async fn is_finished(executor: impl Executor<'_>, run_id: RunId) -> Result<bool> {
    let found = sqlx::query_scalar!(
        r#"select exists (select 1 from outbox where run_id = $1 and event = 'run.finished') as "exists!""#,
        run_id.0
    );
    Ok(found.fetch_one(executor).await?)
}

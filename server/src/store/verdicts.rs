//! Verdicts: the comparison that was made when a snapshot arrived.

use plimsoll_domain::comparison::Comparison;
use plimsoll_domain::ids::RunId;
use sqlx::types::Json;

use super::{Executor, Result, Transaction};

pub async fn get(executor: impl Executor<'_>, run_id: RunId) -> Result<Option<Comparison>> {
    let found = sqlx::query_scalar!(
        r#"select comparison as "comparison: Json<Comparison>" from verdicts where run_id = $1"#,
        run_id.0
    )
    .fetch_optional(executor)
    .await?;
    Ok(found.map(|comparison| comparison.0))
}

/// Replaces the verdict `no_baseline` of a run, which is kept; false when it has another by now.
pub async fn replace(transaction: &mut Transaction, run_id: RunId, comparison: &Comparison) -> Result<bool> {
    let kept = sqlx::query!(
        "insert into former_verdicts (run_id, judged_at, verdict, comparison)
         select run_id, judged_at, verdict, comparison from verdicts
         where run_id = $1 and verdict = 'no_baseline' for update",
        run_id.0,
    )
    .execute(&mut **transaction)
    .await?;
    if kept.rows_affected() == 0 {
        return Ok(false);
    }
    let baseline: Vec<_> = comparison.baseline.iter().flat_map(|side| &side.run_ids).map(|run| run.0).collect();
    sqlx::query!(
        "update verdicts set verdict = $2, baseline_run_ids = $3, comparison = $4, judged_at = clock_timestamp()
         where run_id = $1",
        run_id.0,
        comparison.verdict.name(),
        &baseline,
        Json(comparison) as _,
    )
    .execute(&mut **transaction)
    .await?;
    sqlx::query!(
        "update snapshots set accepted = valid and gates and $2 where run_id = $1",
        run_id.0,
        super::snapshots::is_acceptable(comparison.verdict),
    )
    .execute(&mut **transaction)
    .await?;
    Ok(true)
}

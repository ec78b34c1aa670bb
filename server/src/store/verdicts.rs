//! Verdicts: the comparison that was made when a snapshot arrived.

use plimsoll_domain::comparison::Comparison;
use plimsoll_domain::ids::RunId;
use sqlx::types::Json;

use super::{Executor, Result};

pub async fn insert(executor: impl Executor<'_>, run_id: RunId, comparison: &Comparison) -> Result<()> {
    let baseline: Vec<_> = comparison.baseline.iter().flat_map(|side| &side.run_ids).map(|run| run.0).collect();
    sqlx::query!(
        "insert into verdicts (run_id, verdict, baseline_run_ids, comparison) values ($1, $2, $3, $4)",
        run_id.0,
        comparison.verdict.name(),
        &baseline,
        Json(comparison) as _,
    )
    .execute(executor)
    .await?;
    Ok(())
}

pub async fn get(executor: impl Executor<'_>, run_id: RunId) -> Result<Option<Comparison>> {
    let found = sqlx::query_scalar!(
        r#"select comparison as "comparison: Json<Comparison>" from verdicts where run_id = $1"#,
        run_id.0
    )
    .fetch_optional(executor)
    .await?;
    Ok(found.map(|comparison| comparison.0))
}

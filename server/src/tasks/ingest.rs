//! A report becomes a snapshot: judged first, then stored with its verdict in one transaction.

use std::sync::Arc;

use axum::http::StatusCode;
use plimsoll_domain::comparison::Comparison;
use plimsoll_domain::figures::Figures;
use plimsoll_domain::report::Report;

use super::{bounds, pack, verdict};
use crate::error::{AppError, Result};
use crate::state::AppState;
use crate::store::{projects, reports, snapshots, testbeds, verdicts};

/// The outcome of an upload.
#[derive(Debug)]
pub struct Ingested {
    /// The comparison made when the snapshot was stored.
    pub comparison: Comparison,
    /// False when the very same report was stored before.
    pub created: bool,
}

/// Stores and judges a report. Another report under the same run id is a conflict.
///
/// The judging comes before the transaction, so that no lock is held while it computes. Of two uploads of one run at
/// the same time both judge, one stores, and the other finds it stored.
pub async fn ingest(state: &AppState, report: Arc<Report>) -> Result<Ingested> {
    bounds::check(&report).map_err(|why| AppError::new(StatusCode::UNPROCESSABLE_ENTITY, why))?;
    let unpacked = Arc::clone(&report);
    let (figures, packed) =
        state.compute(move || Ok::<_, AppError>((Figures::of(&unpacked), pack::pack(&unpacked)?))).await??;
    if let Some(stored) = find(state, &report, &packed).await? {
        return Ok(stored);
    }
    let comparison = verdict::judge_new(state, Arc::clone(&report)).await?;

    let mut transaction = state.pool().begin().await.map_err(crate::store::StoreError::from)?;
    projects::ensure(&mut *transaction, &report.project, state.new_projects()).await?;
    testbeds::ensure(&mut *transaction, &report.testbed).await?;
    // Waits for another upload of the same run that is about to commit.
    if !snapshots::insert(&mut *transaction, &report, &figures, comparison.verdict).await? {
        drop(transaction);
        let gone = || AppError::internal("a run is stored, and is not");
        return find(state, &report, &packed).await?.ok_or_else(gone);
    }
    reports::insert(&mut *transaction, report.run_id, &packed).await?;
    verdicts::insert(&mut *transaction, report.run_id, &comparison).await?;
    transaction.commit().await.map_err(crate::store::StoreError::from)?;
    tracing::info!(project = %report.project, run_id = %report.run_id, verdict = comparison.verdict.name(), "stored");
    Ok(Ingested { comparison, created: true })
}

/// The stored comparison, if this very report is stored.
async fn find(state: &AppState, report: &Report, packed: &reports::Packed) -> Result<Option<Ingested>> {
    let Some(sha256) = reports::sha256(state.pool(), report.run_id).await? else { return Ok(None) };
    if sha256 != packed.sha256 {
        let detail = format!("run {} is stored already, with another report: a run is measured once", report.run_id);
        return Err(AppError::new(StatusCode::CONFLICT, detail));
    }
    let comparison = verdicts::get(state.pool(), report.run_id).await?;
    let comparison = comparison.ok_or_else(|| AppError::internal("a snapshot without its verdict"))?;
    Ok(Some(Ingested { comparison, created: false }))
}

//! A report becomes a snapshot: judged first, then stored with its verdict in one transaction.

use std::sync::Arc;

use plimsoll_domain::comparison::Comparison;
use plimsoll_domain::figures::Figures;
use plimsoll_domain::report::Report;
use plimsoll_domain::verdict::Run;

use super::{Error, Result, backfill, bounds, jobs, pack, verdict};
use crate::state::AppState;
use crate::store::jobs::Job;
use crate::store::{self, projects, reports, snapshots, testbeds, verdicts};

/// The outcome of an upload.
#[derive(Debug)]
pub struct Ingested {
    /// The comparison made when the snapshot was stored.
    pub comparison: Comparison,
    /// False when the very same report was stored before.
    pub created: bool,
}

/// Stores and judges a report. Another report under the same run id is a conflict, and so is one that is not what was
/// asked for under this id.
///
/// The judging comes before the transaction, so that no lock is held while it computes. Of two uploads of one run at
/// the same time both judge, one stores, and the other finds it stored.
pub async fn ingest(state: &AppState, report: Arc<Report>) -> Result<Ingested> {
    bounds::check(&report).map_err(Error::Unfit)?;
    let unpacked = Arc::clone(&report);
    let (figures, packed) =
        state.compute(move || Ok::<_, Error>((Figures::of(&unpacked), pack::pack(&unpacked)?))).await??;
    if let Some(stored) = find(state, &report, &packed).await? {
        return Ok(stored);
    }
    let job = store::jobs::look(state.pool(), report.run_id).await?;
    if let Some(job) = &job {
        is_asked_for(&report, job)?;
    }
    let measured = Arc::clone(&report);
    let run = Arc::new(state.compute(move || Run::of(&measured)).await?);
    let comparison = verdict::judge_new(state, &report, &run).await?;
    let judged_again = match job.as_ref().and_then(|job| job.baseline_of) {
        Some(waits) => backfill::judge_waiting(state, &report, &run, &comparison, waits).await?,
        None => Vec::new(),
    };

    let mut transaction = store::begin(state.pool()).await?;
    // Nobody asks for a run of this id meanwhile, and no other upload of it is under way.
    store::jobs::hold(&mut *transaction, &format!("run {}", report.run_id)).await?;
    projects::ensure(&mut *transaction, &report.project, state.new_projects()).await?;
    testbeds::ensure(&mut *transaction, &report.testbed).await?;
    let job = store::jobs::lock(&mut transaction, report.run_id).await?;
    if !snapshots::insert(&mut *transaction, &report, &figures, &run, comparison.verdict).await? {
        drop(transaction);
        let gone = || Error::internal("a run is stored, and is not");
        return find(state, &report, &packed).await?.ok_or_else(gone);
    }
    reports::insert(&mut *transaction, report.run_id, &packed).await?;
    verdicts::insert(&mut *transaction, report.run_id, &comparison).await?;
    let missed = match &job {
        Some(job) => {
            is_asked_for(&report, job)?;
            jobs::measured(&mut transaction, job).await?;
            backfill::queue(&mut transaction, &report, &comparison, job).await?
        }
        None => {
            jobs::tell_upload(&mut transaction, &report, &comparison).await?;
            false
        }
    };
    for again in &judged_again {
        backfill::replace(&mut transaction, again).await?;
    }
    store::commit(transaction).await?;
    state.metrics().verdict(comparison.verdict.name());
    tracing::info!(project = %report.project, run_id = %report.run_id, verdict = comparison.verdict.name(), "stored");
    let caught_up = if missed { backfill::catch_up(state, &report).await? } else { None };
    Ok(Ingested { comparison: caught_up.unwrap_or(comparison), created: true })
}

/// A report belongs to the run that was asked for under its id: same project, and the commit that was named.
fn is_asked_for(report: &Report, job: &Job) -> Result<()> {
    let refused = |what: String| {
        let detail = format!("run {} was asked for {what}: this report is not of it", report.run_id);
        Err(Error::Conflict(detail))
    };
    if report.project != job.run.project {
        return refused("in another project".to_owned());
    }
    match (&job.run.revision.commit, &report.revision.commit) {
        (Some(asked), Some(measured)) if !asked.is_same(measured) => refused(format!("at commit {asked}")),
        _ => Ok(()),
    }
}

/// The stored comparison, if this very report is stored.
async fn find(state: &AppState, report: &Report, packed: &reports::Packed) -> Result<Option<Ingested>> {
    let Some(sha256) = reports::sha256(state.pool(), report.run_id).await? else { return Ok(None) };
    if sha256 != packed.sha256 {
        let detail = format!("run {} is stored already, with another report: a run is measured once", report.run_id);
        return Err(Error::Conflict(detail));
    }
    let comparison = verdicts::get(state.pool(), report.run_id).await?;
    let comparison = comparison.ok_or_else(|| Error::internal("a snapshot without its verdict"))?;
    Ok(Some(Ingested { comparison, created: false }))
}

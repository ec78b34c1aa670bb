//! Judging: finds the baseline in the store, reads the reports, and asks the domain.

use std::sync::Arc;

use plimsoll_domain::baseline::{self, Choice, Measured};
use plimsoll_domain::comparison::Comparison;
use plimsoll_domain::ids::{ProjectSlug, RunId};
use plimsoll_domain::noise::Noise;
use plimsoll_domain::policy::Policy;
use plimsoll_domain::report::Report;
use plimsoll_domain::verdict;
pub use plimsoll_domain::verdict::Run;

use super::{Error, Result, pack};
use crate::state::AppState;
use crate::store::{self, Connection, Executor};

/// A run that is about to be stored.
#[derive(Debug, Clone)]
pub struct Coming {
    pub report: Arc<Report>,
    pub run: Arc<Run>,
    pub accepted: bool,
}

/// The comparison of a new report, prepared as `run`, with the baseline that the rule chooses for it.
pub async fn judge_new(
    state: &AppState,
    connection: &mut Connection,
    candidate: &Report,
    run: &Run,
) -> Result<Comparison> {
    judge(state, connection, candidate, run, None).await
}

/// The same, as if `coming` were stored already.
pub async fn judge_beside(state: &AppState, candidate: &Report, run: &Run, coming: Coming) -> Result<Comparison> {
    let mut connection = store::acquire(state.pool()).await?;
    judge(state, &mut connection, candidate, run, Some(coming)).await
}

async fn judge(
    state: &AppState,
    connection: &mut Connection,
    candidate: &Report,
    run: &Run,
    coming: Option<Coming>,
) -> Result<Comparison> {
    let mut earlier = store::snapshots::comparable(&mut **connection, candidate).await?;
    let coming = coming.filter(|coming| store::snapshots::compares(candidate, &coming.report));
    earlier.extend(coming.as_ref().map(|Coming { report, accepted, .. }| Measured {
        run_id: report.run_id,
        revision: report.revision.clone(),
        started_at: report.started_at,
        accepted: *accepted,
    }));
    let choice = baseline::choose(&candidate.revision, candidate.started_at, &earlier);
    let policy = policy_of(&mut **connection, &candidate.project).await?;
    let (run_ids, because) = choice.map_or((Vec::new(), None), |Choice { run_ids, because }| (run_ids, Some(because)));
    let mut runs = Vec::new();
    for run_id in run_ids {
        match coming.as_ref().filter(|coming| coming.report.run_id == run_id) {
            Some(coming) => runs.push(Arc::clone(&coming.run)),
            None => runs.push(Arc::new(prepared_over(state, connection, run_id).await?)),
        }
    }
    runs.sort_by_key(|run| std::cmp::Reverse((run.started_at(), run.run_id())));
    let runs: Vec<&Run> = runs.iter().map(AsRef::as_ref).collect();
    Ok(verdict::judge_runs(&runs, because, run, &policy, &Noise::default()))
}

/// Any two snapshots beside each other, by the policy of the candidate's project.
pub async fn compare(state: &AppState, baseline: RunId, candidate: RunId) -> Result<Comparison> {
    let _turn = state.turn_to_read().await?;
    let (baseline, candidate) = (prepared(state, baseline).await?, prepared(state, candidate).await?);
    compare_prepared(state, &baseline, &candidate).await
}

/// The same of runs that are at hand.
pub async fn compare_prepared(state: &AppState, baseline: &Run, candidate: &Run) -> Result<Comparison> {
    let policy = policy_of(state.pool(), &candidate.head().project).await?;
    Ok(verdict::judge_runs(&[baseline], None, candidate, &policy, &Noise::default()))
}

/// A stored run, prepared for comparisons: as it was kept, else out of its report. Whoever asks has a turn.
pub async fn prepared(state: &AppState, run_id: RunId) -> Result<Run> {
    prepared_over(state, &mut store::acquire(state.pool()).await?, run_id).await
}

async fn prepared_over(state: &AppState, connection: &mut Connection, run_id: RunId) -> Result<Run> {
    if let Some(run) = store::snapshots::prepared(&mut **connection, run_id).await? {
        return Ok(run);
    }
    let packed = stored(&mut **connection, run_id).await?;
    state.compute(move || Ok(Run::of(&pack::unpack(&packed)?))).await?
}

/// A stored report. Whoever asks has a turn.
pub async fn report(state: &AppState, run_id: RunId) -> Result<Report> {
    let packed = stored(state.pool(), run_id).await?;
    state.compute(move || pack::unpack(&packed)).await?
}

async fn stored(executor: impl Executor<'_>, run_id: RunId) -> Result<store::reports::Packed> {
    store::reports::get(executor, run_id).await?.ok_or_else(|| Error::not_found(format!("run {run_id}")))
}

async fn policy_of(executor: impl Executor<'_>, project: &ProjectSlug) -> Result<Policy> {
    let project = store::projects::get(executor, project).await?;
    Ok(project.map(|project| project.policy).unwrap_or_default())
}

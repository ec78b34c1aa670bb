//! Judging: finds the baseline in the store, reads the reports, and asks the domain.

use std::sync::Arc;

use plimsoll_domain::baseline::{self, Choice, Measured};
use plimsoll_domain::comparison::Comparison;
use plimsoll_domain::ids::RunId;
use plimsoll_domain::noise::Noise;
use plimsoll_domain::policy::Policy;
use plimsoll_domain::report::Report;
use plimsoll_domain::verdict::{self, Baseline};

use super::pack;
use crate::error::{AppError, Result};
use crate::state::AppState;
use crate::store;

/// A run that is about to be stored.
#[derive(Debug, Clone)]
pub struct Coming {
    pub report: Arc<Report>,
    pub accepted: bool,
}

/// The comparison of a new report with the baseline that the rule chooses for it.
pub async fn judge_new(state: &AppState, candidate: Arc<Report>) -> Result<Comparison> {
    judge(state, candidate, None).await
}

/// The same, as if `coming` were stored already.
pub async fn judge_beside(state: &AppState, candidate: Arc<Report>, coming: Coming) -> Result<Comparison> {
    judge(state, candidate, Some(coming)).await
}

async fn judge(state: &AppState, candidate: Arc<Report>, coming: Option<Coming>) -> Result<Comparison> {
    let mut earlier = store::snapshots::comparable(state.pool(), &candidate).await?;
    let coming = coming.filter(|coming| store::snapshots::compares(&candidate, &coming.report));
    earlier.extend(coming.as_ref().map(|Coming { report, accepted }| Measured {
        run_id: report.run_id,
        revision: report.revision.clone(),
        started_at: report.started_at,
        accepted: *accepted,
    }));
    let choice = baseline::choose(&candidate.revision, candidate.started_at, &earlier);
    let policy = policy_of(state, &candidate).await?;
    let (run_ids, because) = choice.map_or((Vec::new(), None), |Choice { run_ids, because }| (run_ids, Some(because)));
    let mut packed = Vec::new();
    let mut whole = Vec::new();
    for run_id in run_ids {
        match coming.as_ref().filter(|coming| coming.report.run_id == run_id) {
            Some(coming) => whole.push(Arc::clone(&coming.report)),
            None => packed.push(stored(state, run_id).await?),
        }
    }
    state
        .compute(move || {
            let runs = packed.iter().map(pack::unpack).collect::<Result<Vec<_>, _>>()?;
            let mut runs: Vec<&Report> = runs.iter().chain(whole.iter().map(AsRef::as_ref)).collect();
            runs.sort_by_key(|run| std::cmp::Reverse((run.started_at, run.run_id)));
            let baseline = Baseline { runs, chosen_because: because };
            let baseline = (!baseline.runs.is_empty()).then_some(&baseline);
            Ok(verdict::judge(baseline, &candidate, &policy, &Noise::default()))
        })
        .await?
}

/// Any two snapshots beside each other, by the policy of the candidate's project.
pub async fn compare(state: &AppState, baseline: RunId, candidate: RunId) -> Result<Comparison> {
    let (baseline, candidate) = (stored(state, baseline).await?, stored(state, candidate).await?);
    let (baseline, candidate) =
        state.compute(move || Ok::<_, AppError>((pack::unpack(&baseline)?, pack::unpack(&candidate)?))).await??;
    let policy = policy_of(state, &candidate).await?;
    state
        .compute(move || {
            let baseline = Baseline { runs: vec![&baseline], chosen_because: None };
            verdict::judge(Some(&baseline), &candidate, &policy, &Noise::default())
        })
        .await
}

/// A stored report.
pub async fn report(state: &AppState, run_id: RunId) -> Result<Report> {
    let packed = stored(state, run_id).await?;
    state.compute(move || pack::unpack(&packed)).await?
}

async fn stored(state: &AppState, run_id: RunId) -> Result<store::reports::Packed> {
    store::reports::get(state.pool(), run_id).await?.ok_or_else(|| AppError::not_found(format!("run {run_id}")))
}

async fn policy_of(state: &AppState, candidate: &Report) -> Result<Policy> {
    let project = store::projects::get(state.pool(), &candidate.project).await?;
    Ok(project.map(|project| project.policy).unwrap_or_default())
}

//! Judging: finds the baseline in the store, reads the reports, and asks the domain.

use plimsoll_domain::baseline::{self, Choice};
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

/// The comparison of a new report with the baseline that the rule chooses for it.
pub async fn judge_new(state: &AppState, candidate: std::sync::Arc<Report>) -> Result<Comparison> {
    let earlier = store::snapshots::comparable(state.pool(), &candidate).await?;
    let choice = baseline::choose(&candidate.revision, candidate.started_at, &earlier);
    let policy = policy_of(state, &candidate).await?;
    let (run_ids, because) = choice.map_or((Vec::new(), None), |Choice { run_ids, because }| (run_ids, Some(because)));
    let mut packed = Vec::new();
    for run_id in run_ids {
        packed.push(stored(state, run_id).await?);
    }
    state
        .compute(move || {
            let runs = packed.iter().map(pack::unpack).collect::<Result<Vec<_>, _>>()?;
            let baseline = Baseline { runs: runs.iter().collect(), chosen_because: because };
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

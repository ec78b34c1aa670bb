//! Baselines that are missing: measured by jobs of their own, and then the runs that waited are judged again.

use std::sync::Arc;

use plimsoll_domain::comparison::{Comparison, Verdict};
use plimsoll_domain::ids::{CommitSha, RunId};
use plimsoll_domain::job::{Kind, Priority, Wanted};
use plimsoll_domain::report::Report;
use plimsoll_domain::verdict::Run;
use uuid::Uuid;

use super::Result;
use super::jobs::{TAKE_WITHIN, judged, queue as queue_job, tell_upload};
use super::verdict::{self, Coming};
use crate::state::AppState;
use crate::store::jobs::{Job, NewJob};
use crate::store::{self, Transaction, jobs, runners, snapshots, verdicts};

/// Runs that one measured baseline judges again.
const MAX_WAITING: i64 = 10;

/// Queues the measurement of the commit that `report` should have been compared with, if a runner could carry it out,
/// nobody measured it, and nobody cancelled that lately. A run that nobody asked for has none: no runner is known to
/// have its testbed. Nor has a backfill, which would go on to the first commit of all.
///
/// True when the commit was measured already, perhaps while `report` was judged.
pub(super) async fn queue(
    transaction: &mut Transaction,
    report: &Report,
    comparison: &Comparison,
    job: &Job,
) -> Result<bool> {
    if comparison.verdict != Verdict::NoBaseline || job.run.kind == Kind::Backfill {
        return Ok(false);
    }
    let Some(commit) = base(report) else { return Ok(false) };
    if jobs::is_measured(&mut **transaction, report, commit).await? {
        return Ok(true);
    }
    if jobs::is_unwanted(&mut **transaction, &report.project, commit).await?
        || !runners::serves(&mut **transaction, &report.project, &job.run.labels).await?
    {
        return Ok(false);
    }
    let run_id = RunId(Uuid::now_v7());
    let revision = Wanted { commit: Some(commit.clone()), ..Wanted::default() };
    let backfill = NewJob {
        run_id,
        project: &report.project,
        kind: Kind::Backfill,
        priority: Priority::Backfill.rank(),
        revision: &revision,
        plan: job.plan.as_deref(),
        // Only figures by the same plan compare.
        plan_commit: job.plan_commit.as_ref().or(report.revision.commit.as_ref()),
        profile: job.profile,
        labels: &job.run.labels,
        supersedes: None,
        baseline_of: Some(report.run_id),
        requested_by: "server",
        take_within: TAKE_WITHIN,
    };
    if queue_job(transaction, &backfill).await? {
        tracing::info!(project = %report.project, %run_id, baseline_of = %report.run_id, %commit, "queued a backfill");
    }
    Ok(false)
}

/// The commit that a run is compared with first.
fn base(report: &Report) -> Option<&CommitSha> {
    let revision = &report.revision;
    let own = |sha: &&CommitSha| revision.commit.as_ref().is_some_and(|own| own.is_same(sha));
    revision.merge_base.as_ref().filter(|base| !own(base)).or_else(|| revision.ancestors.first())
}

/// A run that waited, and what it is compared with now.
#[derive(Debug)]
pub(super) struct Again {
    waiting: Arc<Report>,
    comparison: Comparison,
}

/// The new comparisons of the runs that waited for `report`, which is about to be stored with `comparison`.
pub(super) async fn judge_waiting(
    state: &AppState,
    report: &Arc<Report>,
    run: &Arc<Run>,
    comparison: &Comparison,
    baseline_of: RunId,
) -> Result<Vec<Again>> {
    let accepted = report.is_valid() && snapshots::is_acceptable(comparison.verdict);
    let mut all = Vec::new();
    for run_id in jobs::waiting_for(state.pool(), report, baseline_of, MAX_WAITING).await? {
        let waiting = Arc::new(verdict::report(state, run_id).await?);
        let prepared = verdict::prepared(state, run_id).await?;
        let coming = Coming { report: Arc::clone(report), run: Arc::clone(run), accepted };
        let comparison = verdict::judge_beside(state, &waiting, &prepared, coming).await?;
        if comparison.verdict != Verdict::NoBaseline {
            all.push(Again { waiting, comparison });
        }
    }
    Ok(all)
}

/// Judges a stored run again whose baseline was stored while it was judged. `None` when that changes nothing.
pub(super) async fn catch_up(state: &AppState, report: &Arc<Report>) -> Result<Option<Comparison>> {
    let run = verdict::prepared(state, report.run_id).await?;
    let comparison = verdict::judge_new(state, &mut store::acquire(state.pool()).await?, report, &run).await?;
    if comparison.verdict == Verdict::NoBaseline {
        return Ok(None);
    }
    let again = Again { waiting: Arc::clone(report), comparison };
    let mut transaction = store::begin(state.pool()).await?;
    replace(&mut transaction, &again).await?;
    store::commit(transaction).await?;
    Ok(Some(again.comparison))
}

/// Replaces a verdict that is still `no_baseline`, and tells so.
pub(super) async fn replace(transaction: &mut Transaction, again: &Again) -> Result<()> {
    let Again { waiting, comparison } = again;
    let run_id = waiting.run_id;
    let job = jobs::lock(transaction, run_id).await?;
    if !verdicts::replace(transaction, run_id, comparison).await? {
        return Ok(());
    }
    tracing::info!(project = %waiting.project, %run_id, verdict = comparison.verdict.name(), "judged again");
    match job {
        Some(_) => judged(transaction, run_id).await,
        None => tell_upload(transaction, waiting, comparison).await,
    }
}

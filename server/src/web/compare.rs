//! Two snapshots beside each other: the verdict, every figure with its interval, the curves, and what changed.

mod changes;
mod judged;
mod metrics;

use askama::Template;
use axum::extract::{Path, Query, State};
use axum::response::{IntoResponse, Redirect, Response};
use plimsoll_domain::comparison::{Comparison, Metric, MetricVerdict, Trend, Verdict};
use plimsoll_domain::figures::Figures;
use plimsoll_domain::format;
use plimsoll_domain::ids::ProjectSlug;
use plimsoll_domain::sentence;
use serde::Deserialize;

use self::changes::Changes;
use self::metrics::Group;
use super::view::{
    Drawn, Frame, Here, Link, Look, Noticed, Page, Phrase, View, compare_href, minute, render, snapshot_href, word,
};
use crate::charts::{Curve, Datum, IntervalAxis, Stairs, Tone, compared_stairs, distribution};
use crate::error::{AppError, Result};
use crate::state::AppState;
use crate::store;
use crate::store::snapshots::SnapshotRow;
use crate::tasks::verdict;

#[derive(Debug, Deserialize)]
pub(super) struct Pair {
    baseline: String,
    candidate: String,
}

#[derive(Debug, Default, Deserialize)]
pub(super) struct On {
    /// A testbed's fingerprint or label, where a revision was measured on several.
    on: Option<String>,
}

/// One side as the page names it.
struct Named {
    label: String,
    sha: Option<String>,
    href: String,
}

#[derive(Template)]
#[template(path = "compare.html")]
struct ComparePage {
    page: Page,
    project: ProjectSlug,
    testbed: String,
    measured_at: String,
    baseline: Option<Named>,
    candidate: Named,
    baseline_short: String,
    candidate_short: String,
    word: String,
    say: Phrase,
    facts: Vec<Link>,
    metrics_heading: String,
    axis_head: Drawn,
    groups: Vec<Group>,
    notes: Vec<String>,
    findings: Vec<Noticed>,
    advice: String,
    views: Vec<View>,
    changes_lead: String,
    changes: Vec<changes::Group>,
    judged_lead: String,
    judged: Vec<(String, Datum)>,
    reversed_href: String,
    json_href: String,
}

/// The form with two selects leads here; the address of a comparison is a path.
pub(super) async fn redirect(
    State(state): State<AppState>,
    frame: Frame,
    Path(project): Path<String>,
    Query(pair): Query<Pair>,
) -> Result<Response> {
    let (project, _) = frame.within(&state, &project).await?;
    let (baseline, candidate) =
        (one(&state, &project, &pair.baseline, None).await?, one(&state, &project, &pair.candidate, None).await?);
    Ok(Redirect::to(&compare_href(&project, baseline.run_id, candidate.run_id)).into_response())
}

pub(super) async fn page(
    State(state): State<AppState>,
    frame: Frame,
    Path((project, pair)): Path<(String, String)>,
    Query(On { on }): Query<On>,
) -> Result<Response> {
    let (project, frame) = frame.within(&state, &project).await?;
    let Some((baseline, candidate)) = pair.split_once("...") else {
        return Err(AppError::not_found(format!("comparison {pair:?}: write BASELINE...CANDIDATE")));
    };
    let _turn = state.turn_to_read().await?;
    let base = one(&state, &project, baseline, on.as_deref()).await?;
    let cand = one(&state, &project, candidate, on.as_deref()).await?;
    let compared = Compared::load(&state, base, cand).await?;
    Ok(render(&state.compute(move || ComparePage::new(frame, &compared)).await?))
}

/// The charts of a comparison. Whoever asks has a turn.
pub(super) async fn charts(state: &AppState, base: SnapshotRow, cand: SnapshotRow) -> Result<Vec<View>> {
    let compared = Compared::load(state, base, cand).await?;
    Ok(state.compute(move || compared.views()).await?)
}

async fn one(state: &AppState, project: &ProjectSlug, name: &str, on: Option<&str>) -> Result<SnapshotRow> {
    let found = store::resolve::resolve(state.pool(), project, name, on).await?;
    found.ok_or_else(|| {
        let on = on.map(|testbed| format!(" on {testbed}")).unwrap_or_default();
        AppError::not_found(format!("snapshot {name:?} in {project}{on}"))
    })
}

/// Two runs and what is said of them.
struct Compared {
    comparison: Comparison,
    /// It is the stored judgement, which was made against this very baseline.
    as_judged: bool,
    base: Run,
    cand: Run,
}

impl Compared {
    async fn load(state: &AppState, base: SnapshotRow, cand: SnapshotRow) -> Result<Self> {
        let (base, cand) = (Run::of(state, base).await?, Run::of(state, cand).await?);
        let stored = store::verdicts::get(state.pool(), cand.row.run_id).await?;
        let stored =
            stored.filter(|c| c.baseline.as_ref().is_some_and(|side| side.run_ids.first() == Some(&base.row.run_id)));
        let (comparison, as_judged) = match stored {
            Some(comparison) => (comparison, true),
            None => (verdict::compare_prepared(state, &base.run, &cand.run).await?, false),
        };
        Ok(Self { comparison, as_judged, base, cand })
    }

    fn views(&self) -> Vec<View> {
        let Self { comparison, base, cand, .. } = self;
        let tone = match Look::of(comparison.verdict).tone() {
            // A candidate is never drawn like its baseline.
            Tone::Void | Tone::Plain => Tone::Better,
            tone => tone,
        };
        let (old, new) = (&base.figures, &cand.figures);
        let stairs = compared_stairs(
            Stairs { label: &base.row.label, figures: old, tone: Tone::Baseline },
            Stairs { label: &cand.row.label, figures: new, tone },
        );
        let (heading, lead) = stairs_title(old, new);
        let stairs = stairs.map(|chart| View { id: "staircase", heading, lead, what: "The staircases", chart });
        let distribution = base.run.soak().zip(cand.run.soak()).and_then(|((before, old), (now, new))| {
            let chart = distribution(&[
                Curve { label: &base.row.label, tone: Tone::Baseline, histogram: old },
                Curve { label: &cand.row.label, tone, histogram: new },
            ])?;
            let loads = match before == now {
                true => format!("{}; the axis stretches the tail.", format::workers(before)),
                false => format!("{} against {before}; the axis stretches the tail.", format::workers(now)),
            };
            let heading = distribution_title(comparison);
            Some(View { id: "distribution", heading, lead: loads, what: "The distributions", chart })
        });
        [stairs, distribution].into_iter().flatten().collect()
    }
}

/// One side.
struct Run {
    row: SnapshotRow,
    run: verdict::Run,
    figures: Figures,
}

impl Run {
    async fn of(state: &AppState, row: SnapshotRow) -> Result<Self> {
        let figures = store::snapshots::figures(state.pool(), row.run_id).await?;
        let figures = figures.ok_or_else(|| AppError::not_found(format!("run {}", row.run_id)))?;
        Ok(Self { run: verdict::prepared(state, row.run_id).await?, figures, row })
    }
}

impl ComparePage {
    fn new(frame: Frame, compared: &Compared) -> Self {
        let Compared { comparison, as_judged, base, cand } = compared;
        let as_judged = *as_judged;
        let look = Look::of(comparison.verdict);
        let project = cand.row.project.clone();
        let (verdict, base_label, label) = (comparison.verdict, &base.row.label, &cand.row.label);
        let axis = IntervalAxis::of(comparison);
        let changes = Changes::between(&base.run, &cand.run);
        let title = format!("{} {}: {project} {label} against {base_label}", verdict.mark(), verdict.word());
        let findings: Vec<Noticed> = comparison.findings.iter().map(Noticed::of).collect();
        Self {
            page: Page::new(title, look, frame, Here::Compare),
            testbed: cand.row.testbed.label.clone(),
            measured_at: minute(cand.row.started_at),
            baseline: Some(named(&base.row)),
            candidate: named(&cand.row),
            baseline_short: brief(base_label),
            candidate_short: brief(label),
            word: word(verdict),
            say: Phrase::figures(&comparison.sentence),
            facts: facts(comparison, as_judged),
            metrics_heading: heading(comparison),
            axis_head: Drawn(axis.head()),
            groups: metrics::groups(comparison, &axis),
            notes: metrics::notes(comparison),
            advice: sentence::advice(comparison),
            findings,
            views: compared.views(),
            changes_lead: changes.lead(),
            changes: changes.groups,
            judged_lead: judged::lead(comparison, as_judged),
            judged: judged::facts(comparison, &base.figures, &cand.figures),
            reversed_href: compare_href(&project, cand.row.run_id, base.row.run_id),
            json_href: if as_judged {
                format!("/api/v1/snapshots/{}/comparison", cand.row.run_id)
            } else {
                format!("/api/v1/comparisons?baseline={}&candidate={}", base.row.run_id, cand.row.run_id)
            },
            project,
        }
    }
}

fn named(row: &SnapshotRow) -> Named {
    let sha = row.revision.commit.as_ref().map(|commit| commit.short().to_owned());
    Named {
        label: row.label.clone(),
        sha: sha.filter(|sha| !row.label.starts_with(sha)),
        href: snapshot_href(&row.project, row.run_id),
    }
}

/// For a column's heading.
fn brief(label: &str) -> String {
    if label.chars().count() <= 16 {
        return label.to_owned();
    }
    label.chars().take(15).chain(['…']).collect()
}

fn facts(comparison: &Comparison, as_judged: bool) -> Vec<Link> {
    let mut facts = Vec::new();
    if comparison.provisional {
        facts.push(Link::none("Provisional: the noise between runs is not learnt yet"));
    }
    if as_judged && let Some(because) = comparison.baseline.as_ref().and_then(|side| side.chosen_because.as_ref()) {
        facts.push(Link::none(format!("Baseline: {because}")));
    }
    if !as_judged {
        facts.push(Link::none("Compared on request: the stored verdict is not changed by it"));
    }
    facts
}

fn heading(comparison: &Comparison) -> String {
    let gated: Vec<_> = comparison.metrics.iter().filter(|metric| metric.gated).collect();
    let count = |verdict| gated.iter().filter(|metric| metric.verdict == verdict).count();
    match (comparison.verdict, count(MetricVerdict::Regressed), count(MetricVerdict::Inconclusive)) {
        (Verdict::Invalid | Verdict::NoBaseline, ..) => "The figures, not judged".to_owned(),
        (_, 0, 0) => format!("All {} gated metrics pass", gated.len()),
        (_, 0, n) => format!("{} of {} gated metrics {} undecided", n, gated.len(), if n == 1 { "is" } else { "are" }),
        (_, n, _) => format!("{} of {} gated metrics regressed", n, gated.len()),
    }
}

fn stairs_title(old: &Figures, new: &Figures) -> (String, String) {
    let lead = "Each point is one step; where the lines part, the load begins to matter.".to_owned();
    let heading = match (old.capacity, new.capacity) {
        (Some(a), Some(b)) if a.workers != b.workers && !a.lower_bound && !b.lower_bound => {
            format!("TPS bends at {} instead of {}", format::workers(b.workers), format::count(a.workers.into()))
        }
        (Some(a), Some(b)) => {
            format!("Capacity {} TPS, before {}", format::number(b.tps), format::number(a.tps))
        }
        _ => "TPS and P99 against workers".to_owned(),
    };
    (heading, lead)
}

fn distribution_title(comparison: &Comparison) -> String {
    let p99 = comparison.metrics.iter().find(|metric| metric.name == Metric::P99);
    let noise = p99.and_then(|p99| p99.trend()).is_some_and(|trend| matches!(trend, Trend::WithinNoise));
    match p99.and_then(|p99| p99.baseline.zip(p99.candidate)) {
        Some(_) if noise => "P99 is the same within noise".to_owned(),
        Some((old, new)) if format::number(old) != format::number(new) => {
            let verb = if new > old { "rose" } else { "fell" };
            format!("P99 {verb} by {}", format::latency((new - old).abs()))
        }
        _ => "How latencies are distributed".to_owned(),
    }
}

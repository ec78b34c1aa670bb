//! One snapshot: three answers, the curves behind them, every step, and where it comes from.

mod answers;
mod facts;
mod tables;

use askama::Template;
use axum::extract::{Path, State};
use axum::response::{IntoResponse, Redirect, Response};
use plimsoll_domain::comparison::{Comparison, Verdict};
use plimsoll_domain::figures::Figures;
use plimsoll_domain::ids::{ProjectSlug, RunId};
use plimsoll_domain::report::Report;
use plimsoll_domain::sentence;

use self::answers::Ask;
use self::tables::{Outcomes, Steps};
use super::view::{Frame, Here, Link, Look, Noticed, Page, Phrase, View, judged_href, minute, render, snapshot_href};
use crate::charts::{Curve, Datum, Stairs, Tone, distribution, snapshot_stairs, soak};
use crate::error::{AppError, Result};
use crate::state::AppState;
use crate::store;
use crate::store::snapshots::SnapshotRow;
use crate::tasks::verdict;

/// All that the page is made of.
struct Snapshot {
    row: SnapshotRow,
    report: Report,
    figures: Figures,
    comparison: Option<Comparison>,
    baseline: Option<Figures>,
}

#[derive(Template)]
#[template(path = "snapshot.html")]
struct SnapshotPage {
    page: Page,
    project: ProjectSlug,
    testbed: String,
    testbed_href: String,
    measured_at: String,
    label: String,
    sha: Option<String>,
    word: String,
    say: Phrase,
    facts: Vec<Link>,
    asks: [Ask; 3],
    views: Vec<View>,
    steps: Steps,
    outcomes: Outcomes,
    findings: Vec<Noticed>,
    findings_lead: String,
    in_order: Vec<(String, Datum)>,
    plan: Vec<(String, Datum)>,
    bed: Vec<(String, Datum)>,
    revision: Vec<(String, Datum)>,
    run: Vec<(String, Datum)>,
    compared_href: Option<String>,
    json_href: String,
}

pub(super) async fn page(
    State(state): State<AppState>,
    frame: Frame,
    Path((project, run)): Path<(String, String)>,
) -> Result<Response> {
    let (project, frame) = frame.within(&state, &project).await?;
    let missing = || AppError::not_found(format!("snapshot {run:?} in {project}"));
    let Ok(run_id) = run.parse::<RunId>() else {
        // A tag or a commit leads to the newest snapshot of it.
        let row = store::resolve::resolve(state.pool(), &project, &run, None).await?.ok_or_else(missing)?;
        return Ok(Redirect::to(&snapshot_href(&project, row.run_id)).into_response());
    };
    let row = store::snapshots::get(state.pool(), run_id).await?.filter(|row| row.project == project);
    let row = row.ok_or_else(missing)?;
    let _turn = state.turn_to_read().await?;
    let loaded = Loaded::of(&state, row).await?;
    Ok(render(&state.compute(move || SnapshotPage::new(frame, loaded.with_figures())).await?))
}

/// The charts of a snapshot. Whoever asks has a turn.
pub(super) async fn charts(state: &AppState, row: SnapshotRow) -> Result<Vec<View>> {
    let loaded = Loaded::of(state, row).await?;
    Ok(state.compute(move || loaded.with_figures().views()).await?)
}

/// What the store has of it.
struct Loaded {
    row: SnapshotRow,
    report: Report,
    comparison: Option<Comparison>,
    baseline: Option<Figures>,
}

impl Loaded {
    async fn of(state: &AppState, row: SnapshotRow) -> Result<Self> {
        let report = verdict::report(state, row.run_id).await?;
        let comparison = store::verdicts::get(state.pool(), row.run_id).await?;
        let baseline = comparison.as_ref().and_then(|c| c.baseline.as_ref()?.run_ids.first().copied());
        let baseline = match baseline {
            Some(run_id) => store::snapshots::figures(state.pool(), run_id).await?,
            None => None,
        };
        Ok(Self { row, report, comparison, baseline })
    }

    fn with_figures(self) -> Snapshot {
        let Self { row, report, comparison, baseline } = self;
        Snapshot { figures: Figures::of(&report), row, report, comparison, baseline }
    }
}

impl SnapshotPage {
    fn new(frame: Frame, of: Snapshot) -> Self {
        let Snapshot { row, report, figures, comparison, .. } = &of;
        let look = Look::of(row.verdict);
        let (word, title) = (word(row, comparison.as_ref()), format!("Snapshot of {} {}", row.project, row.label));
        let say = if row.valid { sentence::summary(figures) } else { row.sentence.clone() };
        let compared_with = comparison.as_ref().and_then(|c| c.baseline.as_ref()?.run_ids.first().copied());
        let compared_href = judged_href(row, compared_with);
        let findings: Vec<Noticed> = report.findings.iter().map(Noticed::of).collect();
        let voids = findings.iter().filter(|finding| finding.voids).count();
        Self {
            page: Page::new(title, look, frame, Here::Snapshot),
            project: row.project.clone(),
            testbed: row.testbed.label.clone(),
            testbed_href: format!("/{}/history?testbed={}", row.project, row.testbed.fingerprint),
            measured_at: minute(row.started_at),
            label: row.label.clone(),
            sha: row.revision.commit.as_ref().map(|c| c.short().to_owned()).filter(|sha| !row.label.starts_with(sha)),
            say: Phrase::figures(&say),
            facts: facts::headline(&of, compared_href.as_deref()),
            asks: answers::three(&of),
            views: of.views(),
            steps: tables::steps(report, figures),
            outcomes: tables::outcomes(report, figures),
            findings_lead: match voids {
                0 => "Worth knowing; the figures stand.".to_owned(),
                _ => {
                    "A cause outside the service spoiled the figures: they are shown and count for nothing.".to_owned()
                }
            },
            findings,
            in_order: facts::in_order(report, figures),
            plan: facts::plan(report),
            bed: facts::testbed(report),
            revision: facts::revision(report),
            run: facts::run(report),
            json_href: format!("/api/v1/snapshots/{}/report", row.run_id),
            compared_href,
            word,
        }
    }
}

fn word(row: &SnapshotRow, comparison: Option<&Comparison>) -> String {
    let against = comparison.and_then(|c| c.baseline.as_ref()).map(|side| side.revision.as_str());
    let word = super::view::word(row.verdict);
    match (row.verdict, against) {
        (Verdict::Pass | Verdict::Regressed | Verdict::Inconclusive, Some(against)) => {
            format!("{word} against {against}")
        }
        _ => word,
    }
}

impl Snapshot {
    fn views(&self) -> Vec<View> {
        [self.stairs(), self.soak(), self.distribution()].into_iter().flatten().collect()
    }

    fn stairs(&self) -> Option<View> {
        let run = Stairs { label: &self.row.label, figures: &self.figures, tone: Tone::Plain };
        let side = self.comparison.as_ref().and_then(|c| c.baseline.as_ref());
        let base = self.baseline.as_ref().zip(side).map(|(figures, side)| Stairs {
            label: &side.revision,
            figures,
            tone: Tone::Baseline,
        });
        let chart = snapshot_stairs(run, base)?;
        let (heading, lead) = answers::stairs_title(&self.figures);
        Some(View { id: "staircase", heading, lead, what: "The staircase", chart })
    }

    fn soak(&self) -> Option<View> {
        let step = self.report.stability()?;
        let figures = &self.figures.stability.as_ref()?.step;
        let chart = soak(step, figures, &self.row.label)?;
        let (heading, lead) = answers::soak_title(step, figures);
        Some(View { id: "soak", heading, lead, what: "Latency over time", chart })
    }

    fn distribution(&self) -> Option<View> {
        let step = self.report.stability()?;
        let figures = &self.figures.stability.as_ref()?.step;
        let curve = Curve { label: &self.row.label, tone: Tone::Plain, histogram: &step.latency };
        let (heading, lead) = answers::distribution_title(figures);
        Some(View { id: "distribution", heading, lead, what: "The distribution", chart: distribution(&[curve])? })
    }
}

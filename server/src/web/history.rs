//! A project's history: P99 and capacity over releases.

use std::collections::HashMap;

use askama::Template;
use axum::extract::{Path, Query, State};
use axum::response::{IntoResponse, Redirect, Response};
use plimsoll_domain::comparison::{Metric, MetricVerdict, Verdict};
use plimsoll_domain::format;
use plimsoll_domain::ids::{ProjectSlug, RunId};
use serde::Deserialize;

use super::view::{
    Frame, Here, Link, Look, Page, Phrase, VerdictWord, day, judged_href, query_value, render, sentence, snapshot_href,
    word,
};
use crate::charts::{Chart, Datum, History, Release, Standing, Worse, history};
use crate::error::Result;
use crate::state::AppState;
use crate::store;
use crate::store::pages::Judged;
use crate::store::snapshots::{Filter, SnapshotRow, TestbedRef};

/// Snapshots of one page; older ones are a link away.
const PAGE: u32 = 100;

#[derive(Debug, Default, Deserialize)]
pub(super) struct Wanted {
    /// A testbed's fingerprint or label; by default the one measured last.
    testbed: Option<String>,
    /// Only what is older than this run.
    before: Option<RunId>,
}

#[derive(Template)]
#[template(path = "history.html")]
struct HistoryPage {
    page: Page,
    project: ProjectSlug,
    heading: String,
    /// The newest snapshot's verdict.
    word: Option<String>,
    say: Phrase,
    facts: Vec<Link>,
    testbeds: Vec<Choice>,
    chart_heading: String,
    chart: Option<Chart>,
    /// What is not drawn, and why.
    not_drawn: Option<&'static str>,
    baselines: Vec<Choice>,
    candidates: Vec<Choice>,
    table_lead: String,
    rows: Vec<Row>,
    older: Option<String>,
    newest: Option<String>,
    json_href: String,
}

struct Choice {
    value: String,
    text: String,
    selected: bool,
}

struct Row {
    href: String,
    label: String,
    sha: Datum,
    day: String,
    workers: Datum,
    valid: bool,
    hit: bool,
    p99: Datum,
    interval: Datum,
    capacity: Datum,
    errors: Datum,
    verdict: VerdictWord,
}

pub(super) async fn redirect(
    State(state): State<AppState>,
    frame: Frame,
    Path(project): Path<String>,
) -> Result<Response> {
    let (project, _) = frame.within(&state, &project).await?;
    Ok(Redirect::to(&format!("/{project}/history")).into_response())
}

pub(super) async fn page(
    State(state): State<AppState>,
    frame: Frame,
    Path(project): Path<String>,
    Query(wanted): Query<Wanted>,
) -> Result<Response> {
    let (project, frame) = frame.within(&state, &project).await?;
    let testbeds = store::snapshots::testbeds(state.pool(), &project).await?;
    let asked = wanted.testbed.as_deref().filter(|testbed| !testbed.is_empty());
    let testbed = asked.map(ToOwned::to_owned).or_else(|| Some(testbeds.first()?.fingerprint.to_string()));
    let part = Filter { testbed: testbed.as_deref(), before: wanted.before, limit: PAGE, ..Filter::default() };
    let rows = store::snapshots::history(state.pool(), &project, part).await?;
    let run_ids: Vec<RunId> = rows.iter().map(|row| row.run_id).collect();
    let judged: HashMap<RunId, Judged> = store::pages::judged(state.pool(), &run_ids).await?.into_iter().collect();
    let older = wanted.before.is_some();
    let page =
        state.compute(move || HistoryPage::new(frame, project, &testbeds, testbed, &rows, &judged, older)).await?;
    Ok(render(&page))
}

impl HistoryPage {
    /// `rows` are those of one testbed, the newest first; `older` tells that newer ones were left out.
    fn new(
        frame: Frame,
        project: ProjectSlug,
        measured_on: &[TestbedRef],
        testbed: Option<String>,
        rows: &[SnapshotRow],
        judged: &HashMap<RunId, Judged>,
        older: bool,
    ) -> Self {
        let newest = rows.first();
        let look = newest.map_or(Look::Plain, |row| Look::of(row.verdict));
        let bed = newest.map(|row| row.testbed.label.clone());
        let heading = heading(rows, bed.as_deref());
        let filter = testbed.as_deref().unwrap_or_default();
        let asked = query_value(filter);
        let chart = chart(rows, judged);
        let more = (rows.len() == PAGE as usize).then(|| rows.last()).flatten();
        Self {
            page: Page::new(format!("{project}: history"), look, frame, Here::History),
            word: newest.map(|row| word(row.verdict)),
            say: say(newest, older),
            facts: facts(newest, rows, judged),
            testbeds: testbeds(measured_on, filter),
            chart_heading: chart_heading(rows, judged),
            chart,
            not_drawn: not_drawn(rows),
            baselines: choices(rows, 1),
            candidates: choices(rows, 0),
            table_lead: table_lead(rows),
            rows: rows.iter().map(|row| Row::new(row, judged.get(&row.run_id))).collect(),
            older: more.map(|row| format!("/{project}/history?testbed={asked}&before={}", row.run_id)),
            newest: older.then(|| format!("/{project}/history?testbed={asked}")),
            json_href: format!("/api/v1/projects/{project}/snapshots?testbed={asked}"),
            heading,
            project,
        }
    }
}

impl Row {
    fn new(row: &SnapshotRow, judged: Option<&Judged>) -> Self {
        let withheld = "not measured, or withheld for too few requests";
        let interval = row.p99_interval_ms.map_or_else(
            || Datum::Absent(withheld.to_owned()),
            |[low, high]| Datum::Is(format!("{} to {}", format::number(low), format::number(high))),
        );
        let commit = row.revision.commit.as_ref();
        Self {
            href: snapshot_href(&row.project, row.run_id),
            label: row.label.clone(),
            sha: commit.map_or_else(|| Datum::Absent("no commit is known".into()), |c| Datum::Is(c.short().to_owned())),
            day: day(row.started_at),
            workers: Datum::of(row.stability_workers.map(f64::from), |n| format::count(n as u64), "no stability phase"),
            valid: row.valid,
            hit: row.verdict == Verdict::Regressed,
            p99: Datum::of(row.p99_ms, format::number, withheld),
            interval: if row.valid { interval } else { Datum::Absent("an invalid run is not judged".into()) },
            capacity: Datum::of(row.capacity_tps, format::number, "no staircase, or no step within the error limit"),
            errors: Datum::of(row.error_rate, format::percent, "no request finished"),
            verdict: VerdictWord {
                verdict: row.verdict,
                href: judged
                    .and_then(|judged| judged_href(row, judged.baseline))
                    .or_else(|| Some(snapshot_href(&row.project, row.run_id))),
            },
        }
    }
}

fn heading(rows: &[SnapshotRow], testbed: Option<&str>) -> String {
    match (rows, testbed) {
        ([], _) | (_, None) => "No snapshots here".to_owned(),
        ([only], Some(testbed)) => format!("1 snapshot on {testbed}, {}", only.label),
        ([newest, .., oldest], Some(testbed)) => {
            format!("{} snapshots on {testbed}, {} to {}", format::count(rows.len() as u64), oldest.label, newest.label)
        }
    }
}

fn say(newest: Option<&SnapshotRow>, older: bool) -> Phrase {
    match newest {
        None if older => Phrase::plain("Nothing older was measured here."),
        None => Phrase::plain("Nothing was measured here yet."),
        Some(row) => Phrase::figures(&format!("{}: {}", row.label, row.sentence)),
    }
}

fn facts(newest: Option<&SnapshotRow>, rows: &[SnapshotRow], judged: &HashMap<RunId, Judged>) -> Vec<Link> {
    let mut facts = Vec::new();
    if let Some(row) = newest {
        facts.push(Link::to(format!("Snapshot of {}", row.label), snapshot_href(&row.project, row.run_id)));
        if let Some(href) = judged.get(&row.run_id).and_then(|judged| judged_href(row, judged.baseline)) {
            facts.push(Link::to("How it compares", href));
        }
    }
    let count = |verdict| rows.iter().filter(|row| row.verdict == verdict).count();
    match count(Verdict::Regressed) {
        0 => {}
        1 => facts.push(Link::none("1 regressed")),
        n => facts.push(Link::none(format!("{n} regressed"))),
    }
    match rows.iter().filter(|row| !row.valid).count() {
        0 => {}
        1 => facts.push(Link::none("1 invalid run, shown hollow")),
        n => facts.push(Link::none(format!("{n} invalid runs, shown hollow"))),
    }
    facts
}

fn testbeds(measured_on: &[TestbedRef], selected: &str) -> Vec<Choice> {
    let choice = |testbed: &TestbedRef| {
        let value = testbed.fingerprint.to_string();
        // The same name can stand for different hosts: then the fingerprint tells them apart.
        let other = |other: &TestbedRef| other.label == testbed.label && other.fingerprint != testbed.fingerprint;
        let text = match measured_on.iter().any(other) {
            true => format!("{} ({})", testbed.label, &value[..6]),
            false => testbed.label.clone(),
        };
        let selected = value == selected || testbed.label == selected;
        Choice { value, text, selected }
    };
    measured_on.iter().map(choice).collect()
}

/// Every snapshot shown, the one at `selected` chosen.
fn choices(rows: &[SnapshotRow], selected: usize) -> Vec<Choice> {
    let selected = selected.min(rows.len().saturating_sub(1));
    let choice = |(i, row): (usize, &SnapshotRow)| Choice {
        value: row.run_id.to_string(),
        text: format!("{}, {}", row.label, day(row.started_at)),
        selected: i == selected,
    };
    rows.iter().enumerate().map(choice).collect()
}

fn chart(rows: &[SnapshotRow], judged: &HashMap<RunId, Judged>) -> Option<Chart> {
    let mut releases: Vec<Release> = Vec::new();
    let mut segment = 0;
    let key = |row: &SnapshotRow| (row.plan_digest.clone(), row.stability_workers);
    for (i, row) in rows.iter().rev().enumerate() {
        if i > 0 && key(row) != key(&rows[rows.len() - i]) {
            segment += 1;
        }
        let sha = row.revision.commit.as_ref().map(|commit| format!("{}, ", commit.short())).unwrap_or_default();
        let judged = judged.get(&row.run_id);
        releases.push(Release {
            label: row.label.clone(),
            detail: format!("{sha}{}", day(row.started_at)),
            href: snapshot_href(&row.project, row.run_id),
            p99_ms: row.p99_ms,
            p99_interval_ms: row.p99_interval_ms,
            capacity_tps: row.capacity_tps,
            allowed_p99_ms: judged.and_then(|judged| allowed(judged, Metric::P99)),
            allowed_capacity_tps: judged.and_then(|judged| allowed(judged, Metric::Capacity)),
            standing: standing(row),
            worse: judged.map(worse).unwrap_or_default(),
            segment,
        });
    }
    let workers = rows.first().and_then(|row| row.stability_workers);
    let workers = workers.filter(|workers| rows.iter().all(|row| row.stability_workers == Some(*workers)));
    history(&History { releases, workers })
}

fn not_drawn(rows: &[SnapshotRow]) -> Option<&'static str> {
    let p99 = rows.iter().any(|row| row.p99_ms.is_some());
    let capacity = rows.iter().any(|row| row.capacity_tps.is_some());
    match (p99, capacity) {
        _ if rows.is_empty() => None,
        (true, true) => None,
        (false, true) => {
            Some("No P99 is drawn: none of these runs has one, for too few requests or no stability phase.")
        }
        (true, false) => Some(
            "No capacity is drawn: none of these runs has one, without a staircase or a step within the error limit.",
        ),
        (false, false) => Some("There is no chart: none of these runs has a P99 or a capacity."),
    }
}

/// Which gated figures regressed.
fn worse(judged: &Judged) -> Worse {
    let regressed = |name| judged.gated.iter().any(|m| m.name == name && m.verdict == MetricVerdict::Regressed);
    Worse { p99: regressed(Metric::P99), capacity: regressed(Metric::Capacity) }
}

/// What the gate would have let pass: the baseline's figure, changed by the threshold.
fn allowed(judged: &Judged, metric: Metric) -> Option<f64> {
    let metric = judged.gated.iter().find(|m| m.name == metric)?;
    Some(metric.baseline? * (1.0 + metric.threshold?))
}

fn standing(row: &SnapshotRow) -> Standing {
    match row.verdict {
        _ if !row.valid => Standing::Invalid,
        Verdict::Regressed => Standing::Regressed,
        Verdict::Inconclusive => Standing::Undecided,
        Verdict::Pass | Verdict::NoBaseline | Verdict::Invalid => Standing::Plain,
    }
}

/// What is seen: what got worse last, and where.
fn chart_heading(rows: &[SnapshotRow], judged: &HashMap<RunId, Judged>) -> String {
    let Some(worst) = rows.iter().find(|row| row.verdict == Verdict::Regressed) else {
        return if rows.len() < 2 { "The first snapshot" } else { "No regression in what is shown" }.to_owned();
    };
    let metrics = judged.get(&worst.run_id).map_or(&[][..], |judged| &judged.gated);
    let moved: Vec<&str> = metrics
        .iter()
        .filter(|metric| metric.verdict == MetricVerdict::Regressed)
        .map(|metric| match metric.name {
            Metric::Capacity => "capacity fell",
            Metric::ErrorRate => "errors rose",
            _ => "P99 rose",
        })
        .collect();
    let what = if moved.is_empty() { "regressed".to_owned() } else { moved.join(" and ") };
    sentence(&format!("{what} at {}", worst.label)).trim_end_matches('.').to_owned()
}

fn table_lead(rows: &[SnapshotRow]) -> String {
    let plans = rows.iter().map(|row| &row.plan_digest).collect::<std::collections::HashSet<_>>().len();
    let plan = match (plans, rows.first()) {
        (1, Some(row)) => format!("Plan {}. ", row.plan_digest),
        (0, _) | (_, None) => String::new(),
        (n, _) => format!("{n} different plans: figures compare only within one. "),
    };
    format!("{plan}Figures of an invalid run stand in brackets and count for nothing.")
}

//! All projects, one row each.

use std::collections::HashMap;

use askama::Template;
use axum::extract::State;
use axum::response::Response;
use plimsoll_domain::comparison::Verdict;
use plimsoll_domain::format;
use plimsoll_domain::ids::{ProjectSlug, RunId};

use super::view::{Drawn, Frame, Here, Look, Page, Phrase, VerdictWord, day, judged_href, render, snapshot_href, word};
use crate::access::Caller;
use crate::charts::{Datum, spark};
use crate::error::Result;
use crate::state::AppState;
use crate::store::pages::{self, Course, UnderWay};
use crate::store::projects::{self, Overview};
use crate::store::snapshots::SnapshotRow;

#[derive(Template)]
#[template(path = "projects.html")]
struct Projects {
    page: Page,
    /// The worst verdict.
    word: Option<String>,
    say: Phrase,
    rows: Vec<Row>,
    /// Whether any project has a course to draw.
    sparks: bool,
}

struct Row {
    project: String,
    private: bool,
    count: String,
    /// Runs that are not over, in words.
    under_way: Option<String>,
    hit: bool,
    newest: Option<Newest>,
}

struct Newest {
    href: String,
    label: String,
    day: String,
    verdict: VerdictWord,
    p99: Datum,
    workers: Option<u32>,
    p99_course: Drawn,
    capacity: Datum,
    capacity_course: Drawn,
    testbed: String,
}

pub(super) async fn page(State(state): State<AppState>, frame: Frame) -> Result<Response> {
    let mut overviews = projects::list(state.pool(), &frame.caller.readable()).await?;
    let mut courses = pages::courses(state.pool()).await?;
    courses.retain(|course| overviews.iter().any(|overview| overview.slug == course.project));
    let under_way = pages::under_way(state.pool()).await?;
    let newest: Vec<RunId> = overviews.iter().filter_map(|o| Some(o.latest.as_ref()?.run_id)).collect();
    let judged: HashMap<RunId, String> = pages::judged(state.pool(), &newest)
        .await?
        .into_iter()
        .filter_map(|(run_id, judged)| {
            let row = overviews.iter().filter_map(|o| o.latest.as_ref()).find(|row| row.run_id == run_id)?;
            Some((run_id, judged_href(row, judged.baseline)?))
        })
        .collect();
    overviews.sort_by_key(|overview| overview.latest.as_ref().map_or(u8::MAX, |row| urgency(row.verdict)));
    let rows: Vec<Row> = overviews.iter().map(|overview| Row::new(overview, &courses, &judged, &under_way)).collect();
    let look = overviews.iter().filter_map(|o| o.latest.as_ref()).map(|row| Look::of(row.verdict)).next();
    let regressed = overviews.iter().filter(|o| verdict(o) == Some(Verdict::Regressed)).count();
    let title = if regressed > 0 { format!("Projects: {regressed} regressed") } else { "Projects".to_owned() };
    Ok(render(&Projects {
        page: Page::new(title, look.unwrap_or(Look::Plain), frame, Here::Projects),
        word: overviews.iter().find_map(verdict).map(word),
        say: Phrase::figures(&say(&overviews, regressed)),
        sparks: courses.iter().any(|course| course.p99_ms.len() > 1),
        rows,
    }))
}

impl Row {
    fn new(overview: &Overview, courses: &[Course], judged: &HashMap<RunId, String>, under_way: &[UnderWay]) -> Self {
        let count = match overview.snapshots {
            1 => "1 snapshot".to_owned(),
            n => format!("{} snapshots", format::count(n.unsigned_abs())),
        };
        let course = courses.iter().find(|course| course.project == overview.slug);
        Self {
            project: overview.slug.to_string(),
            private: !overview.public,
            count,
            under_way: under_way.iter().find(|one| one.project == overview.slug).map(told),
            hit: verdict(overview) == Some(Verdict::Regressed),
            newest: overview.latest.as_ref().map(|row| Newest::new(row, course, judged.get(&row.run_id))),
        }
    }
}

impl Newest {
    fn new(row: &SnapshotRow, course: Option<&Course>, judged: Option<&String>) -> Self {
        let tone = match row.verdict {
            Verdict::Pass => Look::Plain.tone(),
            verdict => Look::of(verdict).tone(),
        };
        let drawn = |values: Option<&Vec<Option<f64>>>, name: &str| {
            let values = values.map_or(&[][..], Vec::as_slice);
            let says = format!("{name} of the last {} valid snapshots on {}", values.len(), row.testbed.label);
            Drawn(if values.len() > 1 { spark(values, tone, &says) } else { String::new() })
        };
        Self {
            href: snapshot_href(&row.project, row.run_id),
            label: row.label.clone(),
            day: day(row.started_at),
            verdict: VerdictWord {
                verdict: row.verdict,
                href: Some(judged.cloned().unwrap_or_else(|| snapshot_href(&row.project, row.run_id))),
            },
            p99: Datum::of(row.p99_ms, format::number, "not measured, or withheld for too few requests"),
            workers: row.stability_workers,
            p99_course: drawn(course.map(|c| &c.p99_ms), "P99"),
            capacity: Datum::of(row.capacity_tps, format::number, "no staircase, or no step within the error limit"),
            capacity_course: drawn(course.map(|c| &c.capacity_tps), "Capacity"),
            testbed: row.testbed.label.clone(),
        }
    }
}

fn verdict(overview: &Overview) -> Option<Verdict> {
    overview.latest.as_ref().map(|row| row.verdict)
}

/// The projects that the caller may read, by name.
pub(super) async fn readable(state: &AppState, caller: &Caller) -> Result<Vec<ProjectSlug>> {
    let seen = projects::list(state.pool(), &caller.readable()).await?;
    Ok(seen.into_iter().map(|one| one.slug).collect())
}

/// `1 running, 2 waiting`.
fn told(under_way: &UnderWay) -> String {
    let count = |n: u64, what: &str| (n > 0).then(|| format!("{} {what}", format::count(n)));
    let parts = [count(under_way.running, "running"), count(under_way.waiting, "waiting")];
    parts.into_iter().flatten().collect::<Vec<_>>().join(", ")
}

/// The worst first.
fn urgency(verdict: Verdict) -> u8 {
    match verdict {
        Verdict::Regressed => 0,
        Verdict::Invalid => 1,
        Verdict::Inconclusive => 2,
        Verdict::NoBaseline => 3,
        Verdict::Pass => 4,
    }
}

fn say(overviews: &[Overview], regressed: usize) -> String {
    let named = |row: &SnapshotRow| format!("{} {} on {}", row.project, row.label, row.testbed.label);
    let worst = overviews.iter().filter_map(|overview| overview.latest.as_ref()).next();
    let of = match overviews.len() {
        1 => "The one project".to_owned(),
        n => format!("{regressed} of {} projects", format::count(n as u64)),
    };
    match (worst, regressed) {
        (None, _) => "Nothing has been measured yet.".to_owned(),
        (Some(row), 0) if row.verdict == Verdict::Pass => "No project is regressed.".to_owned(),
        (Some(row), 0) => format!("No project is regressed. {}: {}.", named(row), row.verdict.word().to_lowercase()),
        (Some(row), 1) => format!("{of} is regressed: {}. {}", named(row), row.sentence),
        (Some(row), _) => format!("{of} are regressed, first of all {}. {}", named(row), row.sentence),
    }
}

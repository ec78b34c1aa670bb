//! The runners of the projects that the caller has a scope for, and what waits for one that there is not.

use std::collections::BTreeMap;

use askama::Template;
use axum::extract::State;
use axum::response::Response;
use jiff::{SignedDuration, Timestamp};
use plimsoll_domain::format;
use plimsoll_domain::ids::ProjectSlug;
use plimsoll_domain::job::{self, Run};

use super::view::{Frame, Here, Link, Look, Page, ago, render};
use crate::access::Scope;
use crate::error::Result;
use crate::state::AppState;
use crate::store;
use crate::store::jobs::Filter;
use crate::store::runners::Runner;

#[derive(Template)]
#[template(path = "runners.html")]
struct Runners {
    page: Page,
    say: String,
    rows: Vec<Row>,
    stranded: Vec<Stranded>,
}

struct Row {
    name: String,
    labels: String,
    version: String,
    heard: String,
    /// Heard lately and not ended, as one that waits or measures.
    awake: bool,
    projects: String,
    now: Link,
}

/// Runs that wait for what no runner has.
struct Stranded {
    project: ProjectSlug,
    labels: String,
    runs: Vec<Link>,
}

const MAX_RUNNERS: u32 = 1_000;
const MAX_WAITING: u32 = 500;
/// A runner that waits asks again every half minute, one that measures is heard more often.
const ASLEEP_AFTER: SignedDuration = SignedDuration::from_mins(2);

pub(super) async fn page(State(state): State<AppState>, frame: Frame) -> Result<Response> {
    let now = Timestamp::now();
    let caller = &frame.caller;
    let runners = store::runners::list(state.pool(), MAX_RUNNERS).await?;
    let readable = caller.readable();
    let list = |state_of| Filter { state: Some(state_of), limit: MAX_WAITING, ..Filter::default() };
    let waiting = store::jobs::list_readable(state.pool(), list(job::State::Queued), &readable).await?;
    let mut busy = Vec::new();
    for at_work in [job::State::Leased, job::State::Running] {
        busy.extend(store::jobs::list_readable(state.pool(), list(at_work), &readable).await?);
    }
    let waiting_here: Vec<&Run> = waiting.iter().filter(|run| caller.may(Scope::Read, &run.project)).collect();
    let wanted: Vec<_> = waiting_here.iter().map(|run| (&run.project, &run.labels)).collect();
    let served = store::runners::serve(state.pool(), &wanted).await?;
    let alone = waiting_here.into_iter().zip(served).filter(|(_, served)| !served).map(|(run, _)| run);
    let stranded = stranded(alone);
    let everywhere = caller.may_everywhere(Scope::Read);
    let seen = |runner: &Runner| everywhere || runner.projects.iter().any(|project| caller.may(Scope::Read, project));
    let shown: Vec<&Runner> = runners.iter().filter(|runner| seen(runner)).collect();
    let rows: Vec<Row> = shown
        .iter()
        .map(|runner| Row::new(runner, &busy, |project| everywhere || caller.may(Scope::Read, project), now))
        .collect();
    let say = say(&shown, waiting.len(), &stranded, now);
    Ok(render(&Runners { page: Page::new("Runners", Look::Plain, frame, Here::Runners), say, rows, stranded }))
}

fn is_awake(runner: &Runner, now: Timestamp) -> bool {
    !runner.ended && now.duration_since(runner.last_seen_at) < ASLEEP_AFTER
}

fn say(runners: &[&Runner], waiting: usize, stranded: &[Stranded], now: Timestamp) -> String {
    if runners.is_empty() {
        return "No runner has been heard yet.".to_owned();
    }
    let busy = runners.iter().filter(|runner| runner.run.is_some()).count();
    let ending = runners.iter().filter(|runner| runner.run.is_some() && runner.ended).count();
    let idle = runners.iter().filter(|runner| runner.run.is_none() && is_awake(runner, now)).count();
    let ended = runners.iter().filter(|runner| runner.run.is_none() && runner.ended).count();
    let silent = runners.len() - busy - idle - ended;
    let ended = if ended > 0 { format!(", {ended} ended") } else { String::new() };
    let ending = if ending > 0 { format!(" ({ending} of them ending)") } else { String::new() };
    let silent = if silent > 0 { format!(", {silent} not heard lately") } else { String::new() };
    let stranded: usize = stranded.iter().map(|one| one.runs.len()).sum();
    let waits = match (waiting, stranded) {
        (0, _) => "nothing waits".to_owned(),
        (1, 0) => "1 run waits".to_owned(),
        (n, 0) => format!("{n} runs wait"),
        (1, _) => "1 run waits, for what no runner has".to_owned(),
        (n, m) => format!("{n} runs wait, {m} of them for what no runner has"),
    };
    format!("{idle} idle, {busy} at work{ending}{ended}{silent}; {waits}.")
}

/// By project and labels.
fn stranded<'a>(alone: impl Iterator<Item = &'a Run>) -> Vec<Stranded> {
    let mut out: Vec<Stranded> = Vec::new();
    for run in alone {
        let link = Link::to(run.label.clone(), format!("/{}/runs/{}", run.project, run.run_id));
        let labels = written(&run.labels);
        match out.iter_mut().find(|one| one.project == run.project && one.labels == labels) {
            Some(one) => one.runs.push(link),
            None => out.push(Stranded { project: run.project.clone(), labels, runs: vec![link] }),
        }
    }
    out
}

fn written(labels: &BTreeMap<String, String>) -> String {
    labels.iter().map(|(name, value)| format!("{name}={value}")).collect::<Vec<_>>().join(", ")
}

impl Row {
    fn new(runner: &Runner, busy: &[Run], seen: impl Fn(&ProjectSlug) -> bool, now: Timestamp) -> Self {
        let awake = is_awake(runner, now);
        let run = runner.run.and_then(|id| busy.iter().find(|run| run.run_id == id && seen(&run.project)));
        let last = if runner.ended { "; ends after it" } else { "" };
        let at_work = match (runner.run, run) {
            (_, Some(run)) => {
                let text = [
                    Some(format!("{} {}", run.project, run.label)),
                    run.progress.as_ref().map(|now| now.stage.name().to_owned()),
                    run.progress.as_ref().and_then(|now| now.workers).map(format::workers),
                ];
                let text = text.into_iter().flatten().collect::<Vec<_>>().join(", ");
                Link::to(format!("{text}{last}"), format!("/{}/runs/{}", run.project, run.run_id))
            }
            (Some(_), None) => Link::none(format!("at work{last}")),
            (None, _) if runner.ended => Link::none("ended"),
            (None, _) if awake => Link::none("idle"),
            (None, _) => Link::none("not heard lately"),
        };
        let projects: Vec<&str> =
            runner.projects.iter().filter(|project| seen(project)).map(ProjectSlug::as_str).collect();
        Self {
            name: runner.name.clone(),
            labels: written(&runner.labels),
            version: runner.version.clone(),
            heard: ago(runner.last_seen_at, now),
            awake,
            projects: projects.join(", "),
            now: at_work,
        }
    }
}

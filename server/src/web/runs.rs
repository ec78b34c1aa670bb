//! All runs that were asked for and that the caller may see, the newest first.

use askama::Template;
use axum::extract::{Query, State};
use axum::response::Response;
use jiff::Timestamp;
use plimsoll_domain::format;
use plimsoll_domain::ids::{ProjectSlug, RunId};
use plimsoll_domain::job::{self, Run};
use serde::Deserialize;

use super::run::say::{look, state_word};
use super::view::{Frame, Here, Look, Page, VerdictWord, ago, render, sentence};
use crate::access::{Caller, Scope, Told as _};
use crate::error::{AppError, Result};
use crate::state::AppState;
use crate::store;
use crate::store::jobs::Filter;
use crate::store::pages::UnderWay;

#[derive(Debug, Deserialize)]
pub(super) struct Wanted {
    project: Option<String>,
    state: Option<String>,
    before: Option<String>,
}

#[derive(Template)]
#[template(path = "runs.html")]
struct Runs {
    page: Page,
    heading: String,
    say: String,
    projects: Vec<String>,
    project: Option<String>,
    /// Each with whether it is chosen.
    states: [(&'static str, bool); 7],
    /// Whether the caller is told of runners at all.
    runners: bool,
    rows: Vec<Row>,
    older: Option<String>,
    json_href: String,
}

struct Row {
    href: String,
    label: String,
    project: ProjectSlug,
    state: String,
    look: Look,
    verdict: Option<VerdictWord>,
    asked: String,
    by: Option<String>,
    runner: Option<String>,
    no_runner: &'static str,
    why: String,
}

const PAGE: u32 = 50;

pub(super) async fn page(
    State(state): State<AppState>,
    frame: Frame,
    Query(wanted): Query<Wanted>,
) -> Result<Response> {
    let filled = |text: Option<String>| text.filter(|text| !text.is_empty());
    let wrong = |name: &str, why: String| AppError::bad_request(format!("{name}: {why}"));
    let project: Option<ProjectSlug> =
        filled(wanted.project).map(|slug| slug.parse()).transpose().map_err(|e| wrong("project", format!("{e}")))?;
    let before: Option<RunId> =
        filled(wanted.before).map(|run| run.parse()).transpose().map_err(|e| wrong("before", format!("{e}")))?;
    let chosen = match filled(wanted.state) {
        None => None,
        Some(name) => Some(
            job::State::ALL
                .into_iter()
                .find(|state| state.name() == name)
                .ok_or_else(|| wrong("state", format!("{name:?} is none")))?,
        ),
    };
    let filter = Filter { project: project.as_ref(), state: chosen, before, limit: PAGE };
    let runs = store::jobs::list_readable(state.pool(), filter, &frame.caller.readable()).await?;
    let projects = super::projects::readable(&state, &frame.caller).await?;
    let under_way = store::pages::under_way(state.pool()).await?;
    let of = |one: &&UnderWay| projects.contains(&one.project) && project.as_ref().is_none_or(|p| *p == one.project);
    let under_way: Vec<&UnderWay> = under_way.iter().filter(of).collect();
    // The frame of a project that the caller may not read would tell that it exists.
    let frame = match project.as_ref().filter(|project| projects.contains(project)) {
        Some(project) => frame.within(&state, project.as_str()).await?.1,
        None => frame,
    };
    let now = Timestamp::now();
    let query = query(project.as_ref(), chosen);
    let more = (runs.len() == PAGE as usize).then(|| runs.last()).flatten();
    let older = more.map(|run| format!("/runs?{query}before={}", run.run_id));
    let here = if project.is_some() { Here::Run } else { Here::Runs };
    let heading = project.as_ref().map_or_else(|| "Runs".to_owned(), |project| format!("Runs of {project}"));
    let runners = frame.caller.may_somewhere(Scope::Read);
    let rows: Vec<Row> = runs.into_iter().map(|run| Row::new(run, &frame.caller, now)).collect();
    Ok(render(&Runs {
        page: Page::new(heading.clone(), Look::Plain, frame, here),
        heading,
        say: say(&under_way, rows.is_empty()),
        projects: projects.iter().map(ToString::to_string).collect(),
        project: project.map(|project| project.to_string()),
        states: job::State::ALL.map(|state| (state.name(), Some(state) == chosen)),
        older,
        json_href: format!("/api/v1/runs?{}", query.trim_end_matches('&')),
        runners,
        rows,
    }))
}

fn query(project: Option<&ProjectSlug>, state: Option<job::State>) -> String {
    let project = project.map(|project| format!("project={project}&")).unwrap_or_default();
    let state = state.map(|state| format!("state={}&", state.name())).unwrap_or_default();
    format!("{project}{state}")
}

fn say(under_way: &[&UnderWay], empty: bool) -> String {
    let running: u64 = under_way.iter().map(|one| one.running).sum();
    let waiting: u64 = under_way.iter().map(|one| one.waiting).sum();
    let waits = match waiting {
        0 => "nothing waits".to_owned(),
        1 => "one waits".to_owned(),
        n => format!("{} wait", format::count(n)),
    };
    match running {
        0 if waiting == 0 && empty => "No run was asked for here.".to_owned(),
        0 => sentence(&format!("no run is under way; {waits}")),
        1 => sentence(&format!("one run is under way; {waits}")),
        n => format!("{} runs are under way; {waits}.", format::count(n)),
    }
}

impl Row {
    fn new(run: Run, caller: &Caller, now: Timestamp) -> Self {
        let project = run.project.clone();
        let run = run.to(caller, &project);
        let href = format!("/{}/runs/{}", run.project, run.run_id);
        let why = match (&run.sentence, &run.progress) {
            (Some(judged), _) => judged.clone(),
            (None, Some(now)) if run.state == job::State::Running => sentence(&job::say::figures(now)),
            (None, _) if run.state == job::State::Queued && !run.labels.is_empty() => {
                let labels: Vec<String> = run.labels.iter().map(|(name, value)| format!("{name}={value}")).collect();
                format!("Needs {}.", labels.join(", "))
            }
            _ => run.reason.as_deref().map(sentence).unwrap_or_default(),
        };
        Self {
            state: state_word(&run),
            look: look(&run),
            verdict: run.verdict.map(|verdict| VerdictWord { verdict, href: Some(href.clone()) }),
            asked: ago(run.created_at, now),
            by: run.requested_by,
            runner: run.runner,
            no_runner: if caller.may(Scope::Read, &project) { "none yet" } else { "not public" },
            label: run.label,
            project,
            href,
            why,
        }
    }
}

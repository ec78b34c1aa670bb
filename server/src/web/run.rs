//! The page of a run that somebody asked for: how it goes while it goes, and what became of it. The script follows its
//! events and asks for this page again; without it the page reloads itself.

pub(super) mod say;

use askama::Template;
use axum::extract::{Path, State};
use axum::response::{IntoResponse, Redirect, Response};
use jiff::Timestamp;
use plimsoll_domain::format::{self, NARROW};
use plimsoll_domain::ids::{ProjectSlug, RunId};
use plimsoll_domain::job::{self, Kind, Live, LiveEvent, Progress, Run};

use self::say::{announced, look, say, state_word};
use super::view::{Frame, Here, Link, Page, Phrase, ago, minute, render, sentence, snapshot_href};
use crate::access::{Scope, Told as _};
use crate::charts::{Chart, Datum, Moment, live};
use crate::error::{AppError, Result};
use crate::state::AppState;
use crate::store::jobs::Job;
use crate::store::{self, runners};
use crate::tasks::jobs;

#[derive(Template)]
#[template(path = "run.html")]
struct RunPage {
    page: Page,
    project: ProjectSlug,
    run_id: RunId,
    label: String,
    word: String,
    say: Phrase,
    announced: String,
    facts: Vec<Link>,
    /// Share that is done, in per cent.
    done: Option<u32>,
    figures: Vec<(&'static str, Datum)>,
    chart_lead: String,
    chart: Option<Chart>,
    /// It is over, and there is nothing to draw.
    no_chart: bool,
    happened: Vec<Happened>,
    asked: Vec<(String, Datum)>,
    /// The caller may cancel it.
    cancels: bool,
    /// Why its runner was asked to stop.
    stopping: Option<String>,
    /// Something may still happen.
    follows: bool,
}

struct Happened {
    at: String,
    what: String,
    why: String,
}

/// Addresses that know no project.
pub(super) async fn redirect(State(state): State<AppState>, Path(run): Path<String>) -> Result<Response> {
    let run_id: RunId = run.parse().map_err(|e| AppError::bad_request(format!("{e}")))?;
    let project = store::projects::of_run(state.pool(), run_id).await?;
    let project = project.ok_or_else(|| AppError::not_found(format!("run {run_id}")))?;
    Ok(Redirect::to(&format!("/{project}/runs/{run_id}")).into_response())
}

pub(super) async fn page(
    State(state): State<AppState>,
    frame: Frame,
    Path((project, run)): Path<(String, String)>,
) -> Result<Response> {
    let (project, frame) = frame.within(&state, &project).await?;
    let missing = || AppError::not_found(format!("run {run}"));
    let run_id: RunId = run.parse().map_err(|_| missing())?;
    let Some(mut job) = store::jobs::look(state.pool(), run_id).await? else {
        // Nobody asked for it here: it was measured and uploaded by itself.
        let row = store::snapshots::get(state.pool(), run_id).await?.filter(|row| row.project == project);
        let row = row.ok_or_else(missing)?;
        return Ok(Redirect::to(&snapshot_href(&row.project, run_id)).into_response());
    };
    if job.run.project != project {
        return Err(missing());
    }
    let served =
        job.run.state != job::State::Queued || runners::serves(state.pool(), &project, &job.run.labels).await?;
    let events = store::pages::events(state.pool(), run_id, job.run.last_seq).await?;
    let events: Vec<LiveEvent> = events.into_iter().map(|event| event.to(&frame.caller, &project)).collect();
    job.run = job.run.to(&frame.caller, &project);
    let page = state.compute(move || RunPage::new(frame, job, served, &events, Timestamp::now())).await?;
    Ok(render(&page))
}

pub(super) async fn cancel(
    State(state): State<AppState>,
    frame: Frame,
    Path((project, run)): Path<(String, String)>,
) -> Result<Response> {
    let (project, frame) = frame.within(&state, &project).await?;
    let run_id: RunId = run.parse().map_err(|e| AppError::bad_request(format!("{e}")))?;
    let job = store::jobs::get(state.pool(), run_id).await?.filter(|job| job.project == project);
    let job = job.ok_or_else(|| AppError::not_found(format!("run {run_id}")))?;
    if !job.state.is_final() {
        // By whom is in the audit log: a reason is for everybody who reads the project.
        jobs::cancel(&state, &frame.caller, run_id, "cancelled on its page").await?;
    }
    Ok(Redirect::to(&format!("/{project}/runs/{run_id}")).into_response())
}

impl RunPage {
    fn new(frame: Frame, job: Job, served: bool, events: &[LiveEvent], now: Timestamp) -> Self {
        let run = &job.run;
        let word = state_word(run);
        let over = run.state.is_final();
        let at_work = matches!(run.state, job::State::Leased | job::State::Running);
        let (attempt, moments) = course(events, at_work).unwrap_or((run.attempt, Vec::new()));
        let measured = run.verdict.is_some();
        let chart = (!moments.is_empty() || at_work).then(|| live(&moments, &run.label));
        Self {
            page: Page::new(format!("{word}: {} {}", run.project, run.label), look(run), frame.clone(), Here::Run),
            project: run.project.clone(),
            run_id: run.run_id,
            label: run.label.clone(),
            say: Phrase::figures(&say(run, served)),
            announced: announced(run),
            facts: facts(run, now),
            done: run.progress.as_ref().filter(|_| !over).and_then(done),
            figures: if over { Vec::new() } else { run.progress.as_ref().map(figures).unwrap_or_default() },
            chart_lead: match moments.last() {
                None => "Nothing is measured yet.".to_owned(),
                Some(last) => {
                    format!("Over {} of attempt {attempt}, as its runner told.", format::duration(last.at_s))
                }
            },
            no_chart: over && chart.is_none(),
            chart,
            happened: happened(run, events),
            asked: asked(&job),
            cancels: !over && job.cancel.is_none() && frame.caller.may(Scope::Upload, &run.project),
            stopping: job.cancel.as_deref().filter(|_| !over).map(sentence),
            // A job that is done is followed by its verdict.
            follows: !over || (run.state == job::State::Done && !measured),
            word,
        }
    }
}

fn facts(run: &Run, now: Timestamp) -> Vec<Link> {
    let mut facts = Vec::new();
    if run.verdict.is_some() {
        facts.push(Link::to("Its snapshot", snapshot_href(&run.project, run.run_id)));
    }
    let by = run.requested_by.as_ref().map(|by| format!("by {by}, ")).unwrap_or_default();
    facts.push(Link::none(format!("asked for {by}{}", ago(run.created_at, now))));
    if let Some(commit) = &run.revision.commit {
        facts.push(Link::none(format!("commit {}", commit.short())));
    }
    if run.attempt > 1 {
        facts.push(Link::none(format!("attempt {} of {}", run.attempt, run.max_attempts)));
    }
    facts
}

fn done(now: &Progress) -> Option<u32> {
    now.done.map(|done| (done * 100.0).round().clamp(0.0, 100.0) as u32)
}

/// The newest figures of a run under way.
fn figures(now: &Progress) -> Vec<(&'static str, Datum)> {
    let untold = "its runner did not tell it";
    let few = "too few requests, or its runner did not tell it";
    let gpu = "no GPU is measured";
    let gib = |bytes: f64| format!("{}{NARROW}GiB", format::number(bytes / f64::from(1 << 30)));
    vec![
        ("Workers", Datum::of(now.workers.map(f64::from), |n| format::count(n as u64), untold)),
        ("TPS", Datum::of(now.tps, format::number, untold)),
        ("P50", Datum::of(now.p50_ms, format::latency, few)),
        ("P99", Datum::of(now.p99_ms, format::latency, few)),
        ("Errors", Datum::of(now.errors.map(|n| n as f64), |n| format::count(n as u64), untold)),
        ("GPU", Datum::of(now.gpu_utilisation, |share| format!("{}{NARROW}%", format::percent(share)), gpu)),
        ("GPU memory", Datum::of(now.gpu_memory_bytes.map(|bytes| bytes as f64), gib, gpu)),
    ]
}

/// The attempt whose course is drawn: the newest while it is `at_work`, else the newest that has one to show.
fn course(events: &[LiveEvent], at_work: bool) -> Option<(u32, Vec<Moment>)> {
    let taken = events.iter().enumerate().rev().filter_map(|(at, event)| match event.what {
        Live::State { state: job::State::Leased, attempt, .. } => Some((at, attempt)),
        _ => None,
    });
    let mut to = events.len();
    let mut courses = taken.map(|(from, attempt)| {
        let moments = moments(&events[from..to]);
        to = from;
        (attempt, moments)
    });
    let is_drawn = |moment: &Moment| moment.tps.is_some() || moment.p99_ms.is_some();
    courses.find(|(_, moments)| at_work || moments.iter().any(is_drawn))
}

/// The course of one attempt.
fn moments(events: &[LiveEvent]) -> Vec<Moment> {
    let mut moments: Vec<Moment> = Vec::new();
    for event in events {
        let Live::Progress(now) = &event.what else { continue };
        let at_s = now.elapsed_ms as f64 / 1_000.0;
        // A runner's clock that goes back draws no line back.
        if moments.last().is_some_and(|last| at_s < last.at_s) {
            continue;
        }
        let (phase, workers) = (now.stage.name(), now.workers);
        moments.push(Moment { at_s, phase, workers, tps: now.tps, p99_ms: now.p99_ms });
    }
    moments
}

/// Every state that the run had, and why.
fn happened(run: &Run, events: &[LiveEvent]) -> Vec<Happened> {
    let told = events.iter().filter_map(|event| {
        let at = event.at.strftime("%-d %b %Y, %H:%M:%S").to_string();
        let (what, why) = match &event.what {
            Live::Progress(_) => return None,
            Live::Verdict { sentence, .. } => ("Judged".to_owned(), sentence.clone()),
            Live::State { state, attempt, runner, reason } => {
                let on = runner.as_ref().map(|name| format!(" on {name}")).unwrap_or_default();
                let by = runner.as_ref().map(|name| format!(": taken by {name}")).unwrap_or_default();
                let why = reason.as_deref().map(sentence).unwrap_or_default();
                let what = match state {
                    job::State::Queued if *attempt == 0 && reason.is_none() => "Asked for".to_owned(),
                    job::State::Queued => {
                        format!("Back in the queue after attempt {attempt} of {}", run.max_attempts)
                    }
                    job::State::Leased => format!("Attempt {attempt} of {}{by}", run.max_attempts),
                    job::State::Running => "The service is measured".to_owned(),
                    job::State::Done => "The snapshot is stored".to_owned(),
                    job::State::Failed => format!("Failed{on}"),
                    job::State::Cancelled => "Cancelled".to_owned(),
                    job::State::Expired => "Given up".to_owned(),
                };
                (what, why)
            }
        };
        Some(Happened { at, what, why })
    });
    told.collect()
}

fn asked(job: &Job) -> Vec<(String, Datum)> {
    let run = &job.run;
    let mut asked = Vec::new();
    let mut is = |name: &str, value: String| asked.push((name.to_owned(), Datum::Is(value)));
    is("Run", run.run_id.to_string());
    match &run.requested_by {
        Some(by) => is("Asked for by", format!("{by}, {}", minute(run.created_at))),
        None => is("Asked for", minute(run.created_at)),
    }
    is(
        "Why",
        match run.kind {
            Kind::Measure => "somebody asked for this revision".to_owned(),
            Kind::Backfill => "the baseline of another run was missing".to_owned(),
        },
    );
    let revision = &run.revision;
    let named = [
        ("Commit", revision.commit.as_ref().map(ToString::to_string)),
        ("Tag", revision.tag.clone()),
        ("Branch", revision.branch.clone()),
        ("Pull request", revision.pull_request.map(|number| format!("#{number}"))),
        ("Merge base", revision.merge_base.as_ref().map(ToString::to_string)),
        ("Plan", job.plan.clone()),
        ("Plan of commit", job.plan_commit.as_ref().map(ToString::to_string)),
        ("Profile", job.profile.map(|profile| format!("{profile:?}").to_lowercase())),
        ("Runner", run.runner.clone()),
    ];
    for (name, value) in named {
        if let Some(value) = value {
            is(name, value);
        }
    }
    let labels: Vec<String> = run.labels.iter().map(|(name, value)| format!("{name}={value}")).collect();
    is("Needs", if labels.is_empty() { "any runner of the project".to_owned() } else { labels.join(", ") });
    asked
}

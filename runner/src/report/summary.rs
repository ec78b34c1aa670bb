//! One run, for people and for programs: the sentence, the steps, capacity, stability, one request alone, findings.

use std::fmt::Write as _;
use std::path::Path;

use plimsoll_domain::comparison::Verdict;
use plimsoll_domain::figures::{Figures, SmokeFigures, StabilityFigures};
use plimsoll_domain::finding::{Finding, Severity};
use plimsoll_domain::format::{NARROW, count, counted, duration, latency, number, optional, percent, workers};
use plimsoll_domain::knee::Capacity;
use plimsoll_domain::little;
use plimsoll_domain::outcome::Outcomes;
use plimsoll_domain::report::{LoadChoice, Report, Status};
use plimsoll_domain::sentence;
use serde_json::{Value, json};

use super::paint::Paint;
use super::stairs;
use super::text::{labelled, round, wrapped};

/// What `run --json` prints.
pub fn json(report: &Report, path: &Path) -> Value {
    let figures = Figures::of(report);
    json!({
        "schema": 1,
        "run_id": report.run_id,
        "project": report.project,
        "revision": report.revision.label(),
        "testbed": report.testbed.label(),
        "plan_digest": report.plan_digest,
        "status": report.status,
        "valid": report.is_valid(),
        "sentence": sentence(report, &figures),
        "smoke": figures.smoke,
        "capacity": capacity_json(&figures),
        "stability": figures.stability,
        "steps": figures.steps,
        "findings": report.findings,
        "report": path,
    })
}

/// The summary at the end of a run: the sentence, then the figures.
pub fn text(report: &Report, paint: Paint) -> String {
    let heading = spoiled(report)
        .map(|word| format!("{}\n\n", paint.verdict(Verdict::Invalid, &format!("○ {word}"))))
        .unwrap_or_default();
    heading + &wrapped(&sentence(report, &Figures::of(report))) + &figures(report, &[], paint)
}

/// The figures alone: what stands below a verdict, which has `said` some findings already.
pub fn figures(report: &Report, said: &[Finding], paint: Paint) -> String {
    let figures = Figures::of(report);
    let mut out = String::new();
    let steps = stairs::table(&figures);
    if !steps.is_empty() {
        let _ = writeln!(out, "\n{}\n{}", paint.bold(&steps[0]), steps[1..].join("\n"));
    }
    out.push('\n');
    if let Some(capacity) = &figures.capacity {
        out += &labelled("Capacity", &capacity_text(capacity, figures.shows_knee()));
    }
    if let Some(stability) = &figures.stability {
        out += &labelled("Stability", &stability_text(stability, report));
    }
    if let Some(smoke) = &figures.smoke {
        out += &labelled("Alone", &alone_text(smoke, figures.capacity.as_ref()));
    }
    for (label, outcomes) in [("Errors", staircase_errors(&figures)), ("", stability_errors(&figures))] {
        out += &outcomes.map_or_else(String::new, |text| labelled(label, &text));
    }
    let new = report.findings.iter().filter(|finding| said.iter().all(|other| other.message != finding.message));
    out + &findings(new)
}

/// Why a verdict decides no check.
pub fn undecisive(why: &str) -> String {
    format!("\n{}", labelled("Gates", &format!("no: {}", full(why))))
}

/// The last lines: where everything lies, and how the program ends. `ends` says it in words.
pub fn closing(path: &Path, url: Option<&str>, ends: &str) -> String {
    let mut out = format!("\nReport      {}\n", path.display());
    if let Some(url) = url {
        let _ = writeln!(out, "Page        {url}");
    }
    out + &format!("Exit        {ends}\n")
}

/// The run in one sentence: what spoiled it, else what it found.
pub fn sentence(report: &Report, figures: &Figures) -> String {
    let void = report.findings.iter().find(|finding| finding.severity == Severity::Voids);
    match (report.status, void) {
        (Status::Interrupted, _) => "Stopped before its end: what was measured until then is kept.".to_owned(),
        (Status::Failed, Some(void)) => format!("The run failed before its end. {}", full(&void.message)),
        (Status::Failed, None) => "The run failed before its end: the service stopped answering.".to_owned(),
        (Status::Complete, Some(void)) => format!("Not comparable. {}", full(&void.message)),
        (Status::Complete, None) => sentence::summary(figures),
    }
}

fn spoiled(report: &Report) -> Option<&'static str> {
    match report.status {
        Status::Interrupted => Some("INTERRUPTED"),
        Status::Failed => Some("FAILED"),
        Status::Complete if !report.is_valid() => Some("INVALID"),
        Status::Complete => None,
    }
}

/// `workers`, the knee, is null where no knee was looked for.
fn capacity_json(figures: &Figures) -> Value {
    let mut capacity = json!(figures.capacity);
    if figures.capacity.is_some() && !figures.shows_knee() {
        capacity["workers"] = Value::Null;
    }
    capacity
}

fn capacity_text(capacity: &Capacity, shows_knee: bool) -> String {
    let (tps, at, knee) = (number(capacity.tps), workers(capacity.at_workers), count(capacity.workers.into()));
    if capacity.lower_bound {
        format!("at least {tps} TPS at {at}: it still grew there")
    } else if shows_knee {
        format!("{tps} TPS at {at}; the knee is at {knee}")
    } else {
        format!("{tps} TPS at {at}: one step, which shows no knee")
    }
}

fn stability_text(stability: &StabilityFigures, report: &Report) -> String {
    let step = &stability.step;
    let p99 = match (step.p99_ms, step.p99_interval_ms) {
        (Some(p99), Some([low, high])) => {
            format!("P99 {} (95{NARROW}% interval {} to {})", latency(p99), number(low), number(high))
        }
        _ => format!("P99 withheld ({} requests)", count(step.requests)),
    };
    let shown = |name: &str, ms: Option<f64>| ms.map_or_else(String::new, |ms| format!(", {name} {}", latency(ms)));
    let finished = counted(step.outcomes.finished(), "request");
    let rate = match (step.error_rate, step.outcomes.failed()) {
        (None, _) => "no request finished".to_owned(),
        (Some(_), 0) => format!("none of {finished} failed"),
        (Some(rate), _) => format!("{}{NARROW}% of {finished} failed", percent(rate)),
    };
    format!(
        "{p99}{}{}{}{}; {} TPS at {}, {}, over {}; {rate}",
        shown("P95", step.p95_ms),
        shown("P50", step.p50_ms),
        shown("max", step.max_ms),
        shown("mean", step.mean_ms),
        optional(step.tps),
        workers(step.workers),
        choice(stability.load_choice, report),
        duration(step.measured_s),
    )
}

fn choice(choice: Option<LoadChoice>, report: &Report) -> String {
    match choice {
        Some(LoadChoice::Pinned) => "the pinned load".to_owned(),
        Some(LoadChoice::Baseline) => "the baseline's load".to_owned(),
        Some(LoadChoice::Plan) => "as asked".to_owned(),
        Some(LoadChoice::OwnKnee) => {
            format!("{} of the knee", round(report.plan.phases.stability.knee_fraction))
        }
        None => "for a reason not kept".to_owned(),
    }
}

/// Latency of one request alone, and what follows for the number of workers.
fn alone_text(smoke: &SmokeFigures, capacity: Option<&Capacity>) -> String {
    let mut text = format!("{} a request", latency(smoke.latency_ms));
    let Some(tps) = smoke.tps_per_worker else { return text };
    let seconds = smoke.latency_ms / 1_000.0;
    let _ = write!(
        text,
        ": one worker carries about {} TPS (Little's law). X TPS need X × {} workers, X × {} with a margin of 30{NARROW}%",
        number(tps),
        number(seconds),
        number(seconds * 1.3),
    );
    if let Some(capacity) = capacity {
        let workers = little::workers_for(capacity.tps, smoke.latency_ms);
        let _ = write!(text, "; for {} TPS that is {}", number(capacity.tps), count(workers));
    }
    text + "."
}

fn staircase_errors(figures: &Figures) -> Option<String> {
    let mut all = Outcomes::default();
    figures.steps.iter().for_each(|step| all.merge(&step.outcomes));
    errors("staircase", &all)
}

fn stability_errors(figures: &Figures) -> Option<String> {
    errors("stability", &figures.stability.as_ref()?.step.outcomes)
}

/// Failures by kind; `None` without any.
fn errors(phase: &str, outcomes: &Outcomes) -> Option<String> {
    let kinds: Vec<String> = outcomes
        .errors
        .iter()
        .filter(|(_, n)| **n > 0)
        .map(|(kind, n)| format!("{} {}", kind.name(), count(*n)))
        .collect();
    (!kinds.is_empty()).then(|| format!("{phase}: {} of {} requests", kinds.join(", "), count(outcomes.finished())))
}

/// Findings with their advice, those that void the run first.
pub fn findings<'f>(findings: impl IntoIterator<Item = &'f Finding>) -> String {
    let mut sorted: Vec<&Finding> = findings.into_iter().collect();
    sorted.sort_by_key(|finding| finding.severity);
    sorted
        .iter()
        .map(|finding| {
            let label = match finding.severity {
                Severity::Voids => "Invalid",
                Severity::Notice => "Note",
            };
            let advice = finding.advice.as_ref().map_or_else(String::new, |advice| format!(" → {advice}"));
            labelled(label, &format!("{}{advice}", full(&finding.message)))
        })
        .collect()
}

/// A message as a sentence of its own.
fn full(message: &str) -> String {
    let mut letters = message.trim_end_matches('.').chars();
    let first = letters.next().into_iter().flat_map(char::to_uppercase);
    first.chain(letters).chain(['.']).collect()
}

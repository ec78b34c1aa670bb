//! The three questions of a load test, answered from the figures; and titles that say what a chart shows.

use plimsoll_domain::course::{Course, course};
use plimsoll_domain::figures::{Figures, StepFigures};
use plimsoll_domain::format::{self, NARROW};
use plimsoll_domain::percentile::MIN_FOR_P99;
use plimsoll_domain::report::Step;

use super::Snapshot;

pub(super) struct Ask {
    pub(super) question: &'static str,
    pub(super) answer: String,
}

pub(super) fn three(of: &Snapshot) -> [Ask; 3] {
    [
        Ask { question: "How much does it carry?", answer: carries(of) },
        Ask { question: "Does latency stay level?", answer: stays(of) },
        Ask {
            question: "What runs out first?",
            answer:
                "Not measured yet: the service’s GPU, CPU, memory and thread pool were not sampled beside the load. \
                     The knee tells where something runs out, not what."
                    .to_owned(),
        },
    ]
}

fn carries(of: &Snapshot) -> String {
    let Some(capacity) = of.figures.capacity else {
        return match of.figures.steps.len() {
            0 => "Not measured: no step of a staircase was carried out.".to_owned(),
            _ => "Unknown: no step of the staircase stayed within the error limit.".to_owned(),
        };
    };
    let tps = format!("{}{NARROW}TPS", format::number(capacity.tps));
    let at = format::workers(capacity.at_workers);
    let found = match capacity.lower_bound {
        true => format!("At least {tps}: it was still growing at {at}, the last step."),
        false => {
            format!("{tps}, reached at {at}; 95{NARROW}% of it from the knee, {}.", format::workers(capacity.workers))
        }
    };
    let limit = of.report.plan.phases.staircase.max_error_rate;
    let allowed = format::allowed(limit).trim_start_matches('+').to_owned();
    let past = of.figures.steps.iter().filter(|step| step.error_rate.is_some_and(|rate| rate > limit)).count();
    let errors = match past {
        0 => format!("No step had more than {allowed} errors."),
        n => format!("{n} of {} steps had more than {allowed} errors and do not count.", of.figures.steps.len()),
    };
    let side = of.comparison.as_ref().and_then(|c| c.baseline.as_ref());
    let before = of.baseline.as_ref().and_then(|figures| figures.capacity).zip(side);
    let before = before.map(|(base, side)| format!(" {} carried {}.", side.revision, format::number(base.tps)));
    format!("{found} {errors}{}", before.unwrap_or_default())
}

fn stays(of: &Snapshot) -> String {
    let (Some(step), Some(figures)) = (of.report.stability(), of.figures.stability.as_ref()) else {
        return "Not measured: there was no stability phase.".to_owned();
    };
    let figures = &figures.step;
    let length = format::duration(figures.measured_s);
    let Some(p99) = figures.p99_ms else {
        let n = format::count(figures.requests);
        return format!("Unknown: {n} requests succeeded in {length}, and a P99 needs {MIN_FOR_P99}.");
    };
    let over = format!("P99 {} over {length} at {}", format::latency(p99), format::workers(step.workers));
    match course(step) {
        None => format!("{over}. Too few requests to tell its beginning from its end."),
        Some(course) => format!("{}: {over}; {}.", if course.moved() { "No" } else { "Yes" }, thirds(&course)),
    }
}

fn thirds(course: &Course) -> String {
    format!(
        "{} in its first third, {} in its last ({})",
        format::latency(course.first.value),
        format::latency(course.last.value),
        format::change(course.shift())
    )
}

pub(super) fn stairs_title(figures: &Figures) -> (String, String) {
    match figures.capacity {
        None => ("TPS and latency against workers".to_owned(), "Each point is one step.".to_owned()),
        Some(c) if c.lower_bound => (
            format!("TPS still grows at {}", format::workers(c.at_workers)),
            "Its end was not reached: capacity and knee are at least this.".to_owned(),
        ),
        Some(c) => (
            format!("TPS bends at {}", format::workers(c.workers)),
            "Each point is one step. Beyond the knee more workers only wait longer.".to_owned(),
        ),
    }
}

pub(super) fn soak_title(step: &Step, figures: &StepFigures) -> (String, String) {
    let heading = match course(step) {
        Some(course) if course.moved() && course.shift() > 0.0 => "Latency creeps up".to_owned(),
        Some(course) if course.moved() => "Latency comes down".to_owned(),
        Some(_) => "Latency stays level".to_owned(),
        None => "Latency over time".to_owned(),
    };
    let length = format::duration(figures.measured_s);
    let withheld = if figures.p99_ms.is_none() { " P99 is withheld: too few requests." } else { "" };
    (heading, format!("{} for {length}; the shaded edges are trimmed.{withheld}", format::workers(step.workers)))
}

pub(super) fn distribution_title(figures: &StepFigures) -> (String, String) {
    let heading = match figures.p50_ms.zip(figures.p99_ms) {
        Some((p50, p99)) if p50 > 0.0 => format!("P99 is {} times P50", format::number(p99 / p50)),
        _ => "How latencies are distributed".to_owned(),
    };
    (
        heading,
        format!("{} requests of the stability phase; the axis stretches the tail.", format::count(figures.requests)),
    )
}

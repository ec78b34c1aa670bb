//! The tables of steps and of outcomes.

use plimsoll_domain::figures::{Figures, StepFigures};
use plimsoll_domain::format::{self, NARROW};
use plimsoll_domain::little;
use plimsoll_domain::outcome::{self, ErrorKind};
use plimsoll_domain::percentile::MIN_FOR_P99;
use plimsoll_domain::report::{LoadChoice, PhaseKind, Report, StepRole};

use crate::charts::{Datum, withheld};

pub(super) struct Steps {
    pub(super) lead: String,
    pub(super) rows: Vec<StepRow>,
    pub(super) soak_title: String,
    pub(super) soak: Option<StepRow>,
    pub(super) note: String,
}

pub(super) struct StepRow {
    pub(super) workers: String,
    pub(super) role: String,
    pub(super) knee: bool,
    pub(super) data: Vec<Datum>,
}

pub(super) fn steps(report: &Report, figures: &Figures) -> Steps {
    let soak = figures.stability.as_ref();
    let all: Vec<&StepFigures> = figures.steps.iter().chain(soak.map(|soak| &soak.step)).collect();
    let phases = &report.plan.phases;
    let length = |ms: u64| format::duration(ms as f64 / 1_000.0);
    let withheld = if all.iter().any(|step| step.p99_ms.is_none()) {
        format!("–: withheld; a P99 needs {MIN_FOR_P99} successes. ")
    } else {
        String::new()
    };
    Steps {
        lead: agreement(&all),
        rows: figures.steps.iter().map(|step| row(step, figures)).collect(),
        soak_title: soak
            .map(|soak| format!("Stability, {}", format::duration(soak.step.measured_s)))
            .unwrap_or_default(),
        soak: soak.map(|soak| StepRow { role: load(soak.load_choice).to_owned(), ..row(&soak.step, figures) }),
        note: format!(
            "{withheld}Planned steps of {}, bisected ones of {}; the ramp-up and the first and last tenth, at most \
             10{NARROW}s, are trimmed.",
            length(phases.staircase.step_ms),
            length(phases.staircase.search_step_ms)
        ),
    }
}

fn agreement(steps: &[&StepFigures]) -> String {
    let furthest = steps
        .iter()
        .filter_map(|step| step.little_deviation)
        .map(f64::abs)
        .fold(None, |most: Option<f64>, d| Some(most.map_or(d, |most| most.max(d))));
    match furthest {
        None => "No step was measured.".to_owned(),
        Some(most) if most > little::MAX_DEVIATION => format!(
            "Workers = TPS × time in the system (X × R) is off by up to {}{NARROW}%: not all workers were busy.",
            format::percent(most)
        ),
        Some(most) => format!(
            "Workers = TPS × time in the system (X × R) holds within {}{NARROW}% on every step: the figures agree with \
             each other.",
            format::percent(most)
        ),
    }
}

fn row(step: &StepFigures, figures: &Figures) -> StepRow {
    let capacity = figures.capacity;
    let knee = capacity.is_some_and(|c| c.workers == step.workers) && step.role != StepRole::Soak;
    let top = capacity.is_some_and(|c| c.at_workers == step.workers && Some(c.tps) == step.tps);
    let role = match step.role {
        StepRole::Single => "smoke",
        StepRole::Bisect => "bisected",
        StepRole::Beyond => "beyond the plan",
        _ => "",
    };
    let tags = [(!role.is_empty(), role), (knee, "knee"), (top, "capacity")];
    let none = "no request succeeded";
    let in_flight = step.little_deviation.map(|deviation| f64::from(step.workers) * (1.0 + deviation));
    let withheld = withheld(step.requests);
    let data = vec![
        Datum::of(step.tps, format::number, "the step has no measured part"),
        Datum::of(step.p50_ms, format::number, none),
        Datum::of(step.p95_ms, format::number, none),
        Datum::of(step.p99_ms, format::number, &withheld),
        Datum::of(step.max_ms, format::number, none),
        Datum::of(step.mean_ms, format::number, none),
        Datum::of(in_flight, format::number, "the step has no measured part"),
        Datum::Is(format::count(step.outcomes.finished())),
        Datum::Is(format::count(step.outcomes.failed())),
        Datum::Is(format::count(step.connections)),
        Datum::of(step.engine_cpu, format::percent, "could not be read on this host"),
    ];
    let role = tags.iter().filter(|(on, _)| *on).map(|(_, tag)| *tag).collect::<Vec<_>>().join(", ");
    StepRow { workers: format::count(step.workers.into()), role, knee, data }
}

fn load(choice: Option<LoadChoice>) -> &'static str {
    match choice {
        Some(LoadChoice::Pinned) => "pinned",
        Some(LoadChoice::Baseline) => "the baseline’s load",
        Some(LoadChoice::Plan) => "by the plan",
        Some(LoadChoice::OwnKnee) => "by its own knee",
        None => "",
    }
}

pub(super) struct Outcomes {
    pub(super) lead: String,
    pub(super) phases: Vec<&'static str>,
    pub(super) rows: Vec<OutcomeRow>,
    pub(super) note: String,
}

pub(super) struct OutcomeRow {
    pub(super) kind: String,
    pub(super) code: bool,
    pub(super) off: bool,
    pub(super) counts: Vec<String>,
}

pub(super) fn outcomes(report: &Report, figures: &Figures) -> Outcomes {
    let kinds = [(PhaseKind::Smoke, "Smoke"), (PhaseKind::Staircase, "Staircase"), (PhaseKind::Stability, "Stability")];
    let phases: Vec<(&str, outcome::Outcomes)> = kinds
        .into_iter()
        .filter_map(|(kind, name)| {
            let mut sum = outcome::Outcomes::default();
            report.phase(kind)?.steps.iter().for_each(|step| sum.merge(&step.outcomes));
            Some((name, sum))
        })
        .collect();
    let counts =
        |of: &dyn Fn(&outcome::Outcomes) -> u64| phases.iter().map(|(_, sum)| format::count(of(sum))).collect();
    let mut rows = vec![OutcomeRow { kind: "ok".to_owned(), code: false, off: false, counts: counts(&|o| o.ok) }];
    let seen = |kind: &ErrorKind| phases.iter().any(|(_, sum)| sum.errors.get(kind).is_some_and(|n| *n > 0));
    let (some, none): (Vec<ErrorKind>, Vec<ErrorKind>) = ErrorKind::ALL.into_iter().partition(seen);
    rows.extend(some.iter().map(|kind| OutcomeRow {
        kind: kind.name().to_owned(),
        code: true,
        off: false,
        counts: counts(&|o| o.errors.get(kind).copied().unwrap_or(0)),
    }));
    rows.push(OutcomeRow {
        kind: format!("{}{} kinds of error", if some.is_empty() { "all " } else { "other " }, none.len()),
        code: false,
        off: true,
        counts: counts(&|_| 0),
    });
    let cut = phases.iter().any(|(_, sum)| sum.cut > 0);
    if cut {
        rows.push(OutcomeRow {
            kind: "open at the end".to_owned(),
            code: false,
            off: false,
            counts: counts(&|o| o.cut),
        });
    }
    Outcomes {
        lead: lead(figures),
        phases: phases.iter().map(|(name, _)| *name).collect(),
        rows,
        note: note(report, figures),
    }
}

fn lead(figures: &Figures) -> String {
    let Some(soak) = figures.stability.as_ref().map(|soak| &soak.step) else {
        return "There was no stability phase.".to_owned();
    };
    let (failed, all) = (soak.outcomes.failed(), format::count(soak.outcomes.finished()));
    match (failed, soak.error_rate) {
        (_, None) => "No request of the stability phase finished.".to_owned(),
        (0, _) => format!("None of {all} requests of the stability phase failed."),
        (failed, Some(rate)) => format!(
            "{} of {all} requests of the stability phase failed, {}{NARROW}%.",
            format::count(failed),
            format::percent(rate)
        ),
    }
}

fn note(report: &Report, figures: &Figures) -> String {
    let Some(soak) = figures.stability.as_ref().map(|soak| &soak.step) else { return String::new() };
    let timeout = format::duration(report.plan.service.response_timeout_ms as f64 / 1_000.0);
    let censored = soak.p99_ms.zip(soak.p99_censored_ms).map(|(p99, censored)| {
        let also = if format::latency(p99) == format::latency(censored) { "also " } else { "" };
        format!(
            "P99 of successes is {}; with failures counted at the timeout of {timeout} {also}{}.",
            format::latency(p99),
            format::latency(censored)
        )
    });
    let oldest = report.stability().and_then(|step| step.oldest_cut_us);
    let cut = oldest.map(|us| {
        format!(" The oldest request still open at the end had waited {}.", format::latency(us as f64 / 1_000.0))
    });
    format!("{}{}", censored.unwrap_or_default(), cut.unwrap_or_default())
}

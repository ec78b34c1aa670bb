//! The one sentence above everything.

use std::time::Duration;

use plimsoll_domain::comparison::{Comparison, Verdict};
use plimsoll_domain::format::NARROW;
use plimsoll_domain::job::{Stage, say};

use super::within;
use crate::github::text::conclusion::not_measured;
use crate::github::text::outside::{escaped, stressed};
use crate::github::text::told::{State, Told};

const SENTENCE: usize = 800;
const WHY: usize = 300;
/// Bytes of what was settled.
const SETTLED: usize = 8_000;

pub(in crate::github::text) fn said(told: &Told<'_>) -> String {
    if let Some(settled) = told.settled {
        return within(&settled.summary, SETTLED).to_owned();
    }
    match (told.state, told.comparison) {
        (State::Queued, _) => "Waits for a runner.".to_owned(),
        (State::Running { .. }, _) => format!("Being measured: {}.", progress(told)),
        (State::Measured, None) => "Measured, and about to be judged.".to_owned(),
        (State::Measured, Some(comparison)) => judged(told, comparison),
        (State::Unmeasured { end, why }, _) => {
            let why = why.map(|why| escaped(why.trim_end_matches('.'), WHY)).filter(|why| !why.is_empty());
            why.map_or_else(|| format!("{}.", not_measured(end)), |why| format!("{}: {why}.", not_measured(end)))
        }
    }
}

/// How far it is, in a line without a full stop: the title while nothing is decided.
pub(in crate::github::text) fn progress(told: &Told<'_>) -> String {
    match told.state {
        State::Queued => "Waits for a runner".to_owned(),
        State::Running { stage, left, done } => {
            let stage = stage.map_or("a runner has it", Stage::name);
            let done = done.map(|share| format!(", {:.0}{NARROW}% done", share.clamp(0.0, 1.0) * 100.0));
            format!("{stage}{}{}", done.unwrap_or_default(), time_left(left))
        }
        _ => match told.backfill {
            Some(backfill) => format!("No baseline yet, it is being measured{}", time_left(backfill.left)),
            None => "Measured, and about to be judged".to_owned(),
        },
    }
}

fn judged(told: &Told<'_>, comparison: &Comparison) -> String {
    let sentence = stressed(&comparison.sentence, SENTENCE);
    match (comparison.verdict, told.backfill) {
        (Verdict::NoBaseline, Some(backfill)) => {
            format!("{sentence} The baseline is being measured{}.", time_left(backfill.left))
        }
        _ => sentence,
    }
}

fn time_left(left: Option<Duration>) -> String {
    left.map(|left| format!(", {}", say::time_left(left.as_secs_f64()))).unwrap_or_default()
}

//! How a check stands: the one place that says what a verdict means for a merge.

use plimsoll_domain::comparison::{Comparison, MetricComparison, MetricVerdict, Verdict};
use plimsoll_domain::policy::Doubt;
use plimsoll_domain::{row, sentence};

use super::outside::plain;
use super::told::{State, Told, Unmeasured};
use crate::store::github::checks::Conclusion;

/// What is put in one line of a title.
const NAME: usize = 60;
const REASON: usize = 120;
const TITLE: usize = 200;
/// Regressed metrics that a title names.
const NAMED: usize = 3;

#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Standing {
    /// Nothing is decided yet.
    Progress,
    /// The title is one line. A success that is not a pass says in it why it is one.
    Concluded { conclusion: Conclusion, title: String },
}

/// Nothing but a pass, a person who accepts, or a policy that says so makes a success.
pub fn conclusion(told: &Told<'_>) -> Standing {
    if let Some(settled) = told.settled {
        return concluded(settled.conclusion, settled.title.clone());
    }
    match (told.state, told.comparison) {
        (State::Queued | State::Running { .. }, _) | (State::Measured, None) => Standing::Progress,
        (State::Measured, Some(comparison)) => judged(told, comparison),
        (State::Unmeasured { end: Unmeasured::Cancelled, why }, _) => {
            concluded(Conclusion::Cancelled, because("Cancelled", why))
        }
        (State::Unmeasured { end, why }, _) => in_doubt(told.doubt, &because(not_measured(end), why)),
    }
}

/// The regressed metrics that nobody took on. One without a metric to blame is only accepted with all of them.
pub(super) fn open_regressions<'a>(told: &Told<'a>) -> Vec<&'a MetricComparison> {
    let regressed = told.comparison.into_iter().flat_map(regressions);
    regressed.filter(|metric| !told.accepted.iter().any(|accepted| accepted.covers(metric.name))).collect()
}

/// Whether a person took on all that regressed.
pub(super) fn is_accepted(told: &Told<'_>) -> bool {
    let Some(comparison) = told.comparison.filter(|comparison| comparison.verdict == Verdict::Regressed) else {
        return false;
    };
    let all = told.accepted.iter().any(|accepted| accepted.metric.is_none());
    all || (regressions(comparison).next().is_some() && open_regressions(told).is_empty())
}

pub(super) fn not_measured(end: Unmeasured) -> &'static str {
    match end {
        Unmeasured::Failed => "Not measured",
        Unmeasured::Cancelled => "Cancelled",
        Unmeasured::Expired => "Not measured in time",
        Unmeasured::Lost => "The run is lost",
    }
}

fn judged(told: &Told<'_>, comparison: &Comparison) -> Standing {
    match comparison.verdict {
        Verdict::NoBaseline if told.backfill.is_some() => Standing::Progress,
        verdict if !told.gates => concluded(
            Conclusion::ActionRequired,
            format!("{}, but this report may not decide: nobody vouches for where it comes from", verdict.word()),
        ),
        Verdict::Pass => concluded(Conclusion::Success, format!("No regression against {}", baseline(comparison))),
        Verdict::Regressed if is_accepted(told) => concluded(Conclusion::Success, accepted(told, comparison)),
        Verdict::Regressed => concluded(Conclusion::Failure, regressed(told, comparison)),
        Verdict::Inconclusive | Verdict::Invalid | Verdict::NoBaseline => {
            in_doubt(told.doubt, comparison.verdict.word())
        }
    }
}

fn in_doubt(doubt: Doubt, what: &str) -> Standing {
    match doubt {
        Doubt::Fail => concluded(Conclusion::Failure, format!("{what}: the policy blocks in doubt")),
        Doubt::Pass => concluded(Conclusion::Success, format!("{what}: not judged, the policy lets it pass in doubt")),
    }
}

fn regressed(told: &Told<'_>, comparison: &Comparison) -> String {
    let open = open_regressions(told);
    let provisional = if comparison.provisional { " (provisional)" } else { "" };
    if open.is_empty() {
        return format!("Regressed against {}{provisional}", baseline(comparison));
    }
    let mut changes: Vec<String> = open.iter().take(NAMED).map(|metric| change(metric)).collect();
    if open.len() > NAMED {
        changes.push(format!("{} more", open.len() - NAMED));
    }
    format!("Regressed{provisional}: {}", changes.join(", "))
}

/// `P99 +54 % (allowed +10 %)`
fn change(metric: &MetricComparison) -> String {
    let change = metric.change.map(|change| format!(" {}", row::change(metric.unit, change)));
    let allowed = metric.threshold.map(|limit| format!(" (allowed {})", row::allowed(metric.unit, limit)));
    format!("{}{}{}", sentence::name(metric.name), change.unwrap_or_default(), allowed.unwrap_or_default())
}

fn accepted(told: &Told<'_>, comparison: &Comparison) -> String {
    let mut people: Vec<String> = Vec::new();
    for accepted in told.accepted {
        let who = plain(&accepted.by, NAME);
        if !people.contains(&who) {
            people.push(who);
        }
    }
    let undecided = comparison.metrics.iter().filter(|m| m.gated && m.verdict == MetricVerdict::Inconclusive).count();
    let undecided = if undecided > 0 { format!(", {undecided} undecided") } else { String::new() };
    let reason = told.accepted.first().map(|accepted| plain(&accepted.reason, REASON)).unwrap_or_default();
    format!("Regressed{undecided}, accepted by {}: {reason}", people.join(", "))
}

fn regressions(comparison: &Comparison) -> impl Iterator<Item = &MetricComparison> {
    comparison.metrics.iter().filter(|metric| metric.gated && metric.verdict == MetricVerdict::Regressed)
}

fn baseline(comparison: &Comparison) -> String {
    comparison.baseline.as_ref().map_or_else(|| "its baseline".to_owned(), |side| plain(&side.revision, NAME))
}

fn because(what: &str, why: Option<&str>) -> String {
    let why = why.map(|why| plain(why, REASON)).unwrap_or_default();
    let why = why.trim_end_matches('.');
    if why.is_empty() { what.to_owned() } else { format!("{what} ({why})") }
}

fn concluded(conclusion: Conclusion, title: String) -> Standing {
    Standing::Concluded { conclusion, title: plain(&title, TITLE) }
}

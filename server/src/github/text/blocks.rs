//! The blocks of a check and of a comment. Each is empty where there is nothing to say.

mod chart;
pub(super) mod links;
mod said;
mod todo;

use plimsoll_domain::comparison::{Comparison, Metric, Verdict};
use plimsoll_domain::{prose, row, sentence};

pub(super) use self::chart::chart;
pub(super) use self::said::{progress, said};
pub(super) use self::todo::what_to_do;
use super::conclusion::{is_accepted, open_regressions};
use super::outside::{code, escaped};
use super::told::{State, Told, Unmeasured};
use crate::store::github::checks::Conclusion;

/// Characters of a name, of a finding, of a reason.
pub(super) const NAME: usize = 80;
const FINDING: usize = 300;
const REASON: usize = 200;
const FINDINGS: usize = 3;
const ACCEPTANCES: usize = 3;

/// Mark, word and the pair of revisions, in one line.
pub(super) fn headline(told: &Told<'_>) -> String {
    let label = code(told.label, NAME);
    if let Some(settled) = told.settled {
        let mark = if settled.conclusion == Conclusion::ActionRequired { "◇" } else { "–" };
        return format!("{mark} {}: {label}", escaped(&prose::capital(settled.title.trim()), NAME));
    }
    let comparison = match (told.state, told.comparison) {
        (State::Queued, _) => return format!("◌ Queued: {label}"),
        (State::Running { .. }, _) => return format!("◌ Being measured: {label}"),
        (State::Measured, None) => return format!("◌ Being judged: {label}"),
        (State::Unmeasured { end: Unmeasured::Cancelled, .. }, _) => return format!("○ Cancelled: {label}"),
        (State::Unmeasured { .. }, _) => return format!("○ Not measured: {label}"),
        (State::Measured, Some(comparison)) => comparison,
    };
    let verdict = comparison.verdict;
    let word = match verdict {
        Verdict::Regressed if is_accepted(told) => "Regressed, accepted",
        Verdict::Regressed if comparison.provisional => "Regressed (provisional)",
        _ => verdict.word(),
    };
    let decides = if told.gates { "" } else { " (does not decide)" };
    let against = comparison.baseline.as_ref().map(|_| format!(" against {}", baseline(comparison)));
    let testbed = escaped(&comparison.candidate.testbed, NAME);
    let end = if verdict == Verdict::Invalid { " is not comparable" } else { "" };
    let against = against.filter(|_| verdict != Verdict::Invalid).unwrap_or_default();
    format!("{} {word}{decides}: {label}{against} on {testbed}{end}", verdict.mark())
}

/// `3f2c91a` (v1.9.1)
fn baseline(comparison: &Comparison) -> String {
    let Some(side) = &comparison.baseline else { return String::new() };
    let Some(commit) = &side.commit else { return code(&side.revision, NAME) };
    let short: String = commit.chars().take(7).collect();
    if side.revision.starts_with(&short) {
        code(&short, NAME)
    } else {
        format!("{} ({})", code(&short, NAME), escaped(&side.revision, NAME))
    }
}

/// Who took the regression on, and why; what is still open.
pub(super) fn accepted(told: &Told<'_>) -> String {
    if told.accepted.is_empty() || told.comparison.is_none_or(|comparison| comparison.verdict != Verdict::Regressed) {
        return String::new();
    }
    let line = |accepted: &super::told::Acceptance| {
        let what = accepted.metric.map_or_else(String::new, |metric| format!(" ({})", sentence::name(metric)));
        let (by, reason) = (escaped(&accepted.by, NAME), escaped(&accepted.reason, REASON));
        format!("**Accepted**{what} by {by}, {}: “{reason}”", accepted.at.strftime("%-d %b %Y"))
    };
    let mut lines: Vec<String> = told.accepted.iter().take(ACCEPTANCES).map(line).collect();
    if told.accepted.len() > ACCEPTANCES {
        lines.push(format!("And {} more.", told.accepted.len() - ACCEPTANCES));
    }
    if !is_accepted(told) {
        let mut open: Vec<Metric> = open_regressions(told).iter().map(|metric| metric.name).collect();
        open.sort_unstable();
        open.dedup();
        let open: Vec<&str> = open.into_iter().map(sentence::name).collect();
        if !open.is_empty() {
            lines.push(format!("Still open: {}.", open.join(", ")));
        }
    }
    lines.join("<br>\n")
}

/// The findings that explain it and that the sentence has not told.
pub(super) fn why(told: &Told<'_>) -> String {
    let findings = told.comparison.into_iter().flat_map(row::unsaid).take(FINDINGS).enumerate();
    let line = |(at, finding): (usize, &plimsoll_domain::finding::Finding)| {
        format!("\n{}. {}", at + 1, escaped(&prose::sentence(&finding.message), FINDING))
    };
    let lines: String = findings.map(line).collect();
    if lines.is_empty() { lines } else { format!("**Why**{lines}") }
}

/// What the baseline is, and how it was chosen.
pub(super) fn baseline_of(told: &Told<'_>) -> String {
    let Some(side) = told.comparison.and_then(|comparison| comparison.baseline.as_ref()) else { return String::new() };
    let because = side.chosen_because.as_deref().map(|because| format!(", {}", escaped(because, REASON)));
    let runs = match side.run_ids.len() {
        1 => "one run".to_owned(),
        n => format!("{n} runs pooled"),
    };
    format!("Baseline: {}{}, {runs}.", escaped(&side.revision, NAME), because.unwrap_or_default())
}

/// Those that say something, one after the other.
pub(super) fn joined<const N: usize>(blocks: [String; N]) -> String {
    let blocks: Vec<String> = blocks.into_iter().filter(|block| !block.is_empty()).collect();
    blocks.join("\n\n")
}

/// At most `bytes`, whole lines. What is put together by the blocks' own bounds is shorter; a text that was stored may
/// be of any length.
pub(super) fn within(text: &str, bytes: usize) -> &str {
    if text.len() <= bytes {
        return text;
    }
    let end = text.floor_char_boundary(bytes);
    text[..end].rfind('\n').map_or(&text[..end], |line| &text[..line])
}

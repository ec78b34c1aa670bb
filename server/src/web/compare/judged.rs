//! How a comparison came to its verdict: baseline, noise, thresholds, and the requests behind it.

use plimsoll_domain::comparison::{Comparison, MetricComparison, Verdict};
use plimsoll_domain::figures::Figures;
use plimsoll_domain::format::{self, NARROW};
use plimsoll_domain::sentence::name;

use crate::charts::Datum;

pub(super) fn lead(comparison: &Comparison, as_judged: bool) -> String {
    let when = if as_judged {
        "Judged when the snapshot arrived."
    } else {
        "Computed for this page, by the project’s policy."
    };
    match comparison.verdict {
        Verdict::Regressed => format!("{when} A metric is past its threshold, and its interval excludes no change."),
        Verdict::Pass => format!("{when} No gated metric’s interval reaches past its threshold."),
        Verdict::Inconclusive => format!("{when} The data exclude neither no change nor a change past the threshold."),
        Verdict::Invalid | Verdict::NoBaseline => format!("{when} No metric was judged."),
    }
}

pub(super) fn facts(comparison: &Comparison, base: &Figures, cand: &Figures) -> Vec<(String, Datum)> {
    let mut facts = Vec::new();
    if let Some(side) = &comparison.baseline {
        let because = side.chosen_because.as_ref().map(|because| format!(", {because}")).unwrap_or_default();
        let runs = match side.run_ids.len() {
            1 => "1 run".to_owned(),
            n => format!("{n} runs pooled"),
        };
        facts.push(is("Baseline", format!("{}{because}: {runs}", side.revision)));
    }
    let spread: Vec<String> = comparison.metrics.iter().filter(|metric| metric.gated).filter_map(sigma).collect();
    if !spread.is_empty() {
        let learnt = if comparison.provisional { "; the least that is believed, nothing is learnt yet" } else { "" };
        facts.push(is("Spread between runs", format!("{}{learnt}", spread.join(", "))));
    }
    let policy = &comparison.policy;
    facts.push(is(
        "Policy",
        format!(
            "P99 {}, capacity {}, error rate {} allowed",
            format::allowed(policy.p99_increase),
            format::allowed(-policy.capacity_decrease),
            format::allowed_points(policy.error_rate_points)
        ),
    ));
    let requests = |figures: &Figures| figures.stability.as_ref().map(|soak| format::count(soak.step.requests));
    if let Some((old, new)) = requests(base).zip(requests(cand)) {
        facts.push(is("Requests behind P99", format!("{new} here, {old} in the baseline’s newest run")));
    }
    facts.push(is(
        "Intervals",
        "two-sided 90 %: the worse end is the one-sided 95 % bound that the gate asks about".replace(" %", "\u{202f}%"),
    ));
    facts
}

fn sigma(metric: &MetricComparison) -> Option<String> {
    metric.sigma.map(|sigma| format!("{}{NARROW}% for {}", format::percent(sigma), name(metric.name)))
}

fn is(name: &str, value: String) -> (String, Datum) {
    (name.to_owned(), Datum::Is(value))
}

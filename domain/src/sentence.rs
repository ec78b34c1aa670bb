//! One plain sentence above every table: what came out, with the numbers that decided it.

use crate::comparison::{Better, Comparison, Metric, MetricComparison, MetricVerdict, Trend, Unit, Verdict};
use crate::figures::{Figures, StepFigures};
use crate::finding::Severity;
use crate::format::{self, NARROW, workers};
use crate::prose::{self, capital, lower};
use crate::report::SERVICE_GONE;
use crate::row;

/// The verdict in a sentence or two.
pub fn of(comparison: &Comparison) -> String {
    match comparison.verdict {
        Verdict::Regressed => regressed(comparison),
        Verdict::Pass => pass(comparison),
        Verdict::Inconclusive => inconclusive(comparison),
        Verdict::Invalid => invalid(comparison),
        Verdict::NoBaseline => no_baseline(comparison),
    }
}

/// What to do about it, in a sentence or two: what a finding advises, else what the verdict does.
pub fn advice(comparison: &Comparison) -> String {
    if let Some(advice) = comparison.findings.iter().find_map(|finding| finding.advice.as_deref()) {
        return prose::sentence(advice);
    }
    match comparison.verdict {
        Verdict::Pass => "Nothing: this revision may be released.",
        Verdict::Regressed => {
            "Look at what changed between the two revisions. Where the curves part says at which load it begins to \
             matter."
        }
        Verdict::Inconclusive => "Measure both revisions again on the same host, or for longer.",
        Verdict::Invalid => "Measure again once the cause is removed.",
        Verdict::NoBaseline => "Measure the baseline’s revision with the same plan on the same testbed.",
    }
    .to_owned()
}

/// One run alone: the tail at the stability load, then what the service carries.
pub fn summary(figures: &Figures) -> String {
    let stability = figures.stability.as_ref().map(|stability| soak(&stability.step));
    let capacity = figures.capacity.map(|capacity| {
        let tps = tps(capacity.tps);
        if capacity.lower_bound {
            format!("Carries at least {tps}: it was still growing at {}.", workers(capacity.at_workers))
        } else if !figures.shows_knee() {
            // One step shows the capacity, and no knee.
            format!("Carries {tps} at {}.", workers(capacity.at_workers))
        } else {
            let share = crate::knee::KNEE_SHARE * 100.0;
            format!("Carries {tps}, {share:.0}{NARROW}% of it from {} on.", workers(capacity.workers))
        }
    });
    let alone =
        figures.smoke.as_ref().map(|smoke| format!("One request alone takes {}.", format::latency(smoke.latency_ms)));
    let all: Vec<String> = [stability, capacity, alone].into_iter().flatten().collect();
    if all.is_empty() { "Nothing was measured.".to_owned() } else { all.join(" ") }
}

fn soak(step: &StepFigures) -> String {
    let at = workers(step.workers);
    let errors = match (step.error_rate, step.outcomes.failed()) {
        (None, _) => return format!("At {at} no request finished."),
        (Some(_), 0) => "no errors".to_owned(),
        (Some(rate), failed) if step.outcomes.ok == 0 => {
            return format!(
                "At {at} all {} requests failed ({}{NARROW}%).",
                format::count(failed),
                format::percent(rate)
            );
        }
        (Some(rate), _) => format!("{}{NARROW}% errors", format::percent(rate)),
    };
    let p50 = step.p50_ms.map(|p50| format!("P50 {}, ", format::latency(p50))).unwrap_or_default();
    match step.p99_ms {
        Some(p99) => format!("P99 is {} at {at} ({p50}{errors}).", format::latency(p99)),
        None => format!(
            "P99 at {at} is withheld: {} successes, it needs {} ({p50}{errors}).",
            format::count(step.requests),
            crate::percentile::MIN_FOR_P99
        ),
    }
}

fn regressed(comparison: &Comparison) -> String {
    if gated(comparison, MetricVerdict::Regressed).next().is_none()
        && let Some(gone) = comparison.findings.iter().find(|finding| finding.code == SERVICE_GONE)
    {
        let message = capital(gone.message.trim_end_matches('.'));
        return format!("{message}. {} was measured to the end.", baseline(comparison));
    }
    let mut clauses = gated(comparison, MetricVerdict::Regressed).map(|metric| moved(comparison, metric));
    let first = capital(&clauses.next().unwrap_or_default());
    let against = baseline(comparison);
    let rest: Vec<String> = clauses.map(|clause| format!(" {}.", capital(&clause))).collect();
    format!("{first} against {against}.{}", rest.concat())
}

fn pass(comparison: &Comparison) -> String {
    let against = baseline(comparison);
    let gated: Vec<&MetricComparison> = comparison.metrics.iter().filter(|metric| metric.gated).collect();
    let (better, same): (Vec<_>, Vec<_>) = gated.into_iter().partition(|m| m.trend() == Some(Trend::Better));
    let short: Vec<String> =
        same.into_iter().filter(|metric| metric.name != Metric::ErrorRate).filter_map(|m| brief(m, false)).collect();
    if better.is_empty() {
        let figures = if short.is_empty() { String::new() } else { format!(": {}", short.join(", ")) };
        return format!("No regression against {against}{figures}.");
    }
    let moves: Vec<String> = better.into_iter().map(|metric| moved(comparison, metric)).collect();
    let also = if short.is_empty() { String::new() } else { format!(" No regression: {}.", short.join(", ")) };
    format!("Better than {against}: {}.{also}", moves.join("; "))
}

fn inconclusive(comparison: &Comparison) -> String {
    let (noisy, missing): (Vec<_>, Vec<_>) =
        gated(comparison, MetricVerdict::Inconclusive).partition(|metric| metric.interval.is_some());
    let mut sentences = Vec::new();
    if !noisy.is_empty() {
        let figures: Vec<String> = noisy.iter().filter_map(|metric| brief(metric, true)).collect();
        let figures = figures.join(", ");
        sentences.push(if noisy.iter().all(|metric| past_threshold(metric)) {
            format!(
                "Past the threshold, but not by more than runs may differ while this testbed's noise is not learnt: \
                 {figures}. Measure both revisions again."
            )
        } else {
            format!("Too noisy to say: {figures}. Measure again, or for longer.")
        });
    }
    let mut reasons: Vec<&str> = missing.iter().filter_map(|metric| metric.note.as_deref()).collect();
    reasons.dedup();
    sentences.extend(reasons.into_iter().map(|reason| format!("{}.", capital(reason))));
    sentences.join(" ")
}

fn invalid(comparison: &Comparison) -> String {
    let Some(cause) = comparison.findings.iter().find(|finding| finding.severity == Severity::Voids) else {
        return "Not comparable.".to_owned();
    };
    let advice = cause.advice.as_deref().map(|advice| format!(" {}.", capital(advice.trim_end_matches('.'))));
    format!("Not comparable: {}.{}", lower(cause.message.trim_end_matches('.')), advice.unwrap_or_default())
}

fn no_baseline(comparison: &Comparison) -> String {
    let figure = |name| comparison.metrics.iter().find(|metric| metric.name == name && metric.candidate.is_some());
    let p99 = figure(Metric::P99).and_then(|m| Some(format!("{} {}", title(comparison, m), value(m, m.candidate?))));
    let capacity = figure(Metric::Capacity).and_then(|m| Some(format!("capacity {}", value(m, m.candidate?))));
    let figures: Vec<String> = p99.into_iter().chain(capacity).collect();
    let figures = if figures.is_empty() { String::new() } else { format!(": {}", figures.join(", ")) };
    format!("Nothing to compare with yet on {}{figures}.", comparison.candidate.testbed)
}

fn gated(comparison: &Comparison, verdict: MetricVerdict) -> impl Iterator<Item = &MetricComparison> {
    comparison.metrics.iter().filter(move |metric| metric.gated && metric.verdict == verdict)
}

fn baseline(comparison: &Comparison) -> &str {
    comparison.baseline.as_ref().map_or("its baseline", |side| &side.revision)
}

/// Worse for certain, and by more than is allowed: only the noise between runs leaves it open.
fn past_threshold(metric: &MetricComparison) -> bool {
    let past = metric.change.zip(metric.threshold).is_some_and(|(change, threshold)| match metric.better {
        Better::Lower => change > threshold,
        Better::Higher => change < threshold,
    });
    past && metric.trend() == Some(Trend::Worse)
}

/// `P99 at 48 workers rose from 261 ms to 402 ms (+54 %, interval +47 to +61 %; allowed +10 %)`.
fn moved(comparison: &Comparison, metric: &MetricComparison) -> String {
    let what = title(comparison, metric);
    let (Some(was), Some(is)) = (metric.baseline, metric.candidate) else { return what };
    let verb = if is < was { "fell" } else { "rose" };
    let change = metric.change.map(|change| row::change(metric.unit, change));
    let interval = metric.interval.map(|interval| format!(", interval {}", row::interval(metric.unit, interval)));
    let allowed = match metric.verdict {
        MetricVerdict::Regressed => {
            metric.threshold.map(|limit| format!("; allowed {}", row::allowed(metric.unit, limit)))
        }
        _ => None,
    };
    let evidence = [change, interval, allowed].into_iter().flatten().collect::<String>();
    format!("{what} {verb} from {} to {} ({evidence})", value(metric, was), value(metric, is))
}

/// `P99 −1.5 % (−6.0 to +3.2 %)`, with what is allowed when that is still open.
fn brief(metric: &MetricComparison, allowed: bool) -> Option<String> {
    let change = row::change(metric.unit, metric.change?);
    let interval = row::interval(metric.unit, metric.interval?);
    let threshold =
        metric.threshold.filter(|_| allowed).map(|limit| format!("; allowed {}", row::allowed(metric.unit, limit)));
    Some(format!("{} {change} ({interval}{})", name(metric.name), threshold.unwrap_or_default()))
}

fn title(comparison: &Comparison, metric: &MetricComparison) -> String {
    match (metric.name, comparison.candidate.stability_workers) {
        (Metric::P99 | Metric::ErrorRate, Some(n)) => format!("{} at {}", name(metric.name), workers(n)),
        _ => name(metric.name).to_owned(),
    }
}

/// What people call it, in a sentence.
pub fn name(metric: Metric) -> &'static str {
    match metric {
        Metric::P99 => "P99",
        Metric::Capacity => "capacity",
        Metric::ErrorRate => "error rate",
        Metric::P50 => "P50",
        Metric::P95 => "P95",
        Metric::Max => "longest latency",
        Metric::Tps => "TPS",
        Metric::Knee => "knee",
        Metric::SingleLatency => "one request alone",
    }
}

fn value(metric: &MetricComparison, value: f64) -> String {
    match metric.unit {
        Unit::Ms => format::latency(value),
        Unit::Tps => tps(value),
        Unit::Fraction => format!("{}{NARROW}%", format::percent(value)),
        Unit::Workers if value == 1.0 => workers(1),
        Unit::Workers => format!("{} workers", format::number(value)),
    }
}

fn tps(value: f64) -> String {
    format!("{}{NARROW}TPS", format::number(value))
}

#[cfg(test)]
mod tests;

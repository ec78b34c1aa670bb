//! Metric by metric: what is gated, what is shown, and what the data say.

use super::errors::error_rate;
use super::measure::Run;
use super::ratio::{bounded_capacity, ratio};
use super::row::{Row, blank, phase};
use crate::comparison::{Metric, MetricComparison, MetricVerdict};
use crate::noise::Noise;
use crate::policy::Policy;
use crate::report::PhaseKind;

const METRICS: [Metric; 9] = [
    Metric::P99,
    Metric::Capacity,
    Metric::ErrorRate,
    Metric::P50,
    Metric::P95,
    Metric::Max,
    Metric::Tps,
    Metric::Knee,
    Metric::SingleLatency,
];
/// One-sided level of the gate.
const ALPHA: f64 = 0.05;

/// The figures of both sides, unjudged: of a candidate without baseline, of one that did not live to its end, or of sides
/// that do not compare. `why` says which.
pub(super) fn listed(baseline: &[&Run], candidate: &Run, policy: &Policy, why: Option<&str>) -> Vec<MetricComparison> {
    let value = |run: &Run, metric| match metric {
        Metric::ErrorRate => run.failures.rate().ok_or_else(|| "no request finished".to_owned()),
        _ => run.figure(metric).map(|sample| sample.value),
    };
    METRICS
        .iter()
        .map(|metric| {
            let measured = value(candidate, *metric);
            let mut row = blank(*metric, policy);
            row.baseline = baseline.first().and_then(|run| value(run, *metric).ok());
            row.candidate = measured.as_ref().ok().copied();
            row.verdict = MetricVerdict::Observed;
            row.note = measured.err().or_else(|| why.map(str::to_owned));
            row
        })
        .collect()
}

/// All metrics, judged. `baseline` holds at least one run, all valid and comparable.
pub(super) fn judged(baseline: &[&Run], candidate: &Run, policy: &Policy, noise: &Noise) -> Vec<MetricComparison> {
    let same_load: Vec<&Run> = baseline.iter().copied().filter(|run| run.workers == candidate.workers).collect();
    let mut rows: Vec<Row> = METRICS
        .iter()
        .map(|metric| {
            let soak = phase(*metric) == PhaseKind::Stability;
            // Another load is another question; a load that only one side has is a figure that is missing.
            let apart = if soak && same_load.is_empty() { loads_differ(baseline, candidate) } else { None };
            let pool = if soak && !same_load.is_empty() { &same_load[..] } else { baseline };
            let mut row = match metric {
                Metric::ErrorRate => error_rate(pool, candidate, policy),
                _ => ratio(*metric, pool, candidate, policy, noise),
            };
            if let Some(why) = apart {
                row.undecided(why);
            }
            row
        })
        .collect();
    // Growth at the last step is a finding of the staircase, known only from the whole run.
    if let Some(row) = rows.iter_mut().find(|row| row.metric.name == Metric::Capacity) {
        bounded_capacity(row, baseline, candidate);
    }
    let rejected = holm(&rows);
    for (row, rejected) in rows.iter_mut().zip(rejected) {
        row.decide(rejected, noise);
    }
    rows.into_iter().map(|row| row.metric).collect()
}

/// Holm's step-down over the gated metrics: which of them exclude no change at a joint level of 5 %.
fn holm(rows: &[Row]) -> Vec<bool> {
    let mut family: Vec<(usize, f64)> =
        rows.iter().enumerate().filter(|(_, row)| row.metric.gated).filter_map(|(i, row)| Some((i, row.p?))).collect();
    family.sort_by(|a, b| a.1.total_cmp(&b.1));
    let mut rejected = vec![false; rows.len()];
    let m = family.len();
    for (rank, (i, p)) in family.into_iter().enumerate() {
        if p > ALPHA / (m - rank) as f64 {
            break;
        }
        rejected[i] = true;
    }
    rejected
}

fn loads_differ(baseline: &[&Run], candidate: &Run) -> Option<String> {
    let (before, after) = (baseline.iter().find_map(|run| run.workers)?, candidate.workers?);
    Some(format!(
        "P99s at {before} and {after} workers do not compare: measure again with --baseline or --stability-workers \
         {before}"
    ))
}

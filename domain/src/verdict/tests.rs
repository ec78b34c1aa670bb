//! The rule, on reports made by arithmetic.

mod agreement;
mod capacity;
mod change;
mod comparable;
mod failures;
mod missing;
mod noise;

use std::collections::BTreeMap;

use super::*;
use crate::comparison::{Metric, MetricComparison, Trend};
use crate::histogram::Histogram;
use crate::noise::Sigma;
use crate::outcome::ErrorKind;
use crate::report::{PhaseKind, Status, Step};
use crate::synthetic::Synthetic;

/// Short phases, so that many runs can be made.
fn short() -> Synthetic {
    Synthetic {
        staircase: vec![10, 20],
        step_s: 10,
        stability_s: 40,
        tag: Some("v1.0.0".into()),
        ..Synthetic::default()
    }
}

fn candidate() -> Synthetic {
    Synthetic { tag: Some("v1.1.0".into()), seed: 2, ..short() }
}

fn compare(baseline: &[&Report], candidate: &Report) -> Comparison {
    let baseline = Baseline { runs: baseline.to_vec(), chosen_because: Some("the previous release".into()) };
    judge(Some(&baseline), candidate, &Policy::default(), &Noise::default())
}

fn metric(comparison: &Comparison, name: Metric) -> &MetricComparison {
    comparison.metrics.iter().find(|metric| metric.name == name).unwrap()
}

/// The sentence with plain spaces.
fn said(comparison: &Comparison) -> String {
    comparison.sentence.replace(format::NARROW, " ")
}

fn steps(report: &mut Report, kind: PhaseKind) -> &mut Vec<Step> {
    &mut report.phases.iter_mut().find(|phase| phase.kind == kind).unwrap().steps
}

/// Makes the step one of `ok` successes and `failed` failures.
fn set_outcomes(step: &mut Step, ok: u64, failed: u64) {
    let ratio = ok as f64 / step.latency.len() as f64;
    let mut left = ok;
    for slice in &mut step.slices {
        let n = ((slice.len() as f64 * ratio).ceil() as u64).min(left);
        left -= n;
        let mut fewer = Histogram::new();
        (0..n).for_each(|i| fewer.record_us(100_000 + i * 100));
        *slice = fewer;
    }
    step.slices[0].record_n_us(100_000, left);
    step.latency = Histogram::merged(&step.slices);
    step.outcomes.ok = ok;
    step.outcomes.errors = BTreeMap::from([(ErrorKind::Http5xx, failed)]);
    step.outcomes.errors.retain(|_, n| *n > 0);
    (step.completed.ok, step.completed.failed) = (ok, failed);
}

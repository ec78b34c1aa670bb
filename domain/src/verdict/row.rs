//! One metric on its way to a verdict.

use super::shift::Shift;
use crate::comparison::{Better, Metric, MetricComparison, MetricVerdict, Unit};
use crate::format;
use crate::noise::{
    ENOUGH_PAIRS, LATENCY_FLOOR, LATENCY_UNLEARNT, Noise, Sigma, THROUGHPUT_FLOOR, THROUGHPUT_UNLEARNT,
};
use crate::policy::Policy;
use crate::report::PhaseKind;

/// A metric on its way to a verdict.
pub(super) struct Row {
    pub metric: MetricComparison,
    /// Against no change in the bad direction; absent where there is no interval.
    pub p: Option<f64>,
    pub shift: Option<Shift>,
    decided: bool,
}

impl Row {
    pub(super) fn new(metric: Metric, policy: &Policy) -> Self {
        Self { metric: blank(metric, policy), p: None, shift: None, decided: false }
    }

    /// Nothing can be said about the change, for one reason that outweighs all others.
    pub(super) fn undecided(&mut self, why: impl Into<String>) {
        self.metric.change = None;
        self.metric.interval = None;
        self.metric.note = None;
        self.hold(why);
    }

    /// Keeps the figures and says why they do not decide.
    pub(super) fn hold(&mut self, why: impl Into<String>) {
        (self.p, self.shift) = (None, None);
        self.settle(MetricVerdict::Inconclusive);
        self.note(why);
    }

    pub(super) fn settle(&mut self, verdict: MetricVerdict) {
        if self.metric.gated {
            self.metric.verdict = verdict;
        }
        self.decided = true;
    }

    pub(super) fn note(&mut self, text: impl Into<String>) {
        let text = text.into();
        self.metric.note = Some(match self.metric.note.take() {
            Some(before) => format!("{before}; {text}"),
            None => text,
        });
    }

    /// The rule for a change of a logarithm. `rejected`: no change is excluded, among all gated metrics.
    pub(super) fn decide(&mut self, rejected: bool, noise: &Noise) {
        let (Some(shift), Some(threshold), false) = (self.shift, self.metric.threshold, self.decided) else { return };
        let sign = bad_sign(self.metric.better);
        // In the bad direction, so that worse is above.
        let allowed = sign * (1.0 + threshold).max(0.0).ln();
        let ends = shift.interval().map(|end| sign * end);
        let (worse, worst) = (sign * shift.log, ends[0].max(ends[1]));
        let Some(sigma) = sigma(self.metric.name, noise) else { return };
        // What is not learnt may be noisier than the floor.
        let unlearnt = if self.metric.unit == Unit::Ms { LATENCY_UNLEARNT } else { THROUGHPUT_UNLEARNT };
        let doubt = if sigma.pairs >= ENOUGH_PAIRS { 0.0 } else { 3.0 * sigma.value.max(unlearnt) };
        if worse > allowed && rejected && worse > doubt {
            self.settle(MetricVerdict::Regressed);
        } else if worst < allowed {
            self.settle(MetricVerdict::Pass);
        } else {
            self.settle(MetricVerdict::Inconclusive);
            if worse > allowed && rejected {
                self.note(format!(
                    "past the threshold, but within the {} that runs of the same code may differ by while the noise of \
                     this testbed is not learnt",
                    format::change((sign * doubt).exp_m1())
                ));
            } else {
                let cure = if shift.within > 0.5 {
                    "it is wide by these runs' own variation: longer phases narrow it"
                } else {
                    "it is wide by how much runs differ on this testbed: more runs narrow it"
                };
                self.note(format!("the interval reaches past the threshold; {cure}"));
            }
        }
    }
}

/// Noise between runs that goes into a metric's interval, never below its floor; `None` where there is no interval.
pub(super) fn sigma(metric: Metric, noise: &Noise) -> Option<Sigma> {
    let floored = |sigma: Sigma, floor: f64| Sigma { value: sigma.value.max(floor), ..sigma };
    match metric {
        Metric::P99 | Metric::P95 | Metric::P50 | Metric::SingleLatency => Some(floored(noise.latency, LATENCY_FLOOR)),
        Metric::Capacity | Metric::Tps => Some(floored(noise.throughput, THROUGHPUT_FLOOR)),
        Metric::ErrorRate | Metric::Max | Metric::Knee => None,
    }
}

pub(super) fn blank(metric: Metric, policy: &Policy) -> MetricComparison {
    let threshold = match metric {
        Metric::P99 => Some(policy.p99_increase),
        Metric::Capacity => Some(-policy.capacity_decrease),
        Metric::ErrorRate => Some(policy.error_rate_points),
        _ => None,
    };
    MetricComparison {
        name: metric,
        phase: phase(metric),
        unit: metric.unit(),
        better: metric.better(),
        gated: threshold.is_some(),
        baseline: None,
        candidate: None,
        change: None,
        interval: None,
        threshold,
        verdict: if threshold.is_some() { MetricVerdict::Inconclusive } else { MetricVerdict::Observed },
        sigma: None,
        note: None,
    }
}

pub(super) fn phase(metric: Metric) -> PhaseKind {
    match metric {
        Metric::Capacity | Metric::Knee => PhaseKind::Staircase,
        Metric::SingleLatency => PhaseKind::Smoke,
        Metric::P99 | Metric::ErrorRate | Metric::P50 | Metric::P95 | Metric::Max | Metric::Tps => PhaseKind::Stability,
    }
}

pub(super) fn bad_sign(better: Better) -> f64 {
    match better {
        Better::Lower => 1.0,
        Better::Higher => -1.0,
    }
}

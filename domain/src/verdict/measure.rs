//! One run's figures with their uncertainty, metric by metric.

use crate::bootstrap::{self, Latencies, Spread};
use crate::comparison::Metric;
use crate::figures;
use crate::format;
use crate::percentile::MIN_FOR_P99;
use crate::proportion::Share;
use crate::report::{Report, Step, StepRole};

/// A figure above zero of one run. Without a spread there is too little of the run to say how sure it is.
#[derive(Debug, Clone, Copy)]
pub(super) struct Sample {
    pub value: f64,
    pub spread: Option<Spread>,
}

/// A figure, or a clause that says why there is none.
pub(super) type Figure = Result<Sample, String>;

/// One run, prepared.
pub(super) struct Measured<'a> {
    pub report: &'a Report,
    stability: Option<Latencies>,
}

impl<'a> Measured<'a> {
    pub(super) fn of(report: &'a Report) -> Self {
        Self { report, stability: report.stability().map(|step| Latencies::new(&step.slices, step.slice_ms)) }
    }

    pub(super) fn workers(&self) -> Option<u32> {
        self.report.stability().map(|step| step.workers)
    }

    pub(super) fn failures(&self) -> Share {
        self.report
            .stability()
            .map_or(Share::default(), |step| Share { failed: step.outcomes.failed(), of: step.outcomes.finished() })
    }

    /// The figure of any metric but the error rate, which is a share and not a ratio.
    pub(super) fn figure(&self, metric: Metric) -> Figure {
        match metric {
            Metric::P99 => self.quantile(0.99, MIN_FOR_P99),
            Metric::P95 => self.quantile(0.95, 1),
            Metric::P50 => self.quantile(0.50, 1),
            Metric::Max => {
                let value = self.soak()?.latency.max_ms().ok_or_else(no_success)?;
                Ok(Sample { value, spread: None })
            }
            Metric::Tps => {
                let step = self.soak()?;
                let value = step.tps().ok_or_else(|| "the stability phase has no measured part".to_owned())?;
                Ok(Sample { value, spread: bootstrap::rate(&seconds(step)) })
            }
            Metric::Capacity => {
                let found = figures::capacity(self.report).ok_or_else(|| self.no_capacity())?;
                let spread = figures::capacity_step(self.report).and_then(|step| bootstrap::rate(&seconds(step)));
                Ok(Sample { value: found.tps, spread })
            }
            Metric::Knee => {
                if self.report.staircase().iter().any(|step| step.role == StepRole::Capacity) {
                    return Err("one capacity step shows no knee".to_owned());
                }
                let found = figures::capacity(self.report).ok_or_else(|| self.no_capacity())?;
                Ok(Sample { value: found.workers.into(), spread: None })
            }
            Metric::SingleLatency => {
                let step = self.report.smoke().ok_or_else(|| "no one-worker step".to_owned())?;
                let value = step.latency.quantile_ms(0.5).ok_or_else(no_success)?;
                Ok(Sample { value, spread: Latencies::new(&step.slices, step.slice_ms).spread(0.5) })
            }
            Metric::ErrorRate => Err("the error rate is no ratio".to_owned()),
        }
    }

    fn soak(&self) -> Result<&'a Step, String> {
        self.report.stability().ok_or_else(|| "no stability phase".to_owned())
    }

    fn quantile(&self, q: f64, at_least: u64) -> Figure {
        let step = self.soak()?;
        let n = step.latency.len();
        let value = step.latency.quantile_ms(q).ok_or_else(no_success)?;
        if n < at_least {
            return Err(format!("withheld: {} successes, a P99 needs {at_least}", format::count(n)));
        }
        Ok(Sample { value, spread: self.stability.as_ref().and_then(|latencies| latencies.spread(q)) })
    }

    fn no_capacity(&self) -> String {
        let limit = self.report.plan.phases.staircase.max_error_rate;
        match self.report.staircase().len() {
            0 | 1 => "no staircase".to_owned(),
            _ => format!("no step within the error limit of {}{}%", format::percent(limit), format::NARROW),
        }
    }
}

/// Successes of each whole second of the measured part.
fn seconds(step: &Step) -> Vec<u64> {
    let from = usize::try_from(step.measured_from_ms.div_ceil(1_000)).unwrap_or(usize::MAX);
    let to = usize::try_from(step.measured_to_ms / 1_000).unwrap_or(usize::MAX).min(step.windows.len());
    step.windows.get(from..to).unwrap_or(&[]).iter().map(|window| window.ok).collect()
}

fn no_success() -> String {
    "no request succeeded".to_owned()
}

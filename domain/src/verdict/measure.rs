//! One run's figures with their uncertainty, metric by metric.

use std::collections::BTreeMap;

use jiff::Timestamp;
use serde::{Deserialize, Serialize};

use crate::bootstrap::{self, Latencies, Spread};
use crate::comparison::Metric;
use crate::figures;
use crate::format;
use crate::histogram::Histogram;
use crate::ids::RunId;
use crate::percentile::MIN_FOR_P99;
use crate::proportion::Share;
use crate::report::{Report, Step, StepRole};
use crate::revision::Revision;

/// A figure above zero of one run. Without a spread there is too little of the run to say how sure it is.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
pub(super) struct Sample {
    pub value: f64,
    pub spread: Option<Spread>,
}

/// A figure, or a clause that says why there is none.
pub(super) type Figure = Result<Sample, String>;

/// One run, prepared: all that a comparison asks of a report, in a few kilobytes. Most of the work of a verdict lies here:
/// done once, it is kept beside the report, and stays exact when the report is thinned.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Run {
    /// [`PREPARED`] of the code that made it.
    version: u32,
    /// The report without its phases, and without its revision's ancestors.
    pub(super) head: Report,
    /// Of the stability phase.
    pub(super) workers: Option<u32>,
    pub(super) failures: Share,
    /// Whether the service stopped answering under load.
    pub(super) died: bool,
    /// Where the capacity was reached, if it was still growing there.
    pub(super) growing_at: Option<u32>,
    /// Latencies of the stability phase.
    soak: Option<Histogram>,
    figures: BTreeMap<Metric, Figure>,
}

/// Counts up with every change of what a figure or its uncertainty is: runs prepared before are prepared anew.
pub const PREPARED: u32 = 1;

impl Run {
    pub fn of(report: &Report) -> Self {
        let measured = Measured::of(report);
        let stability = report.stability();
        let revision = Revision { ancestors: Vec::new(), ..report.revision.clone() };
        let plan = report.plan.clone();
        Self {
            version: PREPARED,
            head: Report {
                schema: report.schema,
                run_id: report.run_id,
                project: report.project.clone(),
                revision,
                testbed: report.testbed.clone(),
                plan,
                plan_digest: report.plan_digest.clone(),
                generator: report.generator.clone(),
                started_at: report.started_at,
                finished_at: report.finished_at,
                status: report.status,
                load_choice: report.load_choice,
                phases: Vec::new(),
                findings: report.findings.clone(),
            },
            workers: stability.map(|step| step.workers),
            failures: stability.map_or(Share::default(), |step| Share {
                failed: step.outcomes.failed(),
                of: step.outcomes.finished(),
            }),
            died: report.died_under_load().is_some(),
            growing_at: figures::capacity(report).filter(|capacity| capacity.lower_bound).map(|c| c.at_workers),
            soak: stability.map(|step| step.latency.clone()),
            figures: RATIOS.iter().map(|metric| (*metric, measured.figure(*metric))).collect(),
        }
    }

    /// Whether this code would prepare it so, too.
    pub fn is_current(&self) -> bool {
        self.version == PREPARED
    }

    /// The report without its phases, and without its revision's ancestors.
    pub fn head(&self) -> &Report {
        &self.head
    }

    /// Workers of the stability phase, and the latencies under them.
    pub fn soak(&self) -> Option<(u32, &Histogram)> {
        self.workers.zip(self.soak.as_ref())
    }

    /// The same run under other names, for a report that differs by them alone.
    pub fn renamed(&self, head: Report) -> Self {
        Self { head: Report { phases: Vec::new(), ..head }, ..self.clone() }
    }

    pub fn run_id(&self) -> RunId {
        self.head.run_id
    }

    pub fn started_at(&self) -> Timestamp {
        self.head.started_at
    }

    /// The figure of any metric but the error rate, which is a share and not a ratio.
    pub(super) fn figure(&self, metric: Metric) -> Figure {
        self.figures.get(&metric).cloned().unwrap_or_else(|| Err(no_ratio()))
    }
}

/// What compares as a ratio.
const RATIOS: [Metric; 8] = [
    Metric::P99,
    Metric::P95,
    Metric::P50,
    Metric::Max,
    Metric::Tps,
    Metric::Capacity,
    Metric::Knee,
    Metric::SingleLatency,
];

/// A report while it is prepared.
struct Measured<'a> {
    report: &'a Report,
    /// Of the stability phase's P99, P95 and P50.
    spreads: [Option<Spread>; 3],
}

impl<'a> Measured<'a> {
    fn of(report: &'a Report) -> Self {
        let soak = report.stability().map(|step| Latencies::new(&step.slices, step.slice_ms));
        Self { report, spreads: soak.map_or([None; 3], |soak| soak.spreads([0.99, 0.95, 0.50])) }
    }

    fn figure(&self, metric: Metric) -> Figure {
        match metric {
            Metric::P99 => self.quantile(0.99, MIN_FOR_P99, self.spreads[0]),
            Metric::P95 => self.quantile(0.95, 1, self.spreads[1]),
            Metric::P50 => self.quantile(0.50, 1, self.spreads[2]),
            Metric::Max => {
                let value = self.soak()?.latency.max_ms().ok_or_else(no_success)?;
                Ok(Sample { value, spread: None })
            }
            Metric::Tps => {
                let step = self.soak()?;
                let value = step.tps().ok_or_else(|| "the stability phase has no measured part".to_owned())?;
                Ok(Sample { value, spread: bootstrap::rate(&step.measured_seconds()) })
            }
            Metric::Capacity => {
                let found = figures::capacity(self.report).ok_or_else(|| self.no_capacity())?;
                let spread =
                    figures::capacity_step(self.report).and_then(|step| bootstrap::rate(&step.measured_seconds()));
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
                let [spread] = Latencies::new(&step.slices, step.slice_ms).spreads([0.5]);
                Ok(Sample { value, spread })
            }
            Metric::ErrorRate => Err(no_ratio()),
        }
    }

    fn soak(&self) -> Result<&'a Step, String> {
        self.report.stability().ok_or_else(|| "no stability phase".to_owned())
    }

    fn quantile(&self, q: f64, at_least: u64, spread: Option<Spread>) -> Figure {
        let step = self.soak()?;
        let n = step.latency.len();
        let value = step.latency.quantile_ms(q).ok_or_else(no_success)?;
        if n < at_least {
            return Err(format!("withheld: {} successes, a P99 needs {at_least}", format::count(n)));
        }
        Ok(Sample { value, spread })
    }

    fn no_capacity(&self) -> String {
        let limit = self.report.plan.phases.staircase.max_error_rate;
        match self.report.staircase().len() {
            0 | 1 => "no staircase".to_owned(),
            _ => format!("no step within the error limit of {}{}%", format::percent(limit), format::NARROW),
        }
    }
}

fn no_ratio() -> String {
    "the error rate is no ratio".to_owned()
}

fn no_success() -> String {
    "no request succeeded".to_owned()
}

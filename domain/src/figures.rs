//! The figures people read, computed from a report in one place for terminal, page, comment and JSON.

use serde::{Deserialize, Serialize};

use crate::histogram::Histogram;
use crate::knee::{self, Capacity, Point};
use crate::little;
use crate::outcome::Outcomes;
use crate::percentile;
use crate::report::{LoadChoice, Report, Step, StepRole};

/// Everything that a summary of one run shows. Latencies are ms; absent figures were not measured or are withheld.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Figures {
    pub smoke: Option<SmokeFigures>,
    pub capacity: Option<Capacity>,
    pub stability: Option<StabilityFigures>,
    /// By rising workers.
    pub steps: Vec<StepFigures>,
}

/// One request alone, and what follows from it.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct SmokeFigures {
    /// Median latency of the one worker.
    pub latency_ms: f64,
    /// What one worker carries by Little's law.
    pub tps_per_worker: Option<f64>,
    pub requests: u64,
}

#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct StabilityFigures {
    pub load_choice: Option<LoadChoice>,
    #[serde(flatten)]
    pub step: StepFigures,
}

/// One step. Percentiles are over the successes issued in its measured part.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct StepFigures {
    pub role: StepRole,
    pub workers: u32,
    pub measured_s: f64,
    pub tps: Option<f64>,
    /// Successes behind the percentiles.
    pub requests: u64,
    pub p50_ms: Option<f64>,
    pub p95_ms: Option<f64>,
    /// Absent below 662 successes.
    pub p99_ms: Option<f64>,
    /// Two-sided 95 % order-statistic interval of P99.
    pub p99_interval_ms: Option<[f64; 2]>,
    pub max_ms: Option<f64>,
    pub mean_ms: Option<f64>,
    /// P99 with failures counted at the response timeout.
    pub p99_censored_ms: Option<f64>,
    pub error_rate: Option<f64>,
    pub outcomes: Outcomes,
    pub connections: u64,
    /// Deviation from Little's law, a fraction.
    pub little_deviation: Option<f64>,
    pub engine_cpu: Option<f64>,
    pub host_cpu: Option<f64>,
}

impl Figures {
    pub fn of(report: &Report) -> Self {
        let smoke = report.smoke().and_then(|step| {
            let latency_ms = step.latency.quantile_ms(0.5)?;
            let tps_per_worker = little::tps_of_one(latency_ms);
            Some(SmokeFigures { latency_ms, tps_per_worker, requests: step.latency.len() })
        });
        let stability = report
            .stability()
            .map(|step| StabilityFigures { load_choice: report.load_choice, step: StepFigures::of(step) });
        let steps = report.staircase().into_iter().map(StepFigures::of).collect();
        Self { smoke, capacity: capacity(report), stability, steps }
    }
}

impl StepFigures {
    pub fn of(step: &Step) -> Self {
        let p99 = percentile::p99(&step.latency);
        let quantile = |histogram: &Histogram, q| histogram.quantile_ms(q);
        Self {
            role: step.role,
            workers: step.workers,
            measured_s: step.measured_s(),
            tps: step.tps(),
            requests: step.latency.len(),
            p50_ms: quantile(&step.latency, 0.50),
            p95_ms: quantile(&step.latency, 0.95),
            p99_ms: p99.map(|p| p.value),
            p99_interval_ms: p99.map(|p| [p.low, p.high]),
            max_ms: step.latency.max_ms(),
            mean_ms: step.latency.mean_ms(),
            p99_censored_ms: percentile::p99(&step.latency_censored).map(|p| p.value),
            error_rate: step.outcomes.error_rate(),
            outcomes: step.outcomes.clone(),
            connections: step.connections,
            little_deviation: little::deviation(step.completed.busy_us, step.measured_s(), step.workers),
            engine_cpu: step.generator.engine_cpu,
            host_cpu: step.generator.host_cpu,
        }
    }
}

/// The staircase as points for the search of capacity and knee.
pub fn points(steps: &[&Step], max_error_rate: f64) -> Vec<Point> {
    steps
        .iter()
        .filter_map(|step| {
            let within_limit = step.outcomes.error_rate().is_some_and(|rate| rate <= max_error_rate);
            Some(Point { workers: step.workers, tps: step.tps()?, within_limit })
        })
        .collect()
}

/// Capacity and knee of a report; `None` without a staircase, or when no step is within the error limit.
pub fn capacity(report: &Report) -> Option<Capacity> {
    let staircase = report.staircase();
    if staircase.iter().all(|step| step.role == StepRole::Single) {
        return None;
    }
    let found = knee::capacity(&points(&staircase, report.plan.phases.staircase.max_error_rate))?;
    // The `pr` profile measures one level that is known to carry the capacity: it says nothing about the knee's bound.
    let one_step = staircase.iter().any(|step| step.role == StepRole::Capacity);
    Some(Capacity { lower_bound: found.lower_bound && !one_step, ..found })
}

/// The step that showed the capacity.
pub fn capacity_step(report: &Report) -> Option<&Step> {
    let at = capacity(report)?;
    report.staircase().into_iter().find(|step| step.workers == at.at_workers && step.tps() == Some(at.tps))
}

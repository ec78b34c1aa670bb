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
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
pub struct Figures {
    pub smoke: Option<SmokeFigures>,
    pub capacity: Option<Capacity>,
    pub stability: Option<StabilityFigures>,
    /// By rising workers.
    pub steps: Vec<StepFigures>,
}

/// One request alone, and what follows from it.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
pub struct SmokeFigures {
    /// Median latency of the one worker.
    pub latency_ms: f64,
    /// What one worker carries by Little's law.
    pub tps_per_worker: Option<f64>,
    pub requests: u64,
}

#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
pub struct StabilityFigures {
    pub load_choice: Option<LoadChoice>,
    #[serde(flatten)]
    pub step: StepFigures,
}

/// One step. Percentiles are over the successes issued in its measured part.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
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

    /// Whether the steps can show a knee: the one capacity step of the `pr` profile cannot.
    pub fn shows_knee(&self) -> bool {
        self.steps.iter().all(|step| step.role != StepRole::Capacity)
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

/// Capacity and knee of a report; `None` without a staircase, or when no step is within the error limit. Of the `pr`
/// profile its one capacity step alone says what is carried: no other step is a capacity, and there is no knee, for which
/// the step's own workers stand.
pub fn capacity(report: &Report) -> Option<Capacity> {
    let steps = carrying(report);
    if steps.iter().all(|step| step.role == StepRole::Single) {
        return None;
    }
    let found = knee::capacity(&points(&steps, report.plan.phases.staircase.max_error_rate))?;
    let one_step = steps.iter().any(|step| step.role == StepRole::Capacity);
    Some(Capacity { lower_bound: found.lower_bound && !one_step, ..found })
}

/// The step that showed the capacity.
pub fn capacity_step(report: &Report) -> Option<&Step> {
    let at = capacity(report)?;
    carrying(report).into_iter().find(|step| step.workers == at.at_workers && step.tps() == Some(at.tps))
}

/// The steps among which the capacity is looked for.
fn carrying(report: &Report) -> Vec<&Step> {
    let all = report.staircase();
    let known: Vec<&Step> = all.iter().copied().filter(|step| step.role == StepRole::Capacity).collect();
    if known.is_empty() { all } else { known }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::outcome::ErrorKind;
    use crate::plan::Profile;
    use crate::report::PhaseKind;
    use crate::synthetic::Synthetic;

    #[test]
    fn one_capacity_step_is_the_capacity_or_none_is() {
        let mut report = Synthetic { profile: Profile::Pr, ..Synthetic::default() }.report();
        let carried = capacity(&report).unwrap();
        assert_eq!((carried.workers, carried.at_workers, carried.lower_bound), (20, 20, false));
        assert!(!Figures::of(&report).shows_knee() && Figures::of(&Synthetic::default().report()).shows_knee());
        // A service that collapses there: one worker's throughput is not what it carries.
        let stairs = report.phases.iter_mut().find(|phase| phase.kind == PhaseKind::Staircase).unwrap();
        let step = &mut stairs.steps[0];
        step.completed.ok = 3;
        assert_eq!(capacity(&report).map(|found| found.at_workers), Some(20));
        let stairs = report.phases.iter_mut().find(|phase| phase.kind == PhaseKind::Staircase).unwrap();
        stairs.steps[0].outcomes.errors = [(ErrorKind::Http5xx, 1_000)].into();
        assert_eq!(capacity(&report), None);
        assert_eq!(capacity_step(&report), None);
    }
}

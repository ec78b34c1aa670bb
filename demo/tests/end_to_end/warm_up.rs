//! A cold service: the first batch of each size takes 5 s. One request alone meets it in the smoke check, two at a time
//! in the warm-up, and no figure does.

use std::time::Duration;

use plimsoll_demo::service::{Parameters, expected_capacity};
use plimsoll_domain::report::{PhaseKind, Report, StepRole};

use crate::support::{figure, measure_cold, measures, near};

const COLD: Duration = Duration::from_secs(5);

#[test]
fn what_is_slow_once_is_met_before_anything_is_measured() {
    let _turn = measures();
    let parameters = Parameters {
        pool: 10,
        pool_time: Duration::from_millis(10),
        base: Duration::from_micros(500),
        per_item: Duration::ZERO,
        max_batch: 2,
        cold_batch_extra: COLD,
        ..Parameters::default()
    };
    let (found, report) = measure_cold(&parameters, PLAN);
    let slowest = |phase, role| slowest_ms(&report, phase, role);
    let cold = COLD.as_secs_f64() * 1e3;
    let met = [slowest(PhaseKind::Smoke, StepRole::Check), slowest(PhaseKind::WarmUp, StepRole::WarmUp)];
    assert!(met.iter().all(|max| (cold..1.5 * cold).contains(max)), "the cold answers were met elsewhere: {met:?}");
    let measured = [
        slowest(PhaseKind::Smoke, StepRole::Single),
        slowest(PhaseKind::Staircase, StepRole::Planned),
        slowest(PhaseKind::Stability, StepRole::Soak),
    ];
    assert!(measured.iter().all(|max| *max < 1_000.0), "a cold answer is among the figures: {measured:?}");

    // 8 of 10 workers are busy: nothing waits.
    let expected = expected_capacity(&parameters).single_ms;
    let [p50, p99] = ["p50", "p99"].map(|name| figure(&found, &format!("/stability/{name}_ms")));
    assert!(near(p50, expected, 0.2), "P50 {p50} ms, expected {expected} ms");
    assert!(p99 < 3.0 * expected, "P99 {p99} ms, expected {expected} ms");
}

/// The slowest success of the steps of this role.
fn slowest_ms(report: &Report, phase: PhaseKind, role: StepRole) -> f64 {
    let steps = &report.phase(phase).expect("the phase ran").steps;
    let slowest = steps.iter().filter(|step| step.role == role).filter_map(|step| step.latency.max_ms());
    slowest.reduce(f64::max).unwrap_or_else(|| panic!("no success in {phase:?}, {role:?}"))
}

const PLAN: &str = r#"
project = "cold"
[service]
url = "http://127.0.0.1:1/predict"
[workload]
body = { text = "good" }
[smoke]
duration = "1s"
[warm_up]
min_requests = 20
max_duration = "8s"
top = "8s"
[staircase]
workers = [8]
step = "1s"
ramp_up = "50ms"
search = false
[stability]
duration = "3s"
ramp_up = "50ms"
workers = 8
"#;

//! Capacity, knee and single-request latency against a service whose figures are known by arithmetic.

use std::time::Duration;

use plimsoll_demo::service::{Parameters, expected_capacity};

use crate::support::{Serving, figure, measure, measures, near};

#[test]
fn capacity_and_knee_are_the_arithmetic_ones() {
    let _turn = measures();
    // Pool and time of a request in ms, a few at once: together they need a fraction of one core.
    let rounds: [&[(u32, u64)]; 2] = [&[(7, 40), (25, 50), (30, 60)], &[(60, 100), (150, 150)]];
    let wrong: Vec<String> = rounds.into_iter().flat_map(together).collect();
    assert!(wrong.is_empty(), "{wrong:#?}");
}

/// Measures these plateaus side by side; returns those that do not fit.
fn together(plateaus: &[(u32, u64)]) -> Vec<String> {
    std::thread::scope(|scope| {
        let running: Vec<_> = plateaus.iter().map(|(pool, ms)| scope.spawn(|| plateau(*pool, *ms))).collect();
        running.into_iter().filter_map(|one| one.join().expect("a plateau was measured")).collect()
    })
}

fn plateau(pool: u32, ms: u64) -> Option<String> {
    let parameters = Parameters {
        pool,
        pool_time: Duration::from_millis(ms),
        base: Duration::from_micros(200),
        per_item: Duration::ZERO,
        ..Parameters::default()
    };
    let expected = expected_capacity(&parameters);
    let found = measure(&Serving::service(&parameters), PLAN);
    let (tps, knee) = (figure(&found, "/capacity/tps"), figure(&found, "/capacity/workers"));
    let latency = figure(&found, "/smoke/latency_ms");
    let fits = near(tps, expected.capacity, 0.05)
        && near(knee, pool.into(), 0.15)
        && (latency - expected.single_ms).abs() <= 0.02 * expected.single_ms + 1.0;
    let line = format!("pool {pool}: {tps:.1} TPS, knee {knee}, {latency:.2} ms alone; expected {expected:?}");
    eprintln!("{line}");
    (!fits).then_some(line)
}

const PLAN: &str = r#"
project = "plateaus"
[service]
url = "http://127.0.0.1:1/predict"
[workload]
body = { text = "good" }
[smoke]
duration = "1s"
[warm_up]
min_requests = 5
max_duration = "1s"
top = "0s"
[staircase]
workers = [5, 20, 80]
step = "1s"
ramp_up = "50ms"
search_step = "1s"
[stability]
duration = "1s"
ramp_up = "50ms"
"#;

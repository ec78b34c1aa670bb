//! A cold service: its first answers take 5 s.

use std::time::Duration;

use plimsoll_demo::service::{Parameters, expected_capacity};

use crate::support::{Serving, figure, measure, near, turn};

#[test]
fn cold_answers_leave_the_stability_figures_untouched() {
    let _turn = turn();
    let parameters = Parameters {
        pool: 10,
        pool_time: Duration::from_millis(10),
        base: Duration::from_micros(200),
        per_item: Duration::ZERO,
        cold_requests: 2,
        cold_extra: Duration::from_secs(5),
        ..Parameters::default()
    };
    let found = measure(&Serving::service(&parameters), PLAN);
    // 8 of 10 workers are busy: nothing waits.
    let expected = expected_capacity(&parameters).single_ms;
    let [p50, p99, max] = ["p50", "p99", "max"].map(|name| figure(&found, &format!("/stability/{name}_ms")));
    assert!(near(p50, expected, 0.2), "P50 {p50} ms, expected {expected} ms");
    assert!(p99 < 3.0 * expected, "P99 {p99} ms, expected {expected} ms");
    assert!(max < 1_000.0, "a cold answer of {max} ms is among the figures");
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
top = "1s"
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

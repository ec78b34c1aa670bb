//! Little's law, N = X·R: what a closed loop must obey, and what one worker's latency promises.

/// How far the concurrency that the figures imply may lie from the number of workers.
pub const MAX_DEVIATION: f64 = 0.05;

/// Workers needed for a wanted throughput, with the trade's 30 % margin: `tps · latency · 1.3`, at least 1.
pub fn workers_for(tps: f64, latency_ms: f64) -> u64 {
    (tps * latency_ms / 1_000.0 * 1.3).ceil().max(1.0) as u64
}

/// Requests per second of one worker that always waits for its answer; `None` for a latency of zero or less.
pub fn tps_of_one(latency_ms: f64) -> Option<f64> {
    (latency_ms > 0.0).then(|| 1_000.0 / latency_ms)
}

/// Relative deviation of the measured concurrency (time in the system per second of the step) from the number of
/// workers, which think time would lower; `None` without length or workers.
pub fn deviation(busy_us: u64, measured_s: f64, workers: u32) -> Option<f64> {
    let expected_us = measured_s * 1e6 * f64::from(workers);
    (expected_us > 0.0).then(|| busy_us as f64 / expected_us - 1.0)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_trade_s_arithmetic() {
        assert_eq!(workers_for(100.0, 42.0), 6);
        assert_eq!(workers_for(0.1, 1.0), 1);
        assert_eq!(tps_of_one(40.0), Some(25.0));
        assert_eq!(tps_of_one(0.0), None);
        assert!((deviation(9_500_000, 1.0, 10).unwrap() + 0.05).abs() < 1e-9);
        assert_eq!(deviation(1, 0.0, 10), None);
    }
}

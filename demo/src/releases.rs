//! The three releases of the sample service.

use std::time::Duration;

use crate::service::Parameters;

#[derive(Debug, Clone)]
pub struct Release {
    pub tag: &'static str,
    /// What its authors would say about it.
    pub change: &'static str,
    pub parameters: Parameters,
}

/// Workers of the stability phase for every release: above the first one's knee of 10, so that its queue shows in P99,
/// and above the second one's of 37, so that every release is full and P99 goes with 1 / capacity.
pub const STABILITY_WORKERS: u32 = 48;

/// In the order in which they appear. By arithmetic the first carries 305 TPS, the second 1 000, the third 579, so that
/// 48 workers wait about 157, 48 and 83 ms.
pub fn releases() -> [Release; 3] {
    let ms = Duration::from_millis;
    let common = Parameters {
        pool_time: ms(30),
        base: ms(2),
        per_item: Duration::from_micros(500),
        jitter: 0.1,
        slow_probability: 0.002,
        slow_extra: ms(150),
        cold_requests: 3,
        cold_extra: ms(200),
        ..Parameters::default()
    };
    [
        Release {
            tag: "v1.0.0",
            change: "pool 10, queue 10 000, no batching",
            parameters: Parameters { pool: 10, queue: 10_000, max_batch: 1, ..common.clone() },
        },
        Release {
            tag: "v1.1.0",
            change: "pool 64, queue 500, batches of up to 4",
            parameters: Parameters { pool: 64, queue: 500, max_batch: 4, ..common.clone() },
        },
        Release {
            tag: "v1.2.0",
            change: "pool 20 \"to save memory\", else as before",
            parameters: Parameters { pool: 20, queue: 500, max_batch: 4, ..common },
        },
    ]
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::service::expected_capacity;

    #[test]
    fn the_arithmetic_promises_the_verdicts() {
        let carried = releases().map(|release| expected_capacity(&release.parameters));
        let [first, second, third] = carried.map(|expected| expected.capacity);
        assert!(
            (first - 305.0).abs() < 1.0 && (second - 1_000.0).abs() < 1.0 && (third - 579.0).abs() < 2.0,
            "{carried:?}"
        );
        assert!(carried.iter().all(|expected| expected.workers < f64::from(STABILITY_WORKERS)));
        assert!(second > 3.0 * first && third < 0.6 * second);
        // Nothing is refused: what waits fits into every queue.
        assert!(releases().iter().all(|release| release.parameters.queue > STABILITY_WORKERS));
    }
}

//! Seeded chance: what happens to the n-th request and the n-th batch, whichever thread takes it.

use std::time::Duration;

use rand_xoshiro::Xoshiro256PlusPlus;
use rand_xoshiro::rand_core::{Rng, SeedableRng};

use super::parameters::Parameters;

/// What chance and the parameters hold ready for one request.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(super) struct Fate {
    /// How long a pool worker spends on it besides the accelerator.
    pub pool: Duration,
    /// It ends in a 500.
    pub fails: bool,
}

impl Fate {
    /// Of the `n`-th request since the start, counted from 0.
    pub(super) fn of(parameters: &Parameters, n: u64) -> Self {
        let mut chance = Chance::new(parameters.seed, n);
        let mut pool = chance.around(parameters.pool_time, parameters.jitter);
        if chance.below(parameters.slow_probability) {
            pool += parameters.slow_extra;
        }
        if n < parameters.cold_requests {
            pool += parameters.cold_extra;
        }
        let fails =
            chance.below(parameters.error_probability) || parameters.error_after.is_some_and(|after| n >= after);
        Self { pool, fails }
    }
}

/// How long the accelerator takes for its `n`-th batch, of `items`.
pub(super) fn batch_time(parameters: &Parameters, n: u64, items: u32) -> Duration {
    Chance::new(!parameters.seed, n).around(parameters.batch_time(items), parameters.jitter)
}

struct Chance(Xoshiro256PlusPlus);

impl Chance {
    fn new(seed: u64, n: u64) -> Self {
        // The generator scrambles its seed, so neighbouring numbers give unrelated streams.
        Self(Xoshiro256PlusPlus::seed_from_u64(seed.wrapping_mul(0x9e37_79b9_7f4a_7c15).wrapping_add(n)))
    }

    /// Uniform in [0, 1).
    fn uniform(&mut self) -> f64 {
        (self.0.next_u64() >> 11) as f64 / (1u64 << 53) as f64
    }

    fn below(&mut self, probability: f64) -> bool {
        self.uniform() < probability
    }

    /// Uniform in `time` ± the fraction `jitter`, so with `time` as its mean.
    fn around(&mut self, time: Duration, jitter: f64) -> Duration {
        time.mul_f64(1.0 + jitter * (2.0 * self.uniform() - 1.0))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn mean(of: impl Fn(u64) -> f64) -> f64 {
        (0..20_000).map(of).sum::<f64>() / 20_000.0
    }

    #[test]
    fn the_same_request_has_the_same_fate() {
        let parameters = Parameters { jitter: 0.2, error_probability: 0.5, ..Parameters::default() };
        assert_eq!(Fate::of(&parameters, 7), Fate::of(&parameters, 7));
        let other = Parameters { seed: 2, ..parameters };
        assert!((0..50).any(|n| Fate::of(&parameters, n) != Fate::of(&other, n)));
    }

    #[test]
    fn means_are_the_parameters() {
        let ms = Duration::from_millis;
        let parameters = Parameters {
            pool_time: ms(50),
            jitter: 0.1,
            slow_probability: 0.01,
            slow_extra: ms(200),
            error_probability: 0.25,
            ..Parameters::default()
        };
        let pool = mean(|n| Fate::of(&parameters, n).pool.as_secs_f64());
        assert!((pool / 0.052 - 1.0).abs() < 0.01, "{pool}");
        let failed = mean(|n| f64::from(u8::from(Fate::of(&parameters, n).fails)));
        assert!((failed - 0.25).abs() < 0.02, "{failed}");
        let batch = mean(|n| batch_time(&parameters, n, 3).as_secs_f64());
        assert!((batch / parameters.batch_time(3).as_secs_f64() - 1.0).abs() < 0.01, "{batch}");
    }

    #[test]
    fn cold_requests_come_first_and_errors_after() {
        let extra = Duration::from_secs(5);
        let parameters =
            Parameters { cold_requests: 3, cold_extra: extra, error_after: Some(10), ..Parameters::default() };
        let fates: Vec<_> = (0..20).map(|n| Fate::of(&parameters, n)).collect();
        assert!(fates.iter().enumerate().all(|(n, fate)| (fate.pool >= extra) == (n < 3) && fate.fails == (n >= 10)));
    }
}

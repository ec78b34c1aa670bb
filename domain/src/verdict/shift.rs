//! The change of one figure between two revisions, on the log scale, with its uncertainty.

use statrs::distribution::{ContinuousCDF, Normal, StudentsT};

use super::measure::Sample;

/// Candidate minus the mean of the baselines.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(super) struct Shift {
    pub log: f64,
    /// Standard error of `log`.
    error: f64,
    /// Of the error's within-run part, by Welch and Satterthwaite; σ counts as known.
    freedom: f64,
    /// The share of the variance that lies within the runs.
    pub within: f64,
    /// The fewest blocks that any side's spread rests on, and their length.
    pub blocks: usize,
    pub block_s: f64,
}

impl Shift {
    /// `None` when a run has no spread, or a figure has no logarithm. `sigma`: between runs of the same code.
    pub(super) fn of(baselines: &[Sample], candidate: &Sample, sigma: f64) -> Option<Self> {
        let k = baselines.len() as f64;
        let log = candidate.value.ln() - log_mean(baselines);
        let mut spreads = vec![(candidate.spread?, 1.0)];
        for baseline in baselines {
            spreads.push((baseline.spread?, 1.0 / (k * k)));
        }
        let within: f64 = spreads.iter().map(|(spread, weight)| spread.variance * weight).sum();
        let variance = within + sigma * sigma * (1.0 + 1.0 / k);
        let loose: f64 = spreads
            .iter()
            .map(|(spread, weight)| (spread.variance * weight).powi(2) / (spread.blocks as f64 - 1.0).max(1.0))
            .sum();
        let (fewest, _) = spreads.iter().min_by_key(|(spread, _)| spread.blocks)?;
        (log.is_finite() && variance > 0.0).then(|| Self {
            log,
            error: variance.sqrt(),
            freedom: variance * variance / loose,
            within: within / variance,
            blocks: fewest.blocks,
            block_s: fewest.block_s,
        })
    }

    /// The two-sided 90 % interval of `log`; each end is a one-sided 95 % bound.
    pub(super) fn interval(&self) -> [f64; 2] {
        let reach = self.error * quantile_95(self.freedom);
        [self.log - reach, self.log + reach]
    }

    /// The one-sided p-value of no change, against a rise (`sign` 1) or a fall (−1).
    pub(super) fn p_of_no_change(&self, sign: f64) -> f64 {
        let t = sign * self.log / self.error;
        match students(self.freedom) {
            Some(students) => students.sf(t),
            None => Normal::standard().sf(t),
        }
    }
}

/// Of a pool, the runs that say how sure they are; all when none does. One run that is too short must not silence the
/// others.
pub(super) fn sure(pool: Vec<Sample>) -> Vec<Sample> {
    if pool.iter().any(|sample| sample.spread.is_some()) {
        pool.into_iter().filter(|sample| sample.spread.is_some()).collect()
    } else {
        pool
    }
}

/// ln of the geometric mean.
pub(super) fn log_mean(samples: &[Sample]) -> f64 {
    samples.iter().map(|sample| sample.value.ln()).sum::<f64>() / samples.len() as f64
}

/// The geometric mean, exact for one sample.
pub(super) fn mean(samples: &[Sample]) -> Option<f64> {
    match samples {
        [] => None,
        [only] => Some(only.value),
        _ => Some(log_mean(samples).exp()),
    }
}

fn quantile_95(freedom: f64) -> f64 {
    students(freedom).map_or(crate::proportion::Z95, |students| students.inverse_cdf(0.95))
}

/// `None` where Student's distribution is the normal one to three digits.
fn students(freedom: f64) -> Option<StudentsT> {
    (freedom < 1_000.0).then(|| StudentsT::new(0.0, 1.0, freedom.max(1.0)).expect("positive scale and freedom"))
}

//! Shares of requests, and how sure their difference is.

use serde::{Deserialize, Serialize};

/// The quantile of the normal distribution for a one-sided 95 % bound.
pub const Z95: f64 = 1.644_853_626_951_472_2;

/// Failures among requests.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
pub struct Share {
    pub failed: u64,
    pub of: u64,
}

impl Share {
    /// `None` of nothing.
    pub fn rate(self) -> Option<f64> {
        (self.of > 0).then(|| self.failed as f64 / self.of as f64)
    }

    /// Wilson's score interval at `z`; all of 0 to 1 of nothing.
    pub fn wilson(self, z: f64) -> [f64; 2] {
        let Some(p) = self.rate() else { return [0.0, 1.0] };
        let n = self.of as f64;
        let middle = p + z * z / (2.0 * n);
        let half = z * (p * (1.0 - p) / n + z * z / (4.0 * n * n)).sqrt();
        let scale = 1.0 + z * z / n;
        // Exact at the ends, where rounding would leave a trace.
        let low = if self.failed == 0 { 0.0 } else { (middle - half) / scale };
        let high = if self.failed == self.of { 1.0 } else { (middle + half) / scale };
        [low.max(0.0), high.min(1.0)]
    }
}

/// The hybrid score interval of `candidate − baseline` (Newcombe 1998, method 10); each end is a one-sided bound at `z`.
/// `None` when either side is empty.
pub fn newcombe(baseline: Share, candidate: Share, z: f64) -> Option<[f64; 2]> {
    let (b, c) = (baseline.rate()?, candidate.rate()?);
    let ([b_low, b_high], [c_low, c_high]) = (baseline.wilson(z), candidate.wilson(z));
    let low = c - b - ((c - c_low).powi(2) + (b_high - b).powi(2)).sqrt();
    let high = c - b + ((c_high - c).powi(2) + (b - b_low).powi(2)).sqrt();
    Some([low, high])
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_published_example() {
        // Newcombe (1998), table II, (a): 56/70 against 48/80 at 95 % two-sided: 0.0524 to 0.3339.
        let [low, high] = newcombe(Share { failed: 48, of: 80 }, Share { failed: 56, of: 70 }, 1.959_963_985).unwrap();
        assert!((low - 0.0524).abs() < 5e-5 && (high - 0.3339).abs() < 5e-5, "{low} {high}");
    }

    #[test]
    fn none_failed_is_bounded_by_the_number_of_requests() {
        let none = |of| Share { failed: 0, of };
        let [low, high] = newcombe(none(3_000), none(3_000), Z95).unwrap();
        assert!(low < 0.0 && high < 0.001, "{low} {high}");
        assert!(newcombe(none(700), none(700), Z95).unwrap()[1] > 0.001);
        assert_eq!(newcombe(none(0), none(5), Z95), None);
        assert_eq!(Share { failed: 9, of: 9 }.wilson(Z95)[1], 1.0);
    }
}

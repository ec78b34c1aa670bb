//! When a percentile may be shown, and how sure it is.

use statrs::distribution::{ContinuousCDF, Normal};

use crate::histogram::Histogram;

/// Fewer successes than this do not show a P99: the second largest of 662 samples exceeds the true P99 with 99 %
/// confidence (MLPerf Inference's early-stopping rule, with one sample allowed above).
pub const MIN_FOR_P99: u64 = 662;

/// A percentile with its uncertainty, in ms.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Estimate {
    pub value: f64,
    /// Two-sided 95 % order-statistic interval.
    pub low: f64,
    pub high: f64,
}

/// P99 in ms, or `None` when the histogram holds too few requests to say.
pub fn p99(histogram: &Histogram) -> Option<Estimate> {
    (histogram.len() >= MIN_FOR_P99).then(|| estimate(histogram, 0.99))?
}

/// The quantile `q` with its order-statistic interval: the ranks between which the true quantile lies with 95 %
/// confidence, by the normal approximation to the binomial count below it (Hahn and Meeker, *Statistical Intervals*,
/// §5.2). It assumes independent requests, so it is the least that the uncertainty can be. `None` when empty.
pub fn estimate(histogram: &Histogram, q: f64) -> Option<Estimate> {
    let n = histogram.len() as f64;
    let z = Normal::standard().inverse_cdf(0.975);
    let spread = z * (n * q * (1.0 - q)).sqrt();
    let at = |rank: f64| histogram.quantile_ms((rank / n).clamp(0.0, 1.0));
    Some(Estimate {
        value: histogram.quantile_ms(q)?,
        low: at((n * q - spread).floor())?,
        high: at((n * q + spread).ceil() + 1.0)?,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn uniform(n: u64) -> Histogram {
        let mut histogram = Histogram::new();
        (1..=n).for_each(|i| histogram.record_us(i * 1_000));
        histogram
    }

    #[test]
    fn too_few_requests_show_no_p99() {
        assert_eq!(p99(&uniform(661)), None);
        assert!(p99(&uniform(662)).is_some());
        assert_eq!(estimate(&Histogram::new(), 0.5), None);
    }

    #[test]
    fn the_interval_holds_the_estimate_and_narrows_with_n() {
        let width = |n: u64| {
            let e = p99(&uniform(n)).unwrap();
            assert!(e.low <= e.value && e.value <= e.high, "{e:?}");
            (e.high - e.low) / e.value
        };
        assert!(width(1_000) > width(10_000));
        let e = p99(&uniform(1_000)).unwrap();
        // Ranks 983 and 998 of 1,000.
        assert!((e.low - 983.0).abs() < 1.5 && (e.high - 998.0).abs() < 1.5, "{e:?}");
    }
}

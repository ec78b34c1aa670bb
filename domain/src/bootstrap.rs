//! How sure one run is of its own figures: the moving-block bootstrap (Künsch 1989).
//!
//! Requests close in time are slow together, so whole blocks of the run are drawn, each long enough that two blocks
//! know little of each other. The blocks are weights on slices; no request is copied.

use rand_xoshiro::Xoshiro256PlusPlus;
use rand_xoshiro::rand_core::{Rng, SeedableRng};
use serde::{Deserialize, Serialize};

use crate::histogram::{BINS, Histogram, bin, upper_end};

/// Resamples behind each spread.
pub const RESAMPLES: usize = 2_000;
/// With fewer blocks than this the spread itself is rough, which the interval and its note say.
pub const ENOUGH_BLOCKS: usize = 20;
/// Correlation over the whole run never leaves fewer blocks than this.
const FEWEST_BLOCKS: usize = 5;
/// Fewer slices than this say nothing about how a run varies.
const FEWEST_SLICES: usize = 3;
/// More slices than this are put together in neighbouring groups: time and memory stay bounded.
const MOST_SLICES: usize = 240;
const SEED: u64 = 0x0050_4c49_4d53_4f4c;

/// The uncertainty of one figure of one run.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
pub struct Spread {
    /// Variance of the figure's logarithm.
    pub variance: f64,
    /// Whole blocks in the run.
    pub blocks: usize,
    pub block_s: f64,
}

/// A latency distribution over time, ready for any quantile.
#[derive(Debug)]
pub struct Latencies {
    slice_s: f64,
    slices: usize,
    /// Upper ends of the used bins in µs, rising.
    values: Vec<u64>,
    /// Row by bin, column by slice: requests of the slice in this bin or below.
    below: Below,
}

/// Sixteen bits where they suffice: eight products at a time on any 64-bit x86.
#[derive(Debug)]
enum Below {
    Narrow(Vec<i16>),
    Wide(Vec<u32>),
}

impl Latencies {
    /// `slices` in order of time, each `slice_ms` long.
    pub fn new(slices: &[Histogram], slice_ms: u64) -> Self {
        let together = slices.len().div_ceil(MOST_SLICES).max(1);
        let columns = slices.len().div_ceil(together);
        let mut rows = vec![u32::MAX; BINS];
        for (us, _) in slices.iter().flat_map(Histogram::bins) {
            rows[bin(us)] = 0;
        }
        let mut values = Vec::new();
        for (i, row) in rows.iter_mut().enumerate().filter(|(_, row)| **row == 0) {
            *row = values.len() as u32;
            values.push(upper_end(i));
        }
        let mut below = vec![0u32; values.len() * columns];
        for (i, slice) in slices.iter().enumerate() {
            for (us, count) in slice.bins() {
                let cell = &mut below[rows[bin(us)] as usize * columns + i / together];
                *cell = cell.saturating_add(u32::try_from(count).unwrap_or(u32::MAX));
            }
        }
        for i in columns..below.len() {
            below[i] = below[i].saturating_add(below[i - columns]);
        }
        let last = below.len().saturating_sub(columns);
        let below = if below[last..].iter().all(|all| i16::try_from(*all).is_ok()) {
            Below::Narrow(below.into_iter().map(|count| count as i16).collect())
        } else {
            Below::Wide(below)
        };
        Self { slice_s: (slice_ms * together as u64) as f64 / 1_000.0, slices: columns, values, below }
    }

    /// The spread of the quantile `q`; `None` with too few slices.
    pub fn spread(&self, q: f64) -> Option<Spread> {
        if self.slices < FEWEST_SLICES || self.values.is_empty() {
            return None;
        }
        let at = self.row_of(q, &vec![1; self.slices], self.values.len() / 2);
        // What a slice adds to the quantile's error: its requests above the quantile beyond their share.
        let (below, all) = (self.row(at), self.row(self.values.len() - 1));
        let influence: Vec<f64> = below.zip(all).map(|(below, all)| f64::from(below) - q * f64::from(all)).collect();
        let blocks = Blocks::fitting(&influence, self.slice_s);
        blocks.spread(|weights| (self.values[self.row_of(q, weights, at)] as f64).ln())
    }

    /// The bin that holds the quantile when each slice counts `weights` times, by the same rank as a histogram's.
    /// `near` is where to look first: resamples land close to the run's own quantile.
    fn row_of(&self, q: f64, weights: &[i16], near: usize) -> usize {
        let at_or_below = |row: usize| self.weighted(row, weights);
        let last = self.values.len() - 1;
        let rank = ((q * at_or_below(last) as f64).ceil() as u64).max(1);
        let (mut low, mut high) = (0, last);
        let mut reach = 4;
        if at_or_below(near) >= rank {
            high = near;
            while high > reach && low == 0 {
                if at_or_below(high - reach) >= rank {
                    high -= reach
                } else {
                    low = high - reach + 1
                }
                reach *= 2;
            }
        } else {
            low = near + 1;
            while low + reach < last && high == last {
                if at_or_below(low + reach) >= rank {
                    high = low + reach
                } else {
                    low += reach + 1
                }
                reach *= 2;
            }
        }
        while low < high {
            let middle = low + (high - low) / 2;
            if at_or_below(middle) >= rank { high = middle } else { low = middle + 1 }
        }
        low
    }

    /// The requests of a row, those of each slice times its weight.
    fn weighted(&self, row: usize, weights: &[i16]) -> u64 {
        let cells = row * self.slices..(row + 1) * self.slices;
        match &self.below {
            // Weights add up to the slices drawn, some hundreds: the sum stays within 32 bits.
            Below::Narrow(below) => {
                let products = below[cells].iter().zip(weights).map(|(n, weight)| i32::from(*n) * i32::from(*weight));
                u64::from(products.sum::<i32>().unsigned_abs())
            }
            Below::Wide(below) => {
                let products = below[cells]
                    .iter()
                    .zip(weights)
                    .map(|(n, weight)| u64::from(*n) * u64::from(weight.unsigned_abs()));
                products.sum()
            }
        }
    }

    fn row(&self, row: usize) -> impl Iterator<Item = u32> + '_ {
        let cells = row * self.slices..(row + 1) * self.slices;
        cells.map(|cell| match &self.below {
            Below::Narrow(below) => u32::from(below[cell].unsigned_abs()),
            Below::Wide(below) => below[cell],
        })
    }
}

/// The spread of a rate from its counts per second; `None` with too few seconds or no events.
pub fn rate(counts: &[u64]) -> Option<Spread> {
    let together = counts.len().div_ceil(MOST_SLICES).max(1);
    let counts: Vec<u64> = counts.chunks_exact(together).map(|group| group.iter().sum()).collect();
    let total: u64 = counts.iter().sum();
    if counts.len() < FEWEST_SLICES || total == 0 {
        return None;
    }
    let mean = total as f64 / counts.len() as f64;
    let influence: Vec<f64> = counts.iter().map(|count| *count as f64 - mean).collect();
    Blocks::fitting(&influence, together as f64).spread(|weights| {
        let (sum, n) = counts
            .iter()
            .zip(weights)
            .map(|(c, w)| (c, u64::from(w.unsigned_abs())))
            .fold((0, 0), |(sum, n), (c, w)| (sum + c * w, n + w));
        // A resample without any event counts as half an event: its logarithm must exist.
        ((sum as f64).max(0.5) / n as f64).ln()
    })
}

/// Blocks of `length` slices out of `slices`.
#[derive(Debug, Clone, Copy, PartialEq)]
struct Blocks {
    slices: usize,
    length: usize,
    slice_s: f64,
}

impl Blocks {
    /// Blocks of max(1 s, three autocorrelation times), in whole slices.
    fn fitting(series: &[f64], slice_s: f64) -> Self {
        let wanted = (3.0 * autocorrelation_slices(series) * slice_s).max(1.0);
        let most = (series.len() / FEWEST_BLOCKS).max(1);
        let length = ((wanted / slice_s).ceil() as usize).clamp(1, most);
        Self { slices: series.len(), length, slice_s }
    }

    fn spread(self, mut figure: impl FnMut(&[i16]) -> f64) -> Option<Spread> {
        let Self { slices, length, slice_s } = self;
        let whole = slices / length;
        if whole < 2 {
            return None;
        }
        let drawn = slices.div_ceil(length);
        let mut random = Xoshiro256PlusPlus::seed_from_u64(SEED);
        let starts = (slices - length + 1) as u64;
        let mut weights = vec![0i16; slices];
        // Welford's update: exactly 0 when all resamples agree.
        let (mut mean, mut squares) = (0.0, 0.0);
        for i in 0..RESAMPLES {
            weights.fill(0);
            for _ in 0..drawn {
                let start = ((u128::from(random.next_u64()) * u128::from(starts)) >> 64) as usize;
                weights[start..start + length].iter_mut().for_each(|w| *w += 1);
            }
            let value = figure(&weights);
            let off = value - mean;
            mean += off / (i + 1) as f64;
            squares += off * (value - mean);
        }
        // Drawn with replacement, m blocks vary by (m − 1)/m too little; and `drawn` blocks may be longer than the run.
        let fewer = whole as f64 / (whole as f64 - 1.0) * (drawn * length) as f64 / slices as f64;
        let variance = squares / (RESAMPLES - 1) as f64 * fewer;
        Some(Spread { variance, blocks: whole, block_s: length as f64 * slice_s })
    }
}

/// The integrated autocorrelation time in slices: the correlations at lags 1, 2, …, summed until one is within the
/// noise that a series of this length has anyway (2/√n). 0 for white noise.
fn autocorrelation_slices(series: &[f64]) -> f64 {
    let n = series.len();
    let mean = series.iter().sum::<f64>() / n as f64;
    let variance: f64 = series.iter().map(|x| (x - mean).powi(2)).sum();
    if variance <= 0.0 {
        return 0.0;
    }
    let noise = 2.0 / (n as f64).sqrt();
    let correlation =
        |lag: usize| series.iter().zip(&series[lag..]).map(|(a, b)| (a - mean) * (b - mean)).sum::<f64>() / variance;
    (1..n / 2).map(correlation).take_while(|r| *r > noise).sum()
}

#[cfg(test)]
mod plain;

#[cfg(test)]
mod tests {
    use super::*;

    fn uniform(random: &mut Xoshiro256PlusPlus) -> f64 {
        (random.next_u64() >> 11) as f64 / (1u64 << 53) as f64
    }

    /// Exponential latencies of mean 100 ms, `n` in each of `slices`; `level` scales each slice.
    fn slices(seed: u64, slices: usize, n: usize, level: impl Fn(usize) -> f64) -> Vec<Histogram> {
        let mut random = Xoshiro256PlusPlus::seed_from_u64(seed);
        (0..slices)
            .map(|i| {
                let mut histogram = Histogram::new();
                (0..n).for_each(|_| histogram.record_us((-uniform(&mut random).ln() * level(i) * 1e5) as u64));
                histogram
            })
            .collect()
    }

    #[test]
    fn independent_requests_give_the_textbook_spread() {
        // Of ln(q̂) at p of an exponential: p(1 − p)/n over (q f(q))², with q = −ln(1 − p), f = 1 − p.
        let (p, n) = (0.99f64, 60.0 * 500.0);
        let theory = p * (1.0 - p) / n / (-(1.0 - p).ln() * (1.0 - p)).powi(2);
        let mean = (1..=10)
            .map(|seed| Latencies::new(&slices(seed, 60, 500, |_| 1.0), 1_000).spread(p).unwrap().variance / theory)
            .sum::<f64>()
            / 10.0;
        assert!((0.8..1.25).contains(&mean), "{mean}");
    }

    #[test]
    fn slow_stretches_widen_it_and_lengthen_the_blocks() {
        let white = Latencies::new(&slices(1, 60, 300, |_| 1.0), 1_000).spread(0.99).unwrap();
        let waves = Latencies::new(&slices(1, 60, 300, |i| if i / 5 % 2 == 0 { 1.0 } else { 1.5 }), 1_000)
            .spread(0.99)
            .unwrap();
        assert_eq!((white.block_s, white.blocks), (1.0, 60));
        assert!(waves.block_s >= 2.0 && waves.variance > 2.0 * white.variance, "{waves:?} {white:?}");
    }

    #[test]
    fn a_weighted_quantile_is_that_of_the_merged_histogram() {
        let slices = slices(3, 12, 40, |i| 1.0 + i as f64 / 4.0);
        let latencies = Latencies::new(&slices, 1_000);
        for weights in [[1i16; 12], [0, 0, 5, 0, 0, 0, 0, 0, 0, 0, 0, 0], [3, 0, 1, 0, 2, 0, 1, 0, 0, 4, 0, 1]] {
            let copies = slices.iter().zip(weights).flat_map(|(slice, n)| std::iter::repeat_n(slice, n as usize));
            let merged = Histogram::merged(copies);
            for q in [0.001, 0.01, 0.5, 0.95, 0.99, 1.0] {
                for near in [0, latencies.values.len() / 2, latencies.values.len() - 1] {
                    let found = latencies.values[latencies.row_of(q, &weights, near)] as f64 / 1_000.0;
                    assert_eq!(Some(found), merged.quantile_ms(q), "{q} {weights:?} {near}");
                }
            }
        }
    }

    #[test]
    fn spreads_are_those_of_the_plain_way_to_the_last_bit() {
        let runs = [
            (slices(5, 60, 400, |i| 1.0 + (i % 7) as f64 / 20.0), 1_000),
            (slices(6, 700, 30, |i| if i / 20 % 2 == 0 { 1.0 } else { 1.3 }), 1_000),
            // More requests in a slice than sixteen bits count.
            (slices(7, 40, 40_000, |_| 1.0), 10_000),
            (slices(8, 5, 3, |_| 2.0), 10_000),
            (slices(9, 4, 0, |_| 1.0), 1_000),
        ];
        for (slices, slice_ms) in runs {
            let (fast, plain) = (Latencies::new(&slices, slice_ms), plain::Latencies::new(&slices, slice_ms));
            for q in [0.5, 0.95, 0.99] {
                let bits = |spread: Spread| (spread.variance.to_bits(), spread.blocks, spread.block_s.to_bits());
                assert_eq!(fast.spread(q).map(bits), plain.spread(q).map(bits), "{q} of {} slices", slices.len());
            }
        }
    }

    #[test]
    fn too_little_says_nothing_and_much_stays_bounded() {
        assert_eq!(Latencies::new(&[], 1_000).spread(0.5), None);
        assert_eq!(Latencies::new(&slices(1, 2, 50, |_| 1.0), 1_000).spread(0.5), None);
        assert_eq!(Latencies::new(&vec![Histogram::new(); 50], 1_000).spread(0.5), None);
        assert_eq!(rate(&[0, 0, 0, 0]), None);
        assert_eq!(rate(&[7, 7]), None);
        let long = Latencies::new(&slices(1, 1_000, 3, |_| 1.0), 1_000).spread(0.5).unwrap();
        assert!(long.blocks <= MOST_SLICES && long.block_s >= 5.0, "{long:?}");
    }

    #[test]
    fn a_steady_rate_has_no_spread_and_a_noisy_one_its_own() {
        assert_eq!(rate(&[100; 30]).unwrap().variance, 0.0);
        let noisy: Vec<u64> = (0..60).map(|i| if i * 7919 % 60 % 2 == 0 { 90 } else { 110 }).collect();
        // Standard deviation 10 % of one second, 60 seconds.
        let sd = rate(&noisy).unwrap().variance.sqrt();
        assert!((0.007..0.02).contains(&sd), "{sd}");
    }
}

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
        slices.iter().for_each(|slice| slice.bins().for_each(|(us, _)| rows[bin(us)] = 0));
        let mut values = Vec::new();
        for (i, row) in rows.iter_mut().enumerate().filter(|(_, row)| **row == 0) {
            *row = values.len() as u32;
            values.push(upper_end(i));
        }
        // The last row holds all of each column: where those fit, so does every cell.
        let in_all = |group: &[Histogram]| group.iter().fold(0, |sum: u64, slice| sum.saturating_add(slice.len()));
        let below = if slices.chunks(together).all(|group| in_all(group) <= i16::MAX as u64) {
            let mut below = vec![0i16; values.len() * columns];
            for (i, slice) in slices.iter().enumerate() {
                slice.bins().for_each(|(us, n)| below[rows[bin(us)] as usize * columns + i / together] += n as i16);
            }
            add_up(&mut below, columns, |below, own| *own += below);
            Below::Narrow(below)
        } else {
            let mut below = vec![0u32; values.len() * columns];
            for (i, slice) in slices.iter().enumerate() {
                for (us, count) in slice.bins() {
                    let cell = &mut below[rows[bin(us)] as usize * columns + i / together];
                    *cell = cell.saturating_add(u32::try_from(count).unwrap_or(u32::MAX));
                }
            }
            add_up(&mut below, columns, |below, own| *own = own.saturating_add(below));
            Below::Wide(below)
        };
        Self { slice_s: (slice_ms * together as u64) as f64 / 1_000.0, slices: columns, values, below }
    }

    /// The spreads of these quantiles; `None` with too few slices. Quantiles that want blocks of one length share the
    /// resamples, which are the same for each.
    pub fn spreads<const N: usize>(&self, quantiles: [f64; N]) -> [Option<Spread>; N] {
        let mut spreads = [None; N];
        if self.slices < FEWEST_SLICES || self.values.is_empty() {
            return spreads;
        }
        let fitted = quantiles.map(|q| self.fitted(q));
        for (i, (_, blocks)) in fitted.iter().enumerate() {
            if fitted[..i].iter().any(|(_, earlier)| earlier == blocks) {
                continue;
            }
            let alike: Vec<usize> = (i..N).filter(|j| fitted[*j].1 == *blocks).collect();
            let found = blocks.resample(alike.len(), |weights, values| {
                let all = self.weighted(self.values.len() - 1, weights);
                for (value, j) in values.iter_mut().zip(&alike) {
                    let row = self.row_of(rank(quantiles[*j], all), weights, fitted[*j].0);
                    *value = (self.values[row] as f64).ln();
                }
            });
            found.into_iter().flatten().zip(&alike).for_each(|(spread, j)| spreads[*j] = Some(spread));
        }
        spreads
    }

    /// The row of the run's own quantile, and the blocks in which to draw for it.
    fn fitted(&self, q: f64) -> (usize, Blocks) {
        let whole = vec![1; self.slices];
        let last = self.values.len() - 1;
        let at = self.row_of(rank(q, self.weighted(last, &whole)), &whole, last / 2);
        // What a slice adds to the quantile's error: its requests above the quantile beyond their share.
        let (below, all) = (self.row(at), self.row(last));
        let influence: Vec<f64> = below.zip(all).map(|(below, all)| f64::from(below) - q * f64::from(all)).collect();
        (at, Blocks::fitting(&influence, self.slice_s))
    }

    /// The bin that holds the request of this rank when each slice counts `weights` times. `near` is where to look first:
    /// resamples land close to the run's own quantile.
    fn row_of(&self, rank: u64, weights: &[i16], near: usize) -> usize {
        let at_or_below = |row: usize| self.weighted(row, weights);
        let last = self.values.len() - 1;
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

/// Adds to each row the one before it.
fn add_up<T: Copy>(cells: &mut [T], columns: usize, add: impl Fn(T, &mut T)) {
    for at in (columns..cells.len()).step_by(columns.max(1)) {
        let (before, own) = cells[at - columns..at + columns].split_at_mut(columns);
        before.iter().zip(own).for_each(|(before, own)| add(*before, own));
    }
}

/// The same as a histogram's.
fn rank(q: f64, all: u64) -> u64 {
    ((q * all as f64).ceil() as u64).max(1)
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
    let blocks = Blocks::fitting(&influence, together as f64);
    // Counts before each second: what lies in a block is a difference of two, so nothing needs weights.
    let mut before = vec![0u64; counts.len() + 1];
    counts.iter().enumerate().for_each(|(i, count)| before[i + 1] = before[i].saturating_add(*count));
    let drawn = (blocks.drawn() * blocks.length) as f64;
    let mut spread = Welford::default();
    blocks.draw(|starts| {
        let sum: u64 = starts.iter().map(|start| before[start + blocks.length] - before[*start]).sum();
        // A resample without any event counts as half an event: its logarithm must exist.
        spread.add(((sum as f64).max(0.5) / drawn).ln());
    })?;
    Some(blocks.of(&spread))
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

    /// The spreads of so many figures, of which `figures` fills in the values for the weights of a resample.
    fn resample(self, count: usize, mut figures: impl FnMut(&[i16], &mut [f64])) -> Option<Vec<Spread>> {
        let mut weights = vec![0i16; self.slices];
        let (mut values, mut spreads) = (vec![0.0; count], vec![Welford::default(); count]);
        self.draw(|starts| {
            weights.fill(0);
            match self.length {
                1 => starts.iter().for_each(|start| weights[*start] += 1),
                length => starts.iter().for_each(|at| weights[*at..at + length].iter_mut().for_each(|w| *w += 1)),
            }
            figures(&weights, &mut values);
            spreads.iter_mut().zip(&values).for_each(|(spread, value)| spread.add(*value));
        })?;
        Some(spreads.iter().map(|spread| self.of(spread)).collect())
    }

    /// Hands over the blocks' first slices, resample by resample, always the same for equal blocks; `None` when there is
    /// but one block.
    fn draw(self, mut resample: impl FnMut(&[usize])) -> Option<()> {
        if self.whole() < 2 {
            return None;
        }
        let mut random = Xoshiro256PlusPlus::seed_from_u64(SEED);
        let possible = u128::from((self.slices - self.length + 1) as u64);
        let mut starts = vec![0; self.drawn()];
        for _ in 0..RESAMPLES {
            starts.iter_mut().for_each(|start| *start = ((u128::from(random.next_u64()) * possible) >> 64) as usize);
            resample(&starts);
        }
        Some(())
    }

    fn of(self, resampled: &Welford) -> Spread {
        let (whole, length) = (self.whole(), self.length);
        // Drawn with replacement, m blocks vary by (m − 1)/m too little; and `drawn` blocks may be longer than the run.
        let fewer = whole as f64 / (whole as f64 - 1.0) * (self.drawn() * length) as f64 / self.slices as f64;
        let variance = resampled.squares / (RESAMPLES - 1) as f64 * fewer;
        Spread { variance, blocks: whole, block_s: length as f64 * self.slice_s }
    }

    /// Whole blocks in the run.
    fn whole(self) -> usize {
        self.slices / self.length
    }

    /// Blocks of a resample.
    fn drawn(self) -> usize {
        self.slices.div_ceil(self.length)
    }
}

/// Welford's update: exactly 0 when all values agree.
#[derive(Debug, Clone, Copy, Default)]
struct Welford {
    n: u32,
    mean: f64,
    squares: f64,
}

impl Welford {
    fn add(&mut self, value: f64) {
        self.n += 1;
        let off = value - self.mean;
        self.mean += off / f64::from(self.n);
        self.squares += off * (value - self.mean);
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
            .map(|seed| {
                Latencies::new(&slices(seed, 60, 500, |_| 1.0), 1_000).spreads([p])[0].unwrap().variance / theory
            })
            .sum::<f64>()
            / 10.0;
        assert!((0.8..1.25).contains(&mean), "{mean}");
    }

    #[test]
    fn slow_stretches_widen_it_and_lengthen_the_blocks() {
        let white = Latencies::new(&slices(1, 60, 300, |_| 1.0), 1_000).spreads([0.99])[0].unwrap();
        let waves = Latencies::new(&slices(1, 60, 300, |i| if i / 5 % 2 == 0 { 1.0 } else { 1.5 }), 1_000)
            .spreads([0.99])[0]
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
                    let rank = rank(q, latencies.weighted(latencies.values.len() - 1, &weights));
                    let found = latencies.values[latencies.row_of(rank, &weights, near)] as f64 / 1_000.0;
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
            let bits = |spread: Spread| (spread.variance.to_bits(), spread.blocks, spread.block_s.to_bits());
            let quantiles = [0.5, 0.95, 0.99];
            for (q, fast) in quantiles.into_iter().zip(fast.spreads(quantiles)) {
                assert_eq!(fast.map(bits), plain.spread(q).map(bits), "{q} of {} slices", slices.len());
            }
            let counts: Vec<u64> = slices.iter().map(Histogram::len).collect();
            assert_eq!(rate(&counts).map(bits), plain::rate(&counts).map(bits), "{} seconds", counts.len());
        }
    }

    #[test]
    fn too_little_says_nothing_and_much_stays_bounded() {
        assert_eq!(Latencies::new(&[], 1_000).spreads([0.5]), [None]);
        assert_eq!(Latencies::new(&slices(1, 2, 50, |_| 1.0), 1_000).spreads([0.5]), [None]);
        assert_eq!(Latencies::new(&vec![Histogram::new(); 50], 1_000).spreads([0.5]), [None]);
        assert_eq!(rate(&[0, 0, 0, 0]), None);
        assert_eq!(rate(&[7, 7]), None);
        let long = Latencies::new(&slices(1, 1_000, 3, |_| 1.0), 1_000).spreads([0.5])[0].unwrap();
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

//! The plain way to the same spreads, by sorting and whole products, which the fast one must equal to the last bit.

use rand_xoshiro::Xoshiro256PlusPlus;
use rand_xoshiro::rand_core::{Rng, SeedableRng};

use super::{Blocks, FEWEST_SLICES, MOST_SLICES, RESAMPLES, SEED, Spread};
use crate::histogram::Histogram;

/// A latency distribution over time, ready for any quantile.
#[derive(Debug)]
pub(super) struct Latencies {
    slice_s: f64,
    slices: usize,
    /// Upper ends of the used bins in µs, rising.
    values: Vec<u64>,
    /// Row by bin, column by slice: requests of the slice in this bin or below.
    below: Vec<u32>,
}

impl Latencies {
    /// `slices` in order of time, each `slice_ms` long.
    pub(super) fn new(slices: &[Histogram], slice_ms: u64) -> Self {
        let together = slices.len().div_ceil(MOST_SLICES).max(1);
        let columns = slices.len().div_ceil(together);
        // Value, column, count.
        let mut bins: Vec<(u64, u32, u32)> = Vec::new();
        for (i, slice) in slices.iter().enumerate() {
            let column = (i / together) as u32;
            bins.extend(slice.bins().map(|(value, count)| (value, column, u32::try_from(count).unwrap_or(u32::MAX))));
        }
        // A stable sort merges the rising runs that the slices are.
        bins.sort_by_key(|(value, ..)| *value);
        let mut values: Vec<u64> = Vec::new();
        let mut below: Vec<u32> = Vec::new();
        let mut sums = vec![0u32; columns];
        for same in bins.chunk_by(|a, b| a.0 == b.0) {
            for (_, column, count) in same {
                let sum = &mut sums[*column as usize];
                *sum = sum.saturating_add(*count);
            }
            values.push(same[0].0);
            below.extend_from_slice(&sums);
        }
        Self { slice_s: (slice_ms * together as u64) as f64 / 1_000.0, slices: columns, values, below }
    }

    /// The spread of the quantile `q`; `None` with too few slices.
    pub(super) fn spread(&self, q: f64) -> Option<Spread> {
        if self.slices < FEWEST_SLICES || self.values.is_empty() {
            return None;
        }
        let at = self.row_of(q, &vec![1; self.slices], self.values.len() / 2);
        // What a slice adds to the quantile's error: its requests above the quantile beyond their share.
        let influence: Vec<f64> = self
            .row(at)
            .iter()
            .zip(self.row(self.values.len() - 1))
            .map(|(below, all)| f64::from(*below) - q * f64::from(*all))
            .collect();
        let blocks = Blocks::fitting(&influence, self.slice_s);
        spread(blocks, |weights| (self.values[self.row_of(q, weights, at)] as f64).ln())
    }

    /// The bin that holds the quantile when each slice counts `weights` times, by the same rank as a histogram's.
    /// `near` is where to look first: resamples land close to the run's own quantile.
    fn row_of(&self, q: f64, weights: &[u32], near: usize) -> usize {
        let at_or_below = |row: usize| -> u64 {
            self.row(row).iter().zip(weights).map(|(below, weight)| u64::from(*below) * u64::from(*weight)).sum()
        };
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

    fn row(&self, row: usize) -> &[u32] {
        &self.below[row * self.slices..][..self.slices]
    }
}

/// The spread of a rate from its counts per second.
pub(super) fn rate(counts: &[u64]) -> Option<Spread> {
    let together = counts.len().div_ceil(MOST_SLICES).max(1);
    let counts: Vec<u64> = counts.chunks_exact(together).map(|group| group.iter().sum()).collect();
    let total: u64 = counts.iter().sum();
    if counts.len() < FEWEST_SLICES || total == 0 {
        return None;
    }
    let mean = total as f64 / counts.len() as f64;
    let influence: Vec<f64> = counts.iter().map(|count| *count as f64 - mean).collect();
    spread(Blocks::fitting(&influence, together as f64), |weights| {
        let (sum, n) = counts
            .iter()
            .zip(weights)
            .map(|(c, w)| (c, u64::from(*w)))
            .fold((0, 0), |(sum, n), (c, w)| (sum + c * w, n + w));
        ((sum as f64).max(0.5) / n as f64).ln()
    })
}

fn spread(blocks: Blocks, mut figure: impl FnMut(&[u32]) -> f64) -> Option<Spread> {
    let Blocks { slices, length, slice_s } = blocks;
    let whole = slices / length;
    if whole < 2 {
        return None;
    }
    let drawn = slices.div_ceil(length);
    let mut random = Xoshiro256PlusPlus::seed_from_u64(SEED);
    let starts = (slices - length + 1) as u64;
    let mut weights = vec![0u32; slices];
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

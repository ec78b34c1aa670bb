//! Metrics that compare as a ratio: latencies, throughput, the knee.

use super::measure::{Figure, Run, Sample};
use super::row::{Row, bad_sign, sigma};
use super::shift::{self, Shift};
use crate::bootstrap::ENOUGH_BLOCKS;
use crate::comparison::{Better, Metric, MetricVerdict};
use crate::noise::Noise;
use crate::policy::Policy;
use crate::{format, sentence};

pub(super) fn ratio(metric: Metric, pool: &[&Run], candidate: &Run, policy: &Policy, noise: &Noise) -> Row {
    let mut row = Row::new(metric, policy);
    let figures: Vec<Figure> = pool.iter().map(|run| run.figure(metric)).collect();
    let before: Vec<Sample> = shift::sure(figures.iter().filter_map(|figure| figure.as_ref().ok().copied()).collect());
    let after = candidate.figure(metric);
    row.metric.baseline = shift::mean(&before);
    row.metric.candidate = after.as_ref().ok().map(|sample| sample.value);
    let after = match (after, figures.into_iter().next()) {
        (Err(why), _) => {
            row.hold(format!("{}: {why}", sentence::name(metric)));
            return row;
        }
        (Ok(_), Some(Err(why))) if before.is_empty() => {
            row.hold(format!("{} of the baseline: {why}", sentence::name(metric)));
            return row;
        }
        (Ok(after), _) => after,
    };
    let Some(was) = row.metric.baseline else { return row };
    if was <= 0.0 || after.value <= 0.0 {
        from_or_to_nothing(&mut row, was, after.value);
        return row;
    }
    row.metric.change = Some(after.value / was - 1.0);
    let Some(sigma) = sigma(metric, noise) else { return row };
    row.metric.sigma = Some(sigma.value);
    match Shift::of(&before, &after, sigma.value) {
        Some(shift) => {
            row.metric.interval = Some(shift.interval().map(f64::exp_m1));
            row.p = Some(shift.p_of_no_change(bad_sign(row.metric.better)));
            row.shift = Some(shift);
            if shift.blocks < ENOUGH_BLOCKS {
                row.note(format!(
                    "the interval rests on {} blocks of {}; from {ENOUGH_BLOCKS} on it would be narrower",
                    shift.blocks,
                    format::duration(shift.block_s)
                ));
            }
        }
        None => row.hold(format!("{}: the step is too short to say how sure the figure is", sentence::name(metric))),
    }
    row
}

/// A rate of 0 has no logarithm.
fn from_or_to_nothing(row: &mut Row, was: f64, is: f64) {
    let better_up = row.metric.better == Better::Higher;
    if was <= 0.0 && is <= 0.0 {
        row.metric.change = Some(0.0);
        row.hold("0 on both sides");
    } else if was <= 0.0 {
        row.note("new (was 0)");
        row.settle(if better_up { MetricVerdict::Pass } else { MetricVerdict::Inconclusive });
    } else {
        row.metric.change = Some(-1.0);
        row.note("fell to 0");
        row.settle(if better_up { MetricVerdict::Regressed } else { MetricVerdict::Pass });
    }
}

/// A capacity that was still growing at the last step is "at least". Both plans have the same last step, so up to
/// there the two compare; only a candidate that stopped short of a baseline's plateau may still reach it.
pub(super) fn bounded_capacity(row: &mut Row, baseline: &[&Run], candidate: &Run) {
    let before: Vec<Option<u32>> = baseline.iter().map(|run| run.growing_at).collect();
    let after = candidate.growing_at;
    let fell = row.metric.change.is_some_and(|change| change < 0.0);
    match after {
        Some(at) if fell && before.iter().any(|was| *was != Some(at)) => {
            let change = row.metric.change;
            row.undecided(format!(
                "capacity was still growing at {} and may be higher: let the staircase go on (max_workers)",
                format::workers(at)
            ));
            row.metric.change = change;
        }
        Some(at) => row.note(format!("at least: TPS was still growing at {}", format::workers(at))),
        None => {
            if let Some(at) = before.into_iter().flatten().next() {
                let at = format::workers(at);
                row.note(format!("the baseline's is at least this: its TPS was still growing at {at}"));
            }
        }
    }
}

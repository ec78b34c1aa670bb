//! Capacity and knee of a staircase.
//!
//! Capacity is the highest TPS among the steps within the error limit. The knee is the smallest number of workers that
//! reaches 95 % of it. The search around them is written as pure questions (`beyond`, `bisect`) which the runner asks
//! after each step.

use serde::{Deserialize, Serialize};

/// The share of the capacity that the knee must reach.
pub const KNEE_SHARE: f64 = 0.95;
/// TPS has stopped growing when a doubling of the workers gains less than this.
pub const FLAT_GAIN: f64 = 0.05;
/// The knee is bisected until the bracket is this narrow, relative to its upper end.
pub const KNEE_PRECISION: f64 = 0.10;

/// One concurrency level, reduced to what the search needs.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Point {
    pub workers: u32,
    pub tps: f64,
    /// Within the plan's error limit: only such a step counts.
    pub within_limit: bool,
}

/// The answer to "how much does it carry".
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
#[serde(deny_unknown_fields)]
pub struct Capacity {
    /// Requests per second.
    pub tps: f64,
    /// The knee: the smallest number of workers that reaches 95 % of `tps`.
    pub workers: u32,
    /// The step at which `tps` was reached.
    pub at_workers: u32,
    /// TPS was still growing at the last step: capacity and knee are at least this.
    pub lower_bound: bool,
}

/// Capacity and knee of the steps, in any order; `None` when no step is within the error limit.
pub fn capacity(points: &[Point]) -> Option<Capacity> {
    let best = best(points)?;
    let knee = good(points).filter(|p| p.tps >= KNEE_SHARE * best.tps).map(|p| p.workers).min()?;
    Some(Capacity { tps: best.tps, workers: knee, at_workers: best.workers, lower_bound: still_growing(points) })
}

/// The next step past the last one: double the workers while TPS grows, up to `max_workers`.
pub fn beyond(points: &[Point], max_workers: u32) -> Option<u32> {
    let last = points.iter().map(|p| p.workers).max()?;
    (still_growing(points) && last < max_workers).then(|| last.saturating_mul(2).min(max_workers))
}

/// The next step between two others that narrows the knee down, or `None` when it is known to 10 %.
pub fn bisect(points: &[Point]) -> Option<u32> {
    let knee = capacity(points)?.workers;
    let below = points.iter().map(|p| p.workers).filter(|w| *w < knee).max()?;
    let gap = knee - below;
    (gap > 1 && f64::from(gap) > KNEE_PRECISION * f64::from(knee)).then(|| below + gap / 2)
}

/// Whether the highest step still gained on the best one with fewer workers, and was not past the error limit. A step
/// that adds fewer workers than a doubling must gain only its part of [`FLAT_GAIN`]: 50 to 52 workers cannot bring 5 %.
fn still_growing(points: &[Point]) -> bool {
    let Some(last) = points.iter().max_by_key(|p| p.workers) else { return false };
    let fewer: Vec<Point> = points.iter().copied().filter(|p| p.workers < last.workers).collect();
    let Some(earlier) = best(&fewer).or_else(|| fewer.iter().copied().max_by_key(|p| p.workers)) else {
        return last.within_limit;
    };
    let doublings = (f64::from(last.workers) / f64::from(earlier.workers.max(1))).log2().min(1.0);
    last.within_limit && last.tps > earlier.tps * (1.0 + FLAT_GAIN).powf(doublings)
}

fn good(points: &[Point]) -> impl Iterator<Item = &Point> {
    points.iter().filter(|p| p.within_limit)
}

fn best(points: &[Point]) -> Option<Point> {
    good(points).copied().max_by(|a, b| a.tps.total_cmp(&b.tps).then(b.workers.cmp(&a.workers)))
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    /// A pool of `pool` threads, each request taking 10 ms.
    fn pool(pool: u32, workers: u32) -> Point {
        Point { workers, tps: f64::from(workers.min(pool)) * 100.0, within_limit: true }
    }

    fn search(size: u32, mut steps: Vec<u32>, max: u32) -> (Vec<Point>, Capacity) {
        steps.insert(0, 1);
        let mut points: Vec<Point> = steps.iter().map(|w| pool(size, *w)).collect();
        while let Some(next) = beyond(&points, max) {
            points.push(pool(size, next));
        }
        while let Some(next) = bisect(&points) {
            points.push(pool(size, next));
        }
        let found = capacity(&points).unwrap();
        (points, found)
    }

    #[test]
    fn plateaus_are_found_in_few_steps() {
        for (size, steps) in [(7, 10), (25, 12), (30, 12), (60, 12), (150, 12), (1, 6)] {
            let (points, found) = search(size, vec![5, 10, 20, 50, 100], 1_000);
            assert_eq!(found.tps, f64::from(size) * 100.0);
            let exact = (f64::from(size) * KNEE_SHARE).ceil();
            assert!((f64::from(found.workers) - exact) / exact <= KNEE_PRECISION + 0.01, "{size}: {found:?}");
            assert!(f64::from(found.workers) >= exact && !found.lower_bound, "{size}: {found:?}");
            assert!(points.len() <= steps, "{size}: {} steps", points.len());
        }
    }

    #[test]
    fn a_plateau_above_the_cap_is_a_lower_bound() {
        let (_, found) = search(5_000, vec![5, 10], 400);
        assert_eq!(found, Capacity { tps: 40_000.0, workers: 400, at_workers: 400, lower_bound: true });
    }

    #[test]
    fn a_small_step_need_not_gain_what_a_doubling_does() {
        for (size, steps, max, next) in [
            (5_000, vec![10, 50, 52], 1_000, Some(104)),
            (50, vec![10, 50, 52], 1_000, None),
            (5_000, vec![100, 200], 210, Some(210)),
        ] {
            let points: Vec<Point> = steps.into_iter().map(|w| pool(size, w)).collect();
            assert_eq!(beyond(&points, max), next, "{size} {points:?}");
        }
        // Up to a cap that lies just above the last step, and still rising there.
        let (points, found) = search(5_000, vec![100, 200], 210);
        assert_eq!((found.at_workers, found.lower_bound), (210, true), "{points:?}");
        assert!(!search(150, vec![100, 200], 210).1.lower_bound);
        // One worker, measured twice, is one step.
        assert_eq!(beyond(&[pool(50, 1), pool(50, 1)], 8), Some(2));
    }

    #[test]
    fn steps_past_the_error_limit_do_not_count() {
        let mut points = vec![pool(50, 1), pool(50, 10), pool(50, 20)];
        points.push(Point { workers: 40, tps: 9_000.0, within_limit: false });
        let found = capacity(&points).unwrap();
        assert_eq!((found.tps, found.workers, found.lower_bound), (2_000.0, 20, false));
        assert_eq!(beyond(&points, 1_000), None);
        assert_eq!(capacity(&[Point { workers: 1, tps: 1.0, within_limit: false }]), None);
        assert_eq!(capacity(&[]), None);
    }

    proptest! {
        #[test]
        fn the_search_ends_and_stays_within_its_bounds(size in 1u32..3_000, first in 1u32..200, max in 200u32..4_000) {
            let (points, found) = search(size, vec![first.max(2)], max);
            prop_assert!(points.len() < 40);
            prop_assert!(points.iter().all(|p| (1..=max).contains(&p.workers)));
            prop_assert!(found.lower_bound || f64::from(found.workers) <= f64::from(size) * 1.11 + 1.0);
        }
    }
}

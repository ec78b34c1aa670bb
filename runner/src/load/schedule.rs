//! When workers start, and which part of a step counts.

use super::clock::{MS, Nanos};

/// How many workers should have started `elapsed` into a ramp-up of length `ramp` from `base` to `target` workers. The
/// first starts at once and the last one before the end; without a ramp-up all start at once. A lower `target` is
/// reached at once: surplus workers stop by themselves.
pub(super) fn due_workers(base: u32, target: u32, ramp: Nanos, elapsed: Nanos) -> u32 {
    let added = target.saturating_sub(base);
    if added == 0 || ramp == 0 || elapsed >= ramp {
        return target;
    }
    let started = 1 + u128::from(elapsed) * u128::from(added) / u128::from(ramp);
    base + u32::try_from(started.min(u128::from(added))).unwrap_or(added)
}

/// When the next worker of a ramp-up is due, since the start of the step; `None` when all are.
pub(super) fn next_worker_at(base: u32, target: u32, ramp: Nanos, elapsed: Nanos) -> Option<Nanos> {
    let due = due_workers(base, target, ramp, elapsed);
    if due >= target {
        return None;
    }
    let added = u128::from(target - base);
    let at = (u128::from(due - base) * u128::from(ramp)).div_ceil(added);
    Some(u64::try_from(at).unwrap_or(ramp))
}

/// How long the ramp-up of a step is: as planned, and at most a quarter of the step.
pub fn ramp_up_ms(planned_ms: u64, duration_ms: u64) -> u64 {
    planned_ms.min(duration_ms / 4)
}

/// The part of a step that counts, in ms since its start: after the ramp-up, without the edges of
/// min(10 s, 10 % of the step) at each end. The ramp-up takes at most half of the step.
pub fn measured_part(duration_ms: u64, ramp_ms: u64) -> (u64, u64) {
    let trim = trim_ms(duration_ms);
    let from = ramp_ms.min(duration_ms / 2) + trim;
    (from, (duration_ms - trim).max(from))
}

/// What is cut at each edge of a step.
pub(super) fn trim_ms(duration_ms: u64) -> u64 {
    (duration_ms / 10).min(10_000)
}

pub(super) fn ms(ms: u64) -> Nanos {
    ms.saturating_mul(MS)
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn edges_are_a_tenth_and_at_most_ten_seconds() {
        for (duration, ramp, part) in [
            (120_000, 10_000, (20_000, 110_000)),
            (600_000, 10_000, (20_000, 590_000)),
            (10_000, 0, (1_000, 9_000)),
            (10_000, 2_000, (3_000, 9_000)),
            // A ramp-up longer than its step leaves something to measure.
            (10_000, 60_000, (6_000, 9_000)),
            (1_000, 0, (100, 900)),
            (1, 0, (0, 1)),
            (0, 5, (0, 0)),
        ] {
            assert_eq!(measured_part(duration, ramp), part, "{duration} ms with {ramp} ms");
        }
    }

    #[test]
    fn workers_start_spread_over_the_ramp_up() {
        let due = |elapsed| due_workers(5, 10, 10_000, elapsed);
        assert_eq!([0, 1_999, 2_000, 8_000, 9_999, 10_000].map(due), [6, 6, 7, 10, 10, 10]);
        assert_eq!(due_workers(5, 10, 0, 0), 10);
        assert_eq!(due_workers(10, 5, 10_000, 0), 5);
    }

    proptest! {
        #[test]
        fn the_next_worker_is_the_first_moment_with_more(
            base in 0u32..50, added in 0u32..500, ramp in 0u64..100_000, elapsed in 0u64..120_000
        ) {
            let target = base + added;
            let due = due_workers(base, target, ramp, elapsed);
            prop_assert!(due <= target);
            match next_worker_at(base, target, ramp, elapsed) {
                None => prop_assert_eq!(due, target),
                Some(at) => {
                    prop_assert!(at > elapsed);
                    prop_assert!(due_workers(base, target, ramp, at) > due);
                    prop_assert_eq!(due_workers(base, target, ramp, at - 1), due);
                }
            }
        }

        #[test]
        fn the_measured_part_lies_within_the_step(duration in 0u64..10_000_000, ramp in 0u64..10_000_000) {
            let (from, to) = measured_part(duration, ramp);
            prop_assert!(from <= to && to <= duration);
            prop_assert!(duration < 10 || to > from);
        }
    }
}

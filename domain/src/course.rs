//! Whether latency stayed level over a step: P99 of its first third beside that of its last.

use crate::histogram::Histogram;
use crate::percentile::{self, Estimate};
use crate::report::Step;

/// A smaller shift than this is not called one, however sure it is.
pub const LEAST_SHIFT: f64 = 0.05;

/// The tail at the beginning and at the end of a step.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Course {
    pub first: Estimate,
    pub last: Estimate,
}

impl Course {
    /// From the first to the last third, a fraction.
    pub fn shift(&self) -> f64 {
        self.last.value / self.first.value - 1.0
    }

    /// Whether latency moved: by more than [`LEAST_SHIFT`], and with intervals that do not touch. It is a notice for
    /// people, not a test: slow waves of a few seconds can pass it.
    pub fn moved(&self) -> bool {
        let apart = self.first.high < self.last.low || self.last.high < self.first.low;
        apart && self.shift().abs() > LEAST_SHIFT
    }
}

/// `None` with fewer than three slices, or with too few requests in a third for a P99.
pub fn course(step: &Step) -> Option<Course> {
    let third = step.slices.len() / 3;
    if third == 0 {
        return None;
    }
    let p99 = |slices| percentile::p99(&Histogram::merged(slices));
    Some(Course { first: p99(&step.slices[..third])?, last: p99(&step.slices[step.slices.len() - third..])? })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::synthetic::Synthetic;

    #[test]
    fn a_level_soak_stays_and_a_creeping_one_moves() {
        let report = Synthetic { stability_s: 90, ..Synthetic::default() }.report();
        let mut step = report.stability().unwrap().clone();
        let level = course(&step).unwrap();
        assert!(!level.moved(), "{level:?}");
        let last = step.slices.len() * 2 / 3;
        for slice in &mut step.slices[last..] {
            let slower = slice.bins().collect::<Vec<_>>();
            *slice = Histogram::new();
            slower.into_iter().for_each(|(us, n)| slice.record_n_us(us * 5 / 4, n));
        }
        let creeping = course(&step).unwrap();
        assert!(creeping.moved() && (creeping.shift() - 0.25).abs() < 0.1, "{creeping:?}");
        step.slices.truncate(2);
        assert_eq!(course(&step), None);
    }
}

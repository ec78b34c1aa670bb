//! The run's one clock: monotonic nanoseconds since its start.

use std::time::{Duration, Instant};

/// Nanoseconds since the start of the run.
pub type Nanos = u64;

pub(super) const MS: Nanos = 1_000_000;
pub(super) const SECOND: Nanos = 1_000 * MS;

#[derive(Debug, Clone, Copy)]
pub struct Clock {
    epoch: Instant,
}

impl Clock {
    pub fn start() -> Self {
        Self { epoch: Instant::now() }
    }

    pub fn now(&self) -> Nanos {
        // Runs last hours; u64 holds 584 years.
        self.epoch.elapsed().as_nanos() as Nanos
    }

    pub fn instant(&self, at: Nanos) -> Instant {
        self.epoch + Duration::from_nanos(at)
    }
}

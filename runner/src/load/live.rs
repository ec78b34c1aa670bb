//! Figures of the last few seconds, for whoever watches.

use std::collections::VecDeque;

use plimsoll_domain::histogram::Histogram;

use super::clock::{Nanos, SECOND};
use super::step::Finished;

/// Figures of the last seconds.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct Recent {
    pub tps: Option<f64>,
    pub p50_ms: Option<f64>,
    pub p99_ms: Option<f64>,
    /// Failed requests since the start of the run.
    pub errors: u64,
}

/// How many rolled seconds the live figures cover.
const LIVE_SECONDS: usize = 5;

#[derive(Debug, Default)]
pub(super) struct Live {
    now: Second,
    since: Nanos,
    ring: VecDeque<(Second, Nanos)>,
    errors: u64,
}

#[derive(Debug, Default)]
struct Second {
    ok: u64,
    latency: Histogram,
}

impl Live {
    pub(super) fn count(&mut self, done: &Finished) {
        match done.result {
            Ok(()) => {
                self.now.ok += 1;
                self.now.latency.record_us((done.end - done.issued) / 1_000);
            }
            Err(_) => self.errors += 1,
        }
    }

    pub(super) fn roll(&mut self, now: Nanos) -> Recent {
        let length = now.saturating_sub(self.since);
        self.ring.push_back((std::mem::take(&mut self.now), length));
        self.since = now;
        if self.ring.len() > LIVE_SECONDS {
            self.ring.pop_front();
        }
        let ok: u64 = self.ring.iter().map(|(second, _)| second.ok).sum();
        let length: Nanos = self.ring.iter().map(|(_, length)| length).sum();
        let latency = Histogram::merged(self.ring.iter().map(|(second, _)| &second.latency));
        Recent {
            tps: (ok > 0 && length > 0).then(|| ok as f64 * SECOND as f64 / length as f64),
            p50_ms: latency.quantile_ms(0.5),
            p99_ms: latency.quantile_ms(0.99),
            errors: self.errors,
        }
    }
}

//! The service's own gauges and counters, in Prometheus' text format.

use std::fmt::Write as _;
use std::sync::atomic::AtomicU64;
use std::sync::atomic::Ordering::Relaxed;

#[derive(Debug)]
pub(super) struct Metrics {
    pool: u32,
    /// Pool workers that hold a request.
    pub active: AtomicU64,
    pub rejected: AtomicU64,
    pub batches: AtomicU64,
    /// Requests that were in a batch.
    pub batched: AtomicU64,
    pub leaked: AtomicU64,
    requests: AtomicU64,
    failed: AtomicU64,
}

impl Metrics {
    pub(super) fn new(pool: u32) -> Self {
        let zero = AtomicU64::default;
        Self {
            pool,
            active: zero(),
            rejected: zero(),
            batches: zero(),
            batched: zero(),
            leaked: zero(),
            requests: zero(),
            failed: zero(),
        }
    }

    /// A worker is done with a request.
    pub(super) fn finished(&self, ok: bool) {
        self.active.fetch_sub(1, Relaxed);
        self.requests.fetch_add(1, Relaxed);
        self.failed.fetch_add(u64::from(!ok), Relaxed);
    }

    pub(super) fn text(&self, queued: usize) -> String {
        let load = |value: &AtomicU64| value.load(Relaxed);
        let lines = [
            ("pool_size", "gauge", u64::from(self.pool)),
            ("active", "gauge", load(&self.active)),
            ("queued", "gauge", queued as u64),
            ("leaked_bytes", "gauge", load(&self.leaked)),
            ("requests_total", "counter", load(&self.requests)),
            ("failed_total", "counter", load(&self.failed)),
            ("rejected_total", "counter", load(&self.rejected)),
            ("batches_total", "counter", load(&self.batches)),
            ("batched_total", "counter", load(&self.batched)),
        ];
        let mut text = String::new();
        for (name, kind, value) in lines {
            let _ = write!(text, "# TYPE sample_{name} {kind}\nsample_{name} {value}\n");
        }
        text
    }
}

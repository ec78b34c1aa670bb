//! The one accelerator: runs batches of what waits, one after the other.

use std::collections::VecDeque;
use std::sync::atomic::Ordering::Relaxed;
use std::sync::mpsc::SyncSender;
use std::sync::{Arc, Condvar, Mutex, PoisonError};
use std::time::Instant;

use super::metrics::Metrics;
use super::parameters::Parameters;
use super::{clock, fate};

/// Its queue. No bound of its own is needed: each pool worker waits for its one answer.
#[derive(Debug, Default)]
pub(super) struct Accelerator {
    waiting: Mutex<Waiting>,
    arrived: Condvar,
}

#[derive(Debug, Default)]
struct Waiting {
    items: VecDeque<Item>,
    closed: bool,
}

#[derive(Debug)]
struct Item {
    /// When it should have been handed over; the thread that did it may have woken later.
    ready: Instant,
    done: SyncSender<Instant>,
}

impl Accelerator {
    /// Hands one request over at `ready`; `done` gets the instant at which its batch ends.
    pub(super) fn submit(&self, ready: Instant, done: SyncSender<Instant>) {
        self.lock().items.push_back(Item { ready, done });
        self.arrived.notify_one();
    }

    /// Ends [`run`](Self::run) once nothing waits.
    pub(super) fn close(&self) {
        self.lock().closed = true;
        self.arrived.notify_all();
    }

    /// The accelerator's thread.
    pub(super) fn run(&self, parameters: &Parameters, metrics: &Arc<Metrics>) {
        clock::be_exact();
        let mut free_at = Instant::now();
        // By the number of items, from 1.
        let mut met = vec![false; parameters.max_batch as usize];
        for n in 0.. {
            let Some((start, batch)) = self.next_batch(free_at, parameters.max_batch) else { return };
            let items = u32::try_from(batch.len()).expect("a batch is at most max_batch");
            free_at = start + fate::batch_time(parameters, n, items);
            if !std::mem::replace(&mut met[batch.len() - 1], true) {
                free_at += parameters.cold_batch_extra;
            }
            clock::sleep_until(free_at);
            metrics.batches.fetch_add(1, Relaxed);
            metrics.batched.fetch_add(u64::from(items), Relaxed);
            for item in batch {
                // A receiver that is gone was a worker that ended.
                let _ = item.done.send(free_at);
            }
        }
    }

    /// Waits for work, then takes what was ready when the batch starts: at once after the last one, or with its first
    /// item.
    fn next_batch(&self, free_at: Instant, max_batch: u32) -> Option<(Instant, Vec<Item>)> {
        let mut waiting = self.lock();
        loop {
            if let Some(first) = waiting.items.front() {
                let start = free_at.max(first.ready);
                let ready =
                    waiting.items.iter().take(max_batch as usize).take_while(|item| item.ready <= start).count();
                return Some((start, waiting.items.drain(..ready).collect()));
            }
            if waiting.closed {
                return None;
            }
            waiting = self.arrived.wait(waiting).unwrap_or_else(PoisonError::into_inner);
        }
    }

    fn lock(&self) -> std::sync::MutexGuard<'_, Waiting> {
        self.waiting.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

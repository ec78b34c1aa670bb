//! Queue, pool and accelerator together, without HTTP.

use std::collections::VecDeque;
use std::sync::atomic::Ordering::Relaxed;
use std::sync::mpsc::sync_channel;
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::time::Instant;

use tokio::sync::oneshot;

use super::accelerator::Accelerator;
use super::fate::Fate;
use super::metrics::Metrics;
use super::parameters::Parameters;
use super::{answer, clock};

/// What a request ends with.
pub(super) type Outcome = Result<answer::Answer, Failed>;

/// The request was chosen to fail.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Failed;

/// The queue is full.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Full;

/// The running threads; they end when it is dropped.
#[derive(Debug)]
pub(super) struct Machine {
    shared: Arc<Shared>,
}

#[derive(Debug)]
struct Shared {
    parameters: Parameters,
    metrics: Arc<Metrics>,
    queue: Mutex<Queue>,
    arrived: Condvar,
    accelerator: Accelerator,
    /// What requests left behind.
    leaked: Mutex<Vec<Vec<u8>>>,
}

#[derive(Debug, Default)]
struct Queue {
    jobs: VecDeque<Job>,
    closed: bool,
    /// Requests taken in so far.
    taken: u64,
}

#[derive(Debug)]
struct Job {
    arrived: Instant,
    fate: Fate,
    text: String,
    reply: oneshot::Sender<Outcome>,
}

/// A leak stops here, so that a forgotten service does not take the machine down.
const MAX_LEAKED: u64 = 1 << 30;

impl Machine {
    /// Starts the threads.
    pub(super) fn start(parameters: Parameters) -> std::io::Result<Self> {
        let metrics = Arc::new(Metrics::new(parameters.pool));
        let pool = parameters.pool;
        let shared = Arc::new(Shared {
            parameters,
            metrics,
            queue: Mutex::default(),
            arrived: Condvar::new(),
            accelerator: Accelerator::default(),
            leaked: Mutex::default(),
        });
        let machine = Self { shared: Arc::clone(&shared) };
        spawn("accelerator".to_owned(), {
            let shared = Arc::clone(&shared);
            move || shared.accelerator.run(&shared.parameters, &shared.metrics)
        })?;
        for i in 0..pool {
            let shared = Arc::clone(&shared);
            spawn(format!("pool-{i}"), move || shared.work())?;
        }
        Ok(machine)
    }

    /// Puts a request into the queue. The receiver gets its outcome, or an error when the machine is dropped first.
    pub(super) fn submit(&self, text: String) -> Result<oneshot::Receiver<Outcome>, Full> {
        let Shared { parameters, metrics, .. } = &*self.shared;
        let mut queue = self.shared.lock();
        if queue.jobs.len() >= parameters.queue as usize {
            metrics.rejected.fetch_add(1, Relaxed);
            return Err(Full);
        }
        let (reply, outcome) = oneshot::channel();
        let fate = Fate::of(parameters, queue.taken);
        queue.taken += 1;
        queue.jobs.push_back(Job { arrived: Instant::now(), fate, text, reply });
        drop(queue);
        self.shared.arrived.notify_one();
        Ok(outcome)
    }

    pub(super) fn metrics(&self) -> String {
        let queued = self.shared.lock().jobs.len();
        self.shared.metrics.text(queued)
    }
}

impl Drop for Machine {
    fn drop(&mut self) {
        let mut queue = self.shared.lock();
        queue.closed = true;
        queue.jobs.clear();
        drop(queue);
        self.shared.arrived.notify_all();
    }
}

impl Shared {
    /// One pool worker's thread.
    fn work(&self) {
        clock::be_exact();
        let (done, finished) = sync_channel(1);
        let mut free_at = Instant::now();
        while let Some(job) = self.next() {
            self.metrics.active.fetch_add(1, Relaxed);
            let start = free_at.max(job.arrived);
            let ready = start + job.fate.pool / 2;
            clock::sleep_until(ready);
            self.accelerator.submit(ready, done.clone());
            // The accelerator's thread ended: so does this one.
            let Ok(batch_end) = finished.recv() else { return };
            free_at = batch_end + job.fate.pool / 2;
            clock::sleep_until(free_at);
            self.leak();
            let outcome = if job.fate.fails { Err(Failed) } else { Ok(answer::classify(&job.text)) };
            self.metrics.finished(outcome.is_ok());
            // A client that has gone away needs no answer.
            let _ = job.reply.send(outcome);
        }
        self.accelerator.close();
    }

    /// The next job, or `None` when the machine is gone.
    fn next(&self) -> Option<Job> {
        let mut queue = self.lock();
        loop {
            if queue.closed {
                return None;
            }
            if let Some(job) = queue.jobs.pop_front() {
                return Some(job);
            }
            queue = self.arrived.wait(queue).unwrap_or_else(PoisonError::into_inner);
        }
    }

    fn leak(&self) {
        let bytes = self.parameters.leak_bytes;
        if bytes == 0 || self.metrics.leaked.load(Relaxed) + u64::from(bytes) > MAX_LEAKED {
            return;
        }
        self.metrics.leaked.fetch_add(u64::from(bytes), Relaxed);
        // Written to, so that it is resident.
        self.leaked.lock().unwrap_or_else(PoisonError::into_inner).push(vec![1; bytes as usize]);
    }

    fn lock(&self) -> MutexGuard<'_, Queue> {
        self.queue.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

fn spawn(name: String, run: impl FnOnce() + Send + 'static) -> std::io::Result<()> {
    std::thread::Builder::new().name(name).stack_size(256 << 10).spawn(run).map(drop)
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::time::Duration;

    fn quick() -> Parameters {
        Parameters { pool: 2, queue: 3, pool_time: Duration::from_millis(20), ..Parameters::default() }
    }

    #[tokio::test]
    async fn a_full_queue_refuses() {
        let machine = Machine::start(Parameters { pool_time: Duration::from_secs(2), ..quick() }).unwrap();
        // More than the pool can have taken out and the queue can hold.
        let refused = (0..6).filter(|_| machine.submit(String::new()).is_err()).count();
        assert!((1..=3).contains(&refused), "{refused}");
        assert!(machine.metrics().contains(&format!("sample_rejected_total {refused}\n")));
    }

    #[tokio::test]
    async fn errors_and_leaks_follow_the_parameters() {
        let parameters = Parameters { queue: 100, error_after: Some(5), leak_bytes: 1_000, ..quick() };
        let machine = Machine::start(parameters).unwrap();
        let waiting: Vec<_> = (0..8).map(|_| machine.submit("fine".to_owned()).unwrap()).collect();
        let mut failed = Vec::new();
        for outcome in waiting {
            failed.push(outcome.await.unwrap().is_err());
        }
        assert_eq!(failed, [false, false, false, false, false, true, true, true]);
        let metrics = machine.metrics();
        for line in ["sample_leaked_bytes 8000", "sample_requests_total 8", "sample_failed_total 3", "sample_queued 0"]
        {
            assert!(metrics.contains(line), "{metrics}");
        }
    }

    #[tokio::test]
    async fn what_waits_goes_in_one_batch() {
        // 8 at once, no pool time: the first goes alone, the others pile up behind it.
        let parameters = Parameters {
            pool: 8,
            queue: 8,
            pool_time: Duration::ZERO,
            base: Duration::from_millis(200),
            max_batch: 4,
            ..Parameters::default()
        };
        let machine = Machine::start(parameters).unwrap();
        let waiting: Vec<_> = (0..8).map(|_| machine.submit(String::new()).unwrap()).collect();
        for outcome in waiting {
            outcome.await.unwrap().unwrap();
        }
        let metrics = machine.metrics();
        assert!(metrics.contains("sample_batched_total 8"), "{metrics}");
        let batches = ["sample_batches_total 2", "sample_batches_total 3"];
        assert!(batches.iter().any(|line| metrics.contains(line)), "{metrics}");
    }

    #[tokio::test]
    async fn the_first_batch_of_each_size_is_slow() {
        let cold = Duration::from_millis(300);
        let parameters = Parameters {
            pool: 3,
            pool_time: Duration::ZERO,
            base: Duration::from_millis(50),
            max_batch: 2,
            cold_batch_extra: cold,
            ..quick()
        };
        let machine = Machine::start(parameters).unwrap();
        let mut alone = Vec::new();
        for _ in 0..2 {
            let begin = Instant::now();
            machine.submit(String::new()).unwrap().await.unwrap().unwrap();
            alone.push(begin.elapsed() >= cold);
        }
        assert_eq!(alone, [true, false]);
        // One of three may go alone; the others wait meanwhile and go together.
        let begin = Instant::now();
        let waiting: Vec<_> = (0..3).map(|_| machine.submit(String::new()).unwrap()).collect();
        for outcome in waiting {
            outcome.await.unwrap().unwrap();
        }
        assert!(begin.elapsed() >= cold);
    }

    #[tokio::test]
    async fn a_dropped_machine_answers_nobody() {
        let machine = Machine::start(Parameters { pool: 1, ..quick() }).unwrap();
        let waiting: Vec<_> = (0..3).map(|_| machine.submit(String::new()).unwrap()).collect();
        drop(machine);
        let last = waiting.into_iter().next_back().unwrap();
        assert!(last.await.is_err());
    }
}

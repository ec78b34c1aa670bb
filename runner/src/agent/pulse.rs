//! Heartbeats: they renew the lease and tell how the run goes.

use std::collections::VecDeque;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};

use plimsoll_domain::ids::RunId;
use plimsoll_domain::job::{Assignment, Heartbeat, LeaseId, MAX_PROGRESS, Progress, Stage};

use tokio::sync::Notify;

use super::log::say;
use super::stopper::{Stop, Stopper};
use crate::progress::{Event, Observer};
use crate::spool::Partial;
use crate::telemetry::gpu::Gpus;
use crate::upload::{Server, ServerError};

/// What is to be told.
#[derive(Debug, Clone)]
pub(super) struct Feed {
    told: Arc<Mutex<Told>>,
    /// A new stage is told at once.
    news: Arc<Notify>,
}

#[derive(Debug)]
struct Told {
    begun: Instant,
    stage: Stage,
    waiting: VecDeque<Progress>,
    draining: bool,
}

impl Feed {
    pub(super) fn new() -> Self {
        let told = Told { begun: Instant::now(), stage: Stage::Checkout, waiting: VecDeque::new(), draining: false };
        let feed = Self { told: Arc::new(Mutex::new(told)), news: Arc::default() };
        feed.stage(Stage::Checkout);
        feed
    }

    pub(super) fn stage(&self, stage: Stage) {
        let mut told = self.told();
        told.stage = stage;
        let progress = told.now();
        told.push(progress);
        self.news.notify_one();
    }

    /// The agent was told to end, and takes no other run.
    pub(super) fn drain(&self) {
        self.told().draining = true;
        self.news.notify_one();
    }

    fn told(&self) -> std::sync::MutexGuard<'_, Told> {
        self.told.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn take(&self) -> Vec<Progress> {
        self.told().waiting.drain(..).collect()
    }

    /// What could not be told, in front of what came meanwhile.
    fn put_back(&self, batch: Vec<Progress>) {
        let mut told = self.told();
        for progress in batch.into_iter().rev() {
            told.waiting.push_front(progress);
        }
        told.waiting.truncate(MAX_PROGRESS);
    }
}

impl Told {
    fn now(&self) -> Progress {
        Progress::at(millis(self.begun.elapsed()), self.stage)
    }

    /// The course so far is kept, and what is now; what lies between gives way.
    fn push(&mut self, progress: Progress) {
        if self.waiting.len() >= MAX_PROGRESS {
            self.waiting.pop_back();
        }
        if progress.is_sound() {
            self.waiting.push_back(progress);
        }
    }
}

/// Listens to a run: feeds the heartbeats, keeps on disk what is measured so far.
#[derive(Debug)]
pub(super) struct Listener<'g> {
    pub(super) run: RunId,
    pub(super) feed: Feed,
    pub(super) gpus: Option<&'g Gpus>,
    /// Keeps what is measured so far.
    pub(super) partial: Option<Partial>,
}

impl Observer for Listener<'_> {
    fn observe(&mut self, event: Event<'_>) {
        match event {
            Event::PhaseStarted { phase } => self.feed.stage(phase.into()),
            Event::Partial(report) => {
                if let Some(partial) = &self.partial {
                    partial.keep(report.clone());
                }
            }
            Event::Tick(live) => {
                let samples = self.gpus.map(Gpus::sample).unwrap_or_default();
                let mut told = self.feed.told();
                let progress = Progress {
                    stage: live.phase.into(),
                    workers: Some(live.workers).filter(|workers| *workers > 0),
                    left_ms: live.left.map(millis),
                    done: Some(live.done.clamp(0.0, 1.0)),
                    tps: live.tps,
                    p50_ms: live.p50_ms,
                    p99_ms: live.p99_ms,
                    errors: Some(live.errors),
                    gpu_utilisation: samples.iter().filter_map(|gpu| gpu.utilisation).max_by(f64::total_cmp),
                    gpu_memory_bytes: samples
                        .iter()
                        .map(|gpu| gpu.memory_used)
                        .sum::<Option<u64>>()
                        .filter(|_| !samples.is_empty()),
                    ..told.now()
                };
                told.push(progress);
            }
            Event::Remark(text) => say(Some(self.run), text),
            _ => {}
        }
    }
}

/// Beats until it is dropped, or the lease is lost.
pub(super) async fn beat(server: Server, assignment: Assignment, feed: Feed, stopper: Arc<Stopper>) {
    let run = assignment.run_id;
    let mut heart = Heart::new(&assignment);
    let mut knows_draining = true;
    loop {
        tokio::time::sleep(SHORTEST).await;
        let _ = tokio::time::timeout(heart.interval.saturating_sub(SHORTEST), feed.news.notified()).await;
        let (progress, draining) = (feed.take(), knows_draining && feed.told().draining);
        let sent = Instant::now();
        let beat = Heartbeat { lease: heart.lease, progress, draining };
        let last_moment = heart.until + heart.grace;
        let answer =
            tokio::time::timeout_at(last_moment.max(sent + MIN_WAIT).into(), server.heartbeat(run, &beat)).await;
        let answer = answer.unwrap_or_else(|_| Err(ServerError::Unreachable("no answer in time".to_owned())));
        match answer {
            Ok(answer) => {
                heart.renewed(sent, answer.lease_s);
                if let Some(reason) = answer.cancel {
                    stopper.stop(Stop::Cancelled(reason.chars().filter(|c| !c.is_control()).take(500).collect()));
                }
            }
            // Of a proxy's own 404, as while its server is replaced, the next beat may know better.
            Err(ServerError::Refused { status: 404 | 409 | 410, message, problem: true }) => {
                stopper.stop(Stop::LeaseLost(format!("the server says: {message}")));
                return;
            }
            // A server of before there was draining takes no field that it does not know.
            Err(ServerError::Refused { status: 400 | 422, .. }) if beat.draining => {
                knows_draining = false;
                feed.put_back(beat.progress);
            }
            Err(error) => {
                feed.put_back(beat.progress);
                heart.missed(run, error.why());
                if Instant::now() >= last_moment {
                    stopper.stop(Stop::LeaseLost(format!("the lease could not be renewed: {}", error.why())));
                    return;
                }
            }
        }
    }
}

/// Between two heartbeats.
const SHORTEST: Duration = Duration::from_millis(200);
const MIN_WAIT: Duration = Duration::from_millis(500);

/// The lease as the agent sees it.
#[derive(Debug)]
struct Heart {
    lease: LeaseId,
    until: Instant,
    grace: Duration,
    interval: Duration,
    is_quiet: bool,
}

impl Heart {
    fn new(assignment: &Assignment) -> Self {
        let now = Instant::now();
        let mut heart = Self {
            lease: assignment.lease,
            until: now,
            grace: Duration::ZERO,
            interval: Duration::ZERO,
            is_quiet: false,
        };
        heart.renewed(now, assignment.lease_s);
        heart
    }

    /// Counted from before the request: the server's clock for it began later.
    fn renewed(&mut self, sent: Instant, lease_s: u32) {
        let lease = Duration::from_secs(lease_s.clamp(2, 3_600).into());
        self.until = sent + lease;
        self.grace = (lease / 2).min(Duration::from_secs(60));
        self.interval = (lease / 4).min(Duration::from_secs(2));
        self.is_quiet = false;
    }

    /// Said once for each silence.
    fn missed(&mut self, run: RunId, why: &str) {
        if !self.is_quiet {
            say(Some(run), &format!("the server does not hear the heartbeat ({why}); it is tried again"));
            self.is_quiet = true;
        }
    }
}

fn millis(time: Duration) -> u64 {
    u64::try_from(time.as_millis()).unwrap_or(u64::MAX)
}

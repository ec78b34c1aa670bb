//! What was measured goes first, and holds up the next job as little as it can.

use std::sync::PoisonError;
use std::time::{Duration, Instant};

use tokio::sync::watch;

use super::log::say;
use super::signals::Asked;
use super::{Agent, tell_once};
use crate::upload::Pauses;

/// How long reports that wait for the server hold up the next job, and how long each try after that.
const HOLD: Duration = Duration::from_secs(10 * 60);
const TRY: Duration = Duration::from_secs(10);

/// How reports that wait have held up the next job so far.
#[derive(Debug)]
pub(super) struct Held {
    since: Instant,
    /// Between the tries of what was not taken.
    pauses: Pauses,
    next: Instant,
}

impl Held {
    pub(super) fn new() -> Self {
        let now = Instant::now();
        Self { since: now, pauses: Pauses::forever(), next: now }
    }
}

impl Agent {
    /// Before a job is asked for: what was measured. A report holds up the jobs of other projects only while the server
    /// is away, and not for ever.
    pub(super) async fn send_first(&self, held: &mut Held, drain: &watch::Receiver<bool>) {
        if Instant::now() < held.next {
            return;
        }
        let within = HOLD.saturating_sub(held.since.elapsed()).max(TRY);
        match tokio::time::timeout(within, self.send_reports(drain.clone())).await {
            Ok(0) => *held = Held::new(),
            _ => held.next = Instant::now() + held.pauses.next(None).unwrap_or_default(),
        }
    }

    /// Sends what waits for as long as the server is away; returns how much is left when it takes no more, or when
    /// `stop` ends it.
    pub(super) async fn send_reports(&self, stop: watch::Receiver<bool>) -> usize {
        match self.outbox.send_what_goes(&self.server, stop).await {
            Ok(sent) => {
                for refused in &sent.refused {
                    say(None, &format!("{}: {}", refused.path.display(), refused.why));
                }
                let why = sent.why.map(|why| format!("{} reports wait, the first because: {why}", sent.left));
                let mut told = self.told.lock().unwrap_or_else(PoisonError::into_inner);
                tell_once(&mut told, &why.unwrap_or_default());
                sent.left
            }
            Err(failure) => {
                say(None, &failure.message);
                1
            }
        }
    }

    /// What waits is on disk; a moment is spent on it all the same.
    pub(super) async fn last_try(&self, asked: &Asked) {
        const MOMENT: Duration = Duration::from_secs(20);
        let _ = tokio::time::timeout(MOMENT, self.send_reports(asked.now.clone())).await;
    }
}

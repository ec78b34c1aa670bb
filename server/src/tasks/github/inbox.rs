//! Handles what GitHub delivered: each delivery at least once, those about one repository one after the other in the
//! order in which they came, as long as none of them fails.

use std::future::Future;
use std::panic::AssertUnwindSafe;
use std::time::Duration;

use futures_util::FutureExt as _;
use tokio::task::JoinSet;
use tokio::time::{Instant, interval_at, timeout};

use crate::github;
use crate::github::events::{self, Event, Unreadable};
use crate::state::AppState;
use crate::store::StoreError;
use crate::store::github::inbox::{self, Due};
use crate::tasks::Error;
use crate::tasks::retry::pause;

/// Handled at the same time by one loop.
const MOST: usize = 8;
/// A loop takes what comes for so long, then ends what it has.
const TAKES_FOR: Duration = Duration::from_secs(30);
/// While it handles, it looks this often for what came.
const LOOK_EVERY: Duration = Duration::from_secs(1);
/// After it another server handles the delivery, if this one died.
const LEASE: Duration = Duration::from_secs(60);
const RENEW_EVERY: Duration = Duration::from_secs(20);
/// Handling ends within this, however slowly GitHub answers.
const WITHIN: Duration = Duration::from_secs(300);
/// [`run_once`] ends within this.
pub const ROUND_WITHIN: Duration = Duration::from_secs(30 + 300 + 30);

const FIRST_RETRY: Duration = Duration::from_secs(5);
const LAST_RETRY: Duration = Duration::from_secs(600);
/// However long somebody asks to wait.
const LONGEST_PAUSE: Duration = Duration::from_secs(3_600);
/// A delivery of this age is given up, but not before it was tried a few times: the server itself may have been away.
const GIVE_UP_AFTER: Duration = Duration::from_secs(24 * 3_600);
const MIN_ATTEMPTS: i32 = 3;
/// What GitHub refuses it refuses again, but what is new to it may be missing for a moment.
const MAX_REFUSALS: i32 = 6;

/// Larger payloads are read beside the asynchronous tasks.
const SMALL: usize = 1 << 20;
/// Of what is kept of an outcome or an error, in characters.
const MAX_TEXT: usize = 500;

/// Handles what is due, and what comes meanwhile, until nothing is left; returns how much that was. No transaction is
/// open while it does. One that takes long holds up none but those of its repository.
pub async fn run_once(state: &AppState) -> Result<usize, StoreError> {
    let (until, draining) = (Instant::now() + TAKES_FOR, state.draining());
    let (mut settling, mut taken, mut failure) = (JoinSet::new(), 0, None);
    loop {
        let ends = failure.is_some() || Instant::now() >= until || *draining.borrow();
        let room = if ends { 0 } else { MOST - settling.len() };
        if room > 0 {
            let due = inbox::take(state.pool(), room as i64, LEASE).await.unwrap_or_else(|error| {
                failure = Some(error);
                Vec::new()
            });
            taken += due.len();
            due.into_iter().for_each(|due| drop(settling.spawn(settle(state.clone(), due))));
        }
        match timeout(LOOK_EVERY, settling.join_next()).await {
            Ok(Some(Ok(Ok(())))) | Err(_) => {}
            Ok(Some(Ok(Err(error)))) => failure = Some(error),
            Ok(Some(Err(error))) => std::panic::resume_unwind(error.into_panic()),
            Ok(None) => return failure.map_or(Ok(taken), Err),
        }
    }
}

async fn settle(state: AppState, mut due: Due) -> Result<(), StoreError> {
    let body = std::mem::take(&mut due.body);
    match attend(&state, &due, handle(&state, &due, body)).await {
        Ok(outcome) => {
            tracing::info!(delivery = due.delivery, event = due.event, outcome, "a delivery of GitHub's was handled");
            inbox::handled(state.pool(), &due, &text(&outcome)).await
        }
        Err(failed) => {
            let retry = failed.retry(&due);
            let (delivery, event, given_up) = (&due.delivery, &due.event, retry.is_none());
            tracing::warn!(delivery, event, why = failed.why, given_up, "a delivery of GitHub's was not handled");
            inbox::failed(state.pool(), &due, &text(&failed.why), retry).await
        }
    }
}

/// What became of it.
async fn handle(state: &AppState, due: &Due, body: Vec<u8>) -> Result<String, Failed> {
    match read(&due.event, body).await {
        Ok(event) => Ok(super::handle(state, &event).await?.to_string()),
        // However often it is read.
        Err(why) => Ok(format!("unreadable: {why}")),
    }
}

async fn read(event: &str, body: Vec<u8>) -> Result<Event, Unreadable> {
    if body.len() <= SMALL {
        return events::read(event, &body);
    }
    let event = event.to_owned();
    let read = tokio::task::spawn_blocking(move || events::read(&event, &body)).await;
    read.unwrap_or_else(|error| std::panic::resume_unwind(error.into_panic()))
}

/// Waits for its end within bounds, and meanwhile says that it is being handled.
async fn attend<T>(
    state: &AppState,
    due: &Due,
    handling: impl Future<Output = Result<T, Failed>>,
) -> Result<T, Failed> {
    let mut handling = std::pin::pin!(timeout(WITHIN, AssertUnwindSafe(handling).catch_unwind()));
    let mut renewals = interval_at(Instant::now() + RENEW_EVERY, RENEW_EVERY);
    loop {
        tokio::select! {
            done = &mut handling => return match done {
                Ok(Ok(done)) => done,
                Ok(Err(_)) => Err(Failed::because("it panicked")),
                Err(_) => Err(Failed::because("it took too long")),
            },
            _ = renewals.tick() => {
                // A database that is away is noticed by what handles it, too.
                if let Ok(false) = inbox::renew(state.pool(), due, LEASE).await {
                    return Err(Failed::because("another server took it over"));
                }
            }
        }
    }
}

struct Failed {
    why: String,
    /// Not tried again before.
    pause: Duration,
    /// The same is to be expected of the next attempt.
    lasts: bool,
}

impl Failed {
    fn because(why: impl Into<String>) -> Self {
        Self { why: why.into(), pause: Duration::ZERO, lasts: false }
    }

    /// `None` gives it up.
    fn retry(&self, due: &Due) -> Option<Duration> {
        let age = Duration::try_from(due.now.duration_since(due.received_at)).unwrap_or_default();
        let old = age >= GIVE_UP_AFTER && due.attempts >= MIN_ATTEMPTS;
        let over = old || (self.lasts && due.attempts >= MAX_REFUSALS);
        (!over).then(|| pause(due.attempts, FIRST_RETRY, LAST_RETRY).max(self.pause.min(LONGEST_PAUSE)))
    }
}

impl From<Error> for Failed {
    fn from(error: Error) -> Self {
        let (pause, lasts) = match &error {
            Error::Limited { again_after, .. } => (again_after.unwrap_or_default(), false),
            Error::GitHub(github::Error::Limited { retry_after }) => (*retry_after, false),
            Error::GitHub(error) => (Duration::ZERO, !error.passes()),
            _ => (Duration::ZERO, false),
        };
        Self { pause, lasts, ..Self::because(error.to_string()) }
    }
}

/// As the database keeps it.
fn text(of: &str) -> String {
    of.chars().filter(|character| *character != '\0').take(MAX_TEXT).collect()
}

#[cfg(test)]
mod tests {
    use jiff::{SignedDuration, Timestamp};

    use super::*;

    fn due(hours: i64, attempts: i32) -> Due {
        let now = Timestamp::from_second(1_764_000_000).unwrap();
        let received_at = now - SignedDuration::from_hours(hours);
        Due { delivery: String::new(), event: String::new(), body: Vec::new(), attempts, received_at, now }
    }

    #[test]
    fn a_delivery_is_given_up_by_age_and_attempts() {
        let failed = Failed::because("x");
        assert!(failed.retry(&due(23, 200)).unwrap() <= LAST_RETRY);
        assert!(failed.retry(&due(25, 2)).is_some());
        assert_eq!(failed.retry(&due(25, 3)), None);
        // A clock that went back.
        assert!(failed.retry(&due(-5, 3)).is_some());
    }

    #[test]
    fn github_is_not_asked_again_before_it_wants_to_be() {
        let limited = |seconds| Error::from(github::Error::Limited { retry_after: Duration::from_secs(seconds) });
        assert_eq!(Failed::from(limited(700)).retry(&due(0, 1)), Some(Duration::from_secs(700)));
        assert_eq!(Failed::from(limited(86_400)).retry(&due(0, 1)), Some(LONGEST_PAUSE));
        let again_after = Some(Duration::from_secs(700));
        let limited = Error::Limited { why: "slow".to_owned(), again_after };
        assert_eq!(Failed::from(limited).retry(&due(0, 1)), again_after);
    }

    #[test]
    fn a_refusal_is_asked_for_a_few_times_only() {
        let refused = || Failed::from(Error::from(github::Error::Missing));
        assert!(refused().retry(&due(0, MAX_REFUSALS - 1)).is_some());
        assert_eq!(refused().retry(&due(0, MAX_REFUSALS)), None);
        let away = Failed::from(Error::from(github::Error::Unreachable("it is away".to_owned())));
        assert!(away.retry(&due(0, MAX_REFUSALS)).is_some());
    }

    #[test]
    fn what_is_kept_fits_the_database() {
        assert_eq!(text("a\0b"), "ab");
        assert_eq!(text(&"ü".repeat(MAX_TEXT + 1)).chars().count(), MAX_TEXT);
    }
}

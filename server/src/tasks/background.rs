//! Work that goes on beside the requests.

use std::fmt::Display;
use std::future::Future;
use std::panic::AssertUnwindSafe;
use std::time::Duration;

use futures_util::FutureExt as _;
use tokio::task::JoinSet;

use super::github::{deadlines, inbox, progress, send};
use super::{deliveries, leases, prune};
use crate::state::AppState;
use crate::store;

/// A call that takes longer is given up: the database may be unreachable without a word.
const WITHIN: Duration = Duration::from_secs(60);
/// Events are not late by more.
const DELIVERIES_EVERY: Duration = Duration::from_secs(1);

/// What GitHub delivered is not handled later by more.
const INBOX_EVERY: Duration = Duration::from_secs(1);
/// While one ends what it has, the other takes what comes.
const INBOX_LOOPS: usize = 2;

/// What GitHub is to be told is not sent later by more.
const SEND_EVERY: Duration = Duration::from_secs(1);
const SEND_LOOPS: usize = 2;
const PROGRESS_EVERY: Duration = Duration::from_secs(10);
const DEADLINES_EVERY: Duration = Duration::from_secs(5);

const TIDY_EVERY: Duration = Duration::from_secs(60);
const UPKEEP_EVERY: Duration = Duration::from_secs(5);
/// Nothing that goes is in anybody's way.
const PRUNE_EVERY: Duration = Duration::from_secs(3_600);

/// Starts all of it; it ends when the server drains.
pub fn start(state: &AppState) -> JoinSet<()> {
    let mut tasks = JoinSet::new();
    tasks.spawn(repeat(state.clone(), "deliveries", DELIVERIES_EVERY, |state| async move {
        deliveries::run_once(&state).await
    }));
    for _ in 0..INBOX_LOOPS {
        tasks.spawn(repeat_within(inbox::ROUND_WITHIN, state.clone(), "inbox", INBOX_EVERY, |state| async move {
            inbox::run_once(&state).await
        }));
    }
    for _ in 0..SEND_LOOPS {
        tasks.spawn(repeat_within(send::ROUND_WITHIN, state.clone(), "github", SEND_EVERY, |state| async move {
            send::run_once(&state).await
        }));
    }
    tasks.spawn(repeat(
        state.clone(),
        "progress",
        PROGRESS_EVERY,
        |state| async move { progress::run_once(&state).await },
    ));
    tasks.spawn(repeat(state.clone(), "deadlines", DEADLINES_EVERY, |state| async move {
        deadlines::run_once(&state).await
    }));
    tasks.spawn(repeat(state.clone(), "retention", PRUNE_EVERY, |state| async move {
        let now = store::prune::now(state.pool()).await?;
        let done = prune::step(state.pool(), &prune::cutoffs(now, state.retention()), None).await?;
        if done.total() > 0 {
            tracing::info!(counts = ?done.counts, "let go of what is old");
        }
        Ok::<_, prune::PruneError>(usize::try_from(done.total()).unwrap_or(usize::MAX))
    }));
    tasks.spawn(repeat(state.clone(), "metrics", UPKEEP_EVERY, |state| async move {
        state.metrics().upkeep();
        Ok::<_, std::convert::Infallible>(0)
    }));
    let looks_after = state.clone();
    tasks.spawn(async move {
        leases::grace(&looks_after).await;
        repeat(looks_after, "leases", leases::pause(), |state| async move {
            let done = leases::run_once(&state).await;
            if done.is_err() {
                leases::grace(&state).await;
            }
            done
        })
        .await;
    });
    tasks.spawn(repeat(state.clone(), "limits", TIDY_EVERY, |state| async move {
        state.limits().tidy();
        Ok::<_, std::convert::Infallible>(0)
    }));
    tasks
}

async fn repeat<E: Display, F: Future<Output = Result<usize, E>>>(
    state: AppState,
    name: &'static str,
    pause: Duration,
    run_once: impl Fn(AppState) -> F,
) {
    repeat_within(WITHIN, state, name, pause, run_once).await;
}

/// Calls `run_once` until the server drains: again at once while it finds something to do, else after `pause`. A failure
/// (the database is away) is logged when it begins, and its end too; a panic ends that call only.
async fn repeat_within<E: Display, F: Future<Output = Result<usize, E>>>(
    within: Duration,
    state: AppState,
    name: &'static str,
    pause: Duration,
    run_once: impl Fn(AppState) -> F,
) {
    let mut draining = state.draining();
    let mut failing = false;
    while !*draining.borrow_and_update() {
        let call = AssertUnwindSafe(run_once(state.clone())).catch_unwind();
        let result = match tokio::time::timeout(within, call).await {
            Ok(Ok(Ok(done))) => Ok(done),
            Ok(Ok(Err(error))) => Err(error.to_string()),
            Ok(Err(_)) => Err("it panicked".to_owned()),
            Err(_) => Err(format!("no end within {} s", within.as_secs())),
        };
        match &result {
            Err(error) if !failing => tracing::error!(task = name, error, "a task fails; it is tried again"),
            Ok(_) if failing => tracing::info!(task = name, "the task works again"),
            _ => {}
        }
        failing = result.is_err();
        if !matches!(result, Ok(done) if done > 0) {
            let _ = tokio::time::timeout(pause, draining.wait_for(|draining| *draining)).await;
        }
    }
}

//! A run as it happens: server-sent events, resumed after any of them.

use std::collections::VecDeque;
use std::convert::Infallible;
use std::time::Duration;

use axum::extract::rejection::QueryRejection;
use axum::extract::{Path, Query, State};
use axum::http::{HeaderMap, header};
use axum::response::IntoResponse;
use axum::response::sse::{Event, KeepAlive, Sse};
use futures_util::Stream;
use futures_util::stream::unfold;
use plimsoll_domain::ids::{ProjectSlug, RunId};
use plimsoll_domain::job::LiveEvent;
use serde::Deserialize;
use tokio::sync::watch;

use super::read::{asked, run_id};
use crate::access::{Caller, Scope, Told as _, may_still};
use crate::error::{AppError, Result};
use crate::state::AppState;
use crate::store::live::Signal;
use crate::store::{self, StoreError};
use crate::tasks::hub::Waiter;
use crate::tasks::jobs;

const KEEP_ALIVE: Duration = Duration::from_secs(15);
/// Events that are read at once.
const PART: u32 = 500;

#[derive(Debug, Deserialize, utoipa::IntoParams)]
#[into_params(parameter_in = Query)]
#[serde(deny_unknown_fields)]
pub(super) struct EventsQuery {
    /// The number of the last event that is known.
    after: Option<u64>,
}

/// The events after `Last-Event-ID`, or else after `?after=`, each once and without a gap, until the last one.
#[utoipa::path(get, path = "/api/v1/runs/{run}/events", params(("run" = String, Path, description = "The run's id", format = Uuid), EventsQuery), responses((status = 200, description = "`id`: seq, `event`: state, progress or verdict, `data`: the event", body = LiveEvent, content_type = "text/event-stream")))]
pub(super) async fn events(
    State(state): State<AppState>,
    caller: Caller,
    Path(run): Path<String>,
    headers: HeaderMap,
    query: Result<Query<EventsQuery>, QueryRejection>,
) -> Result<impl IntoResponse> {
    let run_id = run_id(&run)?;
    let EventsQuery { after } = asked(query)?;
    let seq = match headers.get("last-event-id") {
        Some(id) => id.to_str().ok().and_then(|id| id.trim().parse().ok()).ok_or_else(no_event)?,
        None => after.unwrap_or(0),
    };
    let run = store::jobs::get(state.pool(), run_id).await?.ok_or_else(|| jobs::no_job(run_id))?;
    let follower = Follower {
        waiter: state.hub().stream(&caller)?,
        caller,
        headers,
        draining: state.draining(),
        state,
        project: run.project,
        run_id,
        seq,
        read: VecDeque::new(),
        over: false,
    };
    let stream = Sse::new(stream(follower)).keep_alive(KeepAlive::new().interval(KEEP_ALIVE));
    // Proxies that gather an answer before they pass it on are asked not to.
    Ok(([(header::CACHE_CONTROL, "no-store"), (header::HeaderName::from_static("x-accel-buffering"), "no")], stream))
}

struct Follower {
    state: AppState,
    caller: Caller,
    /// By which the caller is looked up again.
    headers: HeaderMap,
    waiter: Waiter,
    draining: watch::Receiver<bool>,
    project: ProjectSlug,
    run_id: RunId,
    /// The last event that was sent.
    seq: u64,
    read: VecDeque<LiveEvent>,
    over: bool,
}

fn stream(follower: Follower) -> impl Stream<Item = Result<Event, Infallible>> {
    unfold(follower, |mut follower| async {
        let event = follower.next().await?;
        Some((Ok(rendered(&event)), follower))
    })
}

impl Follower {
    /// `None` at the end: the run's, the server's, that of the caller's right to read it, or that of a database that does
    /// not answer. The client comes again with the number of the last event.
    async fn next(&mut self) -> Option<LiveEvent> {
        while self.read.is_empty() {
            if self.over || *self.draining.borrow() {
                return None;
            }
            // A token may have been revoked, a session ended, or the project turned private meanwhile.
            match may_still(&self.state, &self.caller, &self.headers, Scope::Read, self.run_id).await {
                Ok(caller) => self.caller = caller,
                Err(error) => {
                    tracing::info!(run_id = %self.run_id, why = error.problem().detail, "a stream of events is cut off");
                    return None;
                }
            }
            match self.look().await {
                Ok(read) => self.read = read,
                Err(error) => {
                    tracing::warn!(run_id = %self.run_id, %error, "a stream of events ends early");
                    return None;
                }
            }
            if !self.read.is_empty() || self.over {
                continue;
            }
            let run_id = self.run_id;
            let ours = |signal: &Signal| match signal {
                Signal::Run(run) => *run == run_id,
                Signal::All => true,
                Signal::Job(_) => false,
            };
            tokio::select! {
                _ = self.draining.wait_for(|draining| *draining) => return None,
                () = self.waiter.wait(ours) => {}
            }
        }
        let event = self.read.pop_front()?;
        self.seq = event.seq;
        Some(event)
    }

    async fn look(&mut self) -> Result<VecDeque<LiveEvent>, StoreError> {
        let read = store::live::after(self.state.pool(), self.run_id, self.seq, PART).await?;
        if read.is_empty() {
            // Read after the events: a run that is over and has no newer one will have none. The last event alone does
            // not say so, since the report of a run that was given up may follow.
            let run = store::jobs::get(self.state.pool(), self.run_id).await?;
            self.over = run.is_none_or(|run| run.state.is_final() && run.last_seq <= self.seq);
        }
        Ok(read.into_iter().map(|event| event.to(&self.caller, &self.project)).collect())
    }
}

fn rendered(event: &LiveEvent) -> Event {
    let json = serde_json::to_string(event).unwrap_or_default();
    Event::default().id(event.seq.to_string()).event(event.what.name()).data(json)
}

fn no_event() -> AppError {
    AppError::bad_request("Last-Event-ID: not the number of an event")
}

//! Tells GitHub what is to be told: each check and comment as it stands when it is sent, those of one lane one after
//! the other. Sent twice it changes nothing, so that a server may die at any step.

mod checks;
mod comments;
mod failed;

use std::time::Duration;

use tokio::task::JoinSet;
use tokio::time::{Instant, timeout};

use crate::github::{Client, Place};
use crate::state::AppState;
use crate::store::StoreError;
use crate::store::github::pace::{self, Most};
use crate::store::github::repositories;
use crate::store::github::writes::{self, Due, Subject};

use failed::Failed;

/// Sent at the same time by one loop.
const MOST: usize = 8;
/// A loop takes what comes for so long, then ends what it has.
const TAKES_FOR: Duration = Duration::from_secs(30);
const LOOK_EVERY: Duration = Duration::from_secs(1);
/// One write with all that is asked for it ends within this: before another server takes it.
const WITHIN: Duration = Duration::from_secs(90);
const LEASE: Duration = Duration::from_secs(120);
/// [`run_once`] ends within this.
pub const ROUND_WITHIN: Duration = Duration::from_secs(30 + 90 + 30);

/// GitHub takes about 80 and 500.
const PACE: Most = Most { a_minute: 70, an_hour: 450 };

/// Sends what is due, and what comes meanwhile, until nothing is left; returns how much that was. No transaction is open
/// while it does. A lane that fails or takes long holds up no other.
pub async fn run_once(state: &AppState) -> Result<usize, StoreError> {
    if state.app().is_none() {
        return Ok(0);
    }
    let (until, draining) = (Instant::now() + TAKES_FOR, state.draining());
    let (mut sending, mut taken, mut failure) = (JoinSet::new(), 0, None);
    loop {
        let ends = failure.is_some() || Instant::now() >= until || *draining.borrow();
        let room = if ends { 0 } else { MOST - sending.len() };
        if room > 0 {
            let due = writes::take(state.pool(), room as i64, LEASE).await.unwrap_or_else(|error| {
                failure = Some(error);
                Vec::new()
            });
            taken += due.len();
            due.into_iter().for_each(|due| drop(sending.spawn(settle(state.clone(), due))));
        }
        match timeout(LOOK_EVERY, sending.join_next()).await {
            Ok(Some(Ok(Ok(())))) | Err(_) => {}
            Ok(Some(Ok(Err(error)))) => failure = Some(error),
            Ok(Some(Err(error))) => std::panic::resume_unwind(error.into_panic()),
            Ok(None) => return failure.map_or(Ok(taken), Err),
        }
    }
}

async fn settle(state: AppState, due: Due) -> Result<(), StoreError> {
    let told = timeout(WITHIN, tell(&state, &due)).await;
    let failed = match told.unwrap_or_else(|_| Err(Failed::slow(WITHIN))) {
        Ok(()) => return writes::done(state.pool(), &due).await,
        Err(Failed::Store(error)) => return Err(error),
        Err(failed) => failed,
    };
    let (why, retry) = (failed.to_string(), failed.retry(&due));
    let (lane, attempts) = (&due.lane, due.attempts);
    match retry {
        None => tracing::error!(lane, attempts, why, "GitHub was not told: given up"),
        Some(retry) => tracing::warn!(lane, attempts, why, ?retry, "GitHub was not told: it is tried again"),
    }
    writes::failed(state.pool(), &due, &why, retry).await
}

async fn tell(state: &AppState, due: &Due) -> Result<(), Failed> {
    match &due.subject {
        Subject::Check(id) => checks::tell(state, due, *id).await,
        Subject::Comment { project, repository, pull_request } => {
            let Some(target) = Target::of(state, *repository).await? else { return Ok(()) };
            target.limited(comments::tell(&target, project, *repository, *pull_request).await).await
        }
    }
}

/// A repository that is told something.
struct Target<'a> {
    state: &'a AppState,
    client: &'a Client,
    place: Place,
}

impl<'a> Target<'a> {
    /// `None` without an App.
    async fn of(state: &'a AppState, repository: i64) -> Result<Option<Self>, Failed> {
        let Some(client) = state.app() else { return Ok(None) };
        let repository = repositories::get(state.pool(), repository).await?;
        let Some(repository) = repository.filter(|repository| repository.reachable) else {
            return Err(Failed::Never("the App does not reach the repository any more".to_owned()));
        };
        let target = Self { state, client, place: Place::from(&repository) };
        match pace::paused(state.pool(), repository.installation).await? {
            Some(wait) => Err(Failed::Wait(wait)),
            None => Ok(Some(target)),
        }
    }

    fn repo(&self) -> crate::github::Repo<'_> {
        self.client.at(&self.place)
    }

    /// Before each write.
    async fn spend(&self) -> Result<(), Failed> {
        match pace::spend(self.state.pool(), self.place.installation, PACE).await? {
            Some(wait) => Err(Failed::Wait(wait)),
            None => Ok(()),
        }
    }

    /// Where GitHub asks to wait, nothing of the installation is sent meanwhile.
    async fn limited<T>(&self, told: Result<T, Failed>) -> Result<T, Failed> {
        if let Err(Failed::GitHub(crate::github::Error::Limited { retry_after })) = &told {
            pace::pause(self.state.pool(), self.place.installation, *retry_after).await?;
        }
        told
    }
}

/// Of what was said, to know whether it changed.
fn digest(text: &impl std::fmt::Debug) -> String {
    use sha2::Digest as _;
    crate::hex::hex(&sha2::Sha256::digest(format!("{text:?}")))
}

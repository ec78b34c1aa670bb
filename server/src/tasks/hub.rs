//! One connection that listens to the database for the whole server, and wakes who waits here: streams for the events
//! of their run, runners for a job.
//!
//! Nothing depends on a notification: whoever waits looks at the table before, looks again when one may have been
//! missed (a new connection, a slow reader), and otherwise every [`LOOK_AGAIN`].

mod places;

use std::sync::Once;
use std::time::Duration;

use tokio::sync::broadcast::{Receiver, Sender, error::RecvError};
use tokio::sync::watch;

use self::places::{Full, Place, Places};
use super::{Error, Result};
use crate::access::{Caller, Counted};
use crate::store::Pool;
use crate::store::live::{Listener, Signal};

/// Streams of events at the same time; each server has its own.
pub const MAX_STREAMS: usize = 256;
/// Of one caller: a token, a member, or an address without either.
pub const MAX_STREAMS_EACH: usize = 16;
/// Runners that wait for a job at the same time.
pub const MAX_RUNNERS: usize = 256;
/// Of one token, which a whole fleet may share.
pub const MAX_RUNNERS_EACH: usize = 128;
const LOOK_AGAIN: Duration = Duration::from_secs(15);
/// Notifications that a waiter may be behind; past them it looks at the table instead.
const BEHIND: usize = 1_024;
const RECONNECT: Duration = Duration::from_secs(1);

/// Listens from the first waiter on until the server drains.
#[derive(Debug)]
pub struct Hub {
    pool: Pool,
    draining: watch::Receiver<bool>,
    signals: Sender<Signal>,
    listens: Once,
    streams: Places,
    runners: Places,
}

/// A place among those who wait.
#[derive(Debug)]
pub struct Waiter {
    signals: Receiver<Signal>,
    _place: Place,
}

impl Hub {
    pub(crate) fn new(pool: &Pool, draining: watch::Receiver<bool>) -> Self {
        Self {
            pool: pool.clone(),
            draining,
            signals: Sender::new(BEHIND),
            listens: Once::new(),
            streams: Places::new(MAX_STREAMS, MAX_STREAMS_EACH),
            runners: Places::new(MAX_RUNNERS, MAX_RUNNERS_EACH),
        }
    }

    /// For a stream of events; unavailable when there are too many, limited when the caller has too many.
    pub fn stream(&self, caller: &Caller) -> Result<Waiter> {
        self.waiter(&self.streams, caller, "too many runs are followed at a time")
    }

    /// For a runner that waits for a job; the same.
    pub fn runner(&self, caller: &Caller) -> Result<Waiter> {
        self.waiter(&self.runners, caller, "too many runners wait at a time")
    }

    fn waiter(&self, places: &Places, caller: &Caller, full: &str) -> Result<Waiter> {
        let place = places.take(Counted::of(caller)).map_err(|none| match none {
            Full::All => Error::Unavailable(full.to_owned()),
            Full::Yours => {
                let why = format!("{full} with this token, by this member or from this address; try again");
                Error::Limited { why, again_after: Some(LOOK_AGAIN) }
            }
        })?;
        let signals = self.signals.subscribe();
        self.listens.call_once(|| {
            tokio::spawn(listen(self.pool.clone(), self.signals.downgrade(), self.draining.clone()));
        });
        Ok(Waiter { signals, _place: place })
    }
}

impl Waiter {
    /// Until something happens that `concerns` the waiter, or it is time to look again.
    pub async fn wait(&mut self, concerns: impl Fn(&Signal) -> bool) {
        let heard = async {
            loop {
                match self.signals.recv().await {
                    Ok(signal) if concerns(&signal) => return,
                    Ok(_) => {}
                    Err(RecvError::Lagged(_)) => return,
                    // The server is going away; the time limit ends the wait.
                    Err(RecvError::Closed) => std::future::pending().await,
                }
            }
        };
        let _ = tokio::time::timeout(LOOK_AGAIN, heard).await;
    }
}

/// Passes notifications on, over as many connections as it takes. Ends with the server: when it drains, or when nobody
/// holds its state any more.
async fn listen(pool: Pool, signals: tokio::sync::broadcast::WeakSender<Signal>, mut draining: watch::Receiver<bool>) {
    let heard = async {
        loop {
            let failed = match Listener::connect(&pool).await {
                Ok(listener) => pass_on(listener, &signals).await,
                Err(error) => Some(error),
            };
            let Some(error) = failed else { return };
            tracing::warn!(%error, "cannot listen to the database: streams are slow until it is back");
            tokio::time::sleep(RECONNECT).await;
        }
    };
    tokio::select! {
        () = heard => {}
        // An error: the state is gone.
        _ = draining.wait_for(|draining| *draining) => {}
    }
}

/// Until the connection fails for good, or nobody is there to hear.
async fn pass_on(
    mut listener: Listener,
    signals: &tokio::sync::broadcast::WeakSender<Signal>,
) -> Option<crate::store::StoreError> {
    let mut signal = Signal::All;
    loop {
        // Without receivers nobody misses anything.
        let _ = signals.upgrade()?.send(signal);
        match listener.next().await {
            Ok(next) => signal = next,
            Err(error) => return Some(error),
        }
    }
}

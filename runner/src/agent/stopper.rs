//! Why a run is to stop before its end; the first reason counts.

use std::sync::OnceLock;

use tokio::sync::watch;

/// Why a run stops.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Stop {
    /// The server asks for it.
    Cancelled(String),
    /// The job is another's, or may be.
    LeaseLost(String),
    /// The agent itself must end.
    Release(String),
    /// It takes more than the host is given for.
    TooLong(String),
}

#[derive(Debug)]
pub(super) struct Stopper {
    why: OnceLock<Stop>,
    flag: watch::Sender<bool>,
}

impl Stopper {
    pub(super) fn new() -> Self {
        Self { why: OnceLock::new(), flag: watch::Sender::new(false) }
    }

    pub(super) fn stop(&self, why: Stop) {
        let _ = self.why.set(why);
        self.flag.send_replace(true);
    }

    pub(super) fn why(&self) -> Option<&Stop> {
        self.why.get()
    }

    pub(super) fn flag(&self) -> watch::Receiver<bool> {
        self.flag.subscribe()
    }

    /// Ends when somebody stops the run.
    pub(super) async fn stopped(&self) {
        turned(&mut self.flag()).await;
    }
}

/// Ends when the flag is true. One that nobody can turn any more never is.
pub(super) async fn turned(flag: &mut watch::Receiver<bool>) {
    if flag.wait_for(|on| *on).await.is_err() {
        std::future::pending::<()>().await;
    }
}

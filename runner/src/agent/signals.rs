//! Asked to end: the first time the agent takes no new job, the second time it stops the one it has.

use tokio::signal::unix::{SignalKind, signal};
use tokio::sync::watch;

use super::log::say;

/// Both turn true and stay so.
#[derive(Debug, Clone)]
pub(super) struct Asked {
    pub(super) drain: watch::Receiver<bool>,
    pub(super) now: watch::Receiver<bool>,
}

pub(super) fn listen() -> std::io::Result<Asked> {
    let (drain, draining) = watch::channel(false);
    let (now, stopping) = watch::channel(false);
    let (mut term, mut int) = (signal(SignalKind::terminate())?, signal(SignalKind::interrupt())?);
    tokio::spawn(async move {
        loop {
            let heard = tokio::select! {
                heard = term.recv() => heard,
                heard = int.recv() => heard,
            };
            if heard.is_none() {
                std::future::pending::<()>().await;
            }
            if drain.send_replace(true) {
                say(None, "asked to end again: the run is stopped and given back");
                now.send_replace(true);
            } else {
                say(None, "asked to end: no new job is taken (ask again to stop the running one)");
            }
        }
    });
    Ok(Asked { drain: draining, now: stopping })
}

//! A deadline that costs next to nothing when it is always met.

use std::pin::Pin;
use std::task::{Context, Poll, ready};

use tokio::time::{Instant, Sleep, sleep_until};

/// One timer per worker, moved only when it fires too early or would fire too late: setting a new deadline for each
/// request touches no timer wheel.
#[derive(Debug, Default)]
pub(super) struct Deadline {
    sleep: Option<Pin<Box<Sleep>>>,
    at: Option<Instant>,
}

impl Deadline {
    pub(super) fn set(&mut self, at: Instant) {
        self.at = Some(at);
        if let Some(sleep) = self.sleep.as_mut().filter(|sleep| at < sleep.deadline()) {
            sleep.as_mut().reset(at);
        }
    }

    /// Ready once the deadline has passed; never ready before one is set.
    pub(super) fn poll(&mut self, context: &mut Context<'_>) -> Poll<()> {
        let Some(at) = self.at else { return Poll::Pending };
        let sleep = self.sleep.get_or_insert_with(|| Box::pin(sleep_until(at)));
        loop {
            ready!(sleep.as_mut().poll(context));
            if sleep.deadline() >= at {
                return Poll::Ready(());
            }
            sleep.as_mut().reset(at);
        }
    }
}

#[cfg(test)]
mod tests {
    use std::future::poll_fn;
    use std::time::Duration;

    use super::*;

    #[tokio::test(start_paused = true)]
    async fn it_fires_at_the_last_deadline_set() {
        let start = Instant::now();
        let mut deadline = Deadline::default();
        deadline.set(start + Duration::from_secs(10));
        // Armed for 10 s, then moved on without being met.
        assert!(poll_fn(|cx| Poll::Ready(deadline.poll(cx))).await.is_pending());
        deadline.set(start + Duration::from_secs(25));
        poll_fn(|cx| deadline.poll(cx)).await;
        assert_eq!(start.elapsed().as_secs(), 25);
        // And brought forward.
        deadline.set(start + Duration::from_secs(90));
        assert!(poll_fn(|cx| Poll::Ready(deadline.poll(cx))).await.is_pending());
        deadline.set(start + Duration::from_secs(30));
        poll_fn(|cx| deadline.poll(cx)).await;
        assert_eq!(start.elapsed().as_secs(), 30);
    }
}

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

    /// Lower bounds only: a busy machine may be late.
    #[tokio::test]
    async fn it_fires_at_the_last_deadline_set() {
        let start = Instant::now();
        let ms = Duration::from_millis;
        let mut deadline = Deadline::default();
        assert!(poll_fn(|cx| Poll::Ready(deadline.poll(cx))).await.is_pending());
        // Armed, then moved on without being met.
        deadline.set(start + ms(30));
        assert!(start.elapsed() > ms(30) || poll_fn(|cx| Poll::Ready(deadline.poll(cx))).await.is_pending());
        deadline.set(start + ms(60));
        poll_fn(|cx| deadline.poll(cx)).await;
        assert!(start.elapsed() >= ms(60));
        // Armed for a day, then brought forward.
        let day = Duration::from_secs(86_400);
        deadline.set(start + day);
        assert!(poll_fn(|cx| Poll::Ready(deadline.poll(cx))).await.is_pending());
        deadline.set(start + ms(90));
        poll_fn(|cx| deadline.poll(cx)).await;
        assert!(start.elapsed() >= ms(90) && start.elapsed() < day);
    }
}

//! Why something was not told, and when it is tried again.

use std::time::Duration;

use crate::github::Error;
use crate::store::StoreError;
use crate::store::github::writes::Due;
use crate::tasks::retry::pause;

#[derive(Debug, thiserror::Error)]
pub(super) enum Failed {
    #[error(transparent)]
    Store(#[from] StoreError),
    #[error(transparent)]
    GitHub(#[from] Error),
    #[error("the pace that GitHub asks for: {} s to wait", .0.as_secs())]
    Wait(Duration),
    #[error("{0}")]
    Never(String),
}

const FIRST_RETRY: Duration = Duration::from_secs(2);
const LAST_RETRY: Duration = Duration::from_secs(600);
/// What is this old is given up, but not before it was tried a few times: the server itself may have been away.
const GIVE_UP_AFTER: Duration = Duration::from_secs(3 * 24 * 3_600);
const MIN_ATTEMPTS: i32 = 3;
/// What GitHub refuses it refuses again, but what is new to it may be missing for a moment.
const MAX_REFUSALS: i32 = 4;

impl Failed {
    pub(super) fn slow(within: Duration) -> Self {
        Self::GitHub(Error::Unreachable(format!("no end within {} s", within.as_secs())))
    }

    /// `None`: never. What an owner must change first is not tried again: the next change is told anew.
    pub(super) fn retry(&self, due: &Due) -> Option<Duration> {
        let backoff = pause(due.attempts, FIRST_RETRY, LAST_RETRY);
        let old = due.age > GIVE_UP_AFTER && due.attempts > MIN_ATTEMPTS;
        match self {
            _ if old => None,
            Self::Wait(wait) => Some(*wait),
            Self::GitHub(Error::Limited { retry_after }) => Some(*retry_after),
            Self::Store(_) | Self::GitHub(Error::Unreachable(_)) => Some(backoff),
            Self::GitHub(Error::Missing | Error::Refused { .. }) => {
                Some(backoff).filter(|_| due.attempts < MAX_REFUSALS)
            }
            Self::GitHub(Error::Forbidden { .. } | Error::TooLong) | Self::Never(_) => None,
        }
    }
}

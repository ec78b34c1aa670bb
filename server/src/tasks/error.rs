//! Why a task did not do what it was asked for, in words for people. What that is in HTTP, the edge knows.

use std::fmt::Display;
use std::time::Duration;

use crate::access::Refusal;
use crate::store::StoreError;

pub type Result<T, E = Error> = std::result::Result<T, E>;

#[derive(Debug, thiserror::Error)]
pub enum Error {
    #[error("there is no {0}")]
    NotFound(String),
    /// What was sent does not fit, however often it is sent.
    #[error("{0}")]
    Unfit(String),
    #[error(transparent)]
    Refused(#[from] Refusal),
    /// It does not go with what is there already.
    #[error("{0}")]
    Conflict(String),
    /// Whoever asks has as many as they may.
    #[error("{why}")]
    Limited { why: String, again_after: Option<Duration> },
    /// The server has no room; another moment it may.
    #[error("{0}; try again")]
    Unavailable(String),
    /// A failure of ours: the cause is for the log only.
    #[error("{0}")]
    Internal(String),
    #[error(transparent)]
    Store(#[from] StoreError),
    #[error(transparent)]
    GitHub(#[from] crate::github::Error),
}

impl Error {
    pub(crate) fn not_found(what: impl Display) -> Self {
        Self::NotFound(what.to_string())
    }

    pub(crate) fn internal(cause: impl Display) -> Self {
        Self::Internal(cause.to_string())
    }

    pub(crate) fn limited(why: String) -> Self {
        Self::Limited { why, again_after: None }
    }
}

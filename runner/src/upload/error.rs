//! Why the server did not do what was asked.

use std::time::Duration;

use super::{Pauses, Server};
use crate::exit::{Exit, Failure};

/// Why the server did not do what was asked.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum ServerError {
    /// No answer, or one that says to come back later, after all tries.
    Unreachable(String),
    /// It answered, and said no; `problem`: in a problem document, as a Plimsoll server does.
    Refused { status: u16, message: String, problem: bool },
    /// It answered something that is not the answer.
    Strange(String),
}

impl ServerError {
    /// Whether this very content is refused, now and later, whoever sends it. Only Plimsoll itself can say so: what a
    /// proxy on the way says may be over with the next change of the proxy.
    pub fn is_for_good(&self) -> bool {
        matches!(self, Self::Refused { status: 400 | 409 | 413 | 415 | 422, problem: true, .. })
    }

    /// Whether the server itself says no; else the answer may be that of a proxy whose server is away.
    pub(crate) fn is_the_server_s(&self) -> bool {
        matches!(self, Self::Refused { problem: true, .. })
    }

    /// What the server said.
    pub fn why(&self) -> &str {
        match self {
            Self::Unreachable(why) | Self::Refused { message: why, .. } | Self::Strange(why) => why,
        }
    }

    /// The failure of a command that needed the server.
    pub fn failure(self, server: &Server) -> Failure {
        let at = server.address();
        match self {
            Self::Unreachable(why) => Failure::new(
                "unreachable",
                Exit::Unreachable,
                format!("the server at {at} could not be reached: {why}"),
            ),
            Self::Refused { status: 401 | 403, message, .. } => {
                Failure::new("refused", Exit::Usage, format!("the server at {at} refuses: {message}"))
                    .hint("set PLIMSOLL_TOKEN, or --token, to a token of this server that may do this")
            }
            // A Plimsoll server that does not have it.
            Self::Refused { status: 404, message, problem: true } => {
                Failure::new("refused", Exit::Usage, format!("the server at {at} refuses: {message}"))
            }
            Self::Refused { status: 300..=399 | 404 | 405, message, .. } => {
                Failure::new("refused", Exit::Usage, format!("the server at {at} refuses: {message}"))
                    .hint("is --server the address of a Plimsoll server?")
            }
            Self::Refused { message, .. } => {
                Failure::new("refused", Exit::Failed, format!("the server at {at} refuses: {message}"))
            }
            Self::Strange(why) => Failure::new(
                "strange_answer",
                Exit::Unreachable,
                format!("{at} does not answer like a Plimsoll server: {why}"),
            ),
        }
    }
}

/// One try that did not do it.
#[derive(Debug)]
pub(crate) struct Tried {
    pub(crate) error: ServerError,
    /// When the server says to come back.
    pub(crate) asked: Option<Duration>,
    /// What came with a refusal.
    pub(crate) body: Vec<u8>,
}

impl Tried {
    pub(crate) fn unreachable(why: impl Into<String>) -> Self {
        ServerError::Unreachable(why.into()).into()
    }

    pub(crate) fn status(&self) -> Option<u16> {
        match self.error {
            ServerError::Refused { status, .. } => Some(status),
            _ => None,
        }
    }

    /// How long to wait before the next try.
    ///
    /// # Errors
    /// Another try would not help, or there is no time for one.
    pub(crate) fn pause(&self, pauses: &mut Pauses) -> Result<Duration, ServerError> {
        let again = matches!(self.error, ServerError::Unreachable(_));
        again.then(|| pauses.next(self.asked)).flatten().ok_or_else(|| self.error.clone())
    }
}

impl From<ServerError> for Tried {
    fn from(error: ServerError) -> Self {
        Self { error, asked: None, body: Vec::new() }
    }
}

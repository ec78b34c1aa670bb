//! Why a run ended without a report that can be compared.

use plimsoll_domain::report::Report;

/// The run could not be carried out. The message says what was sent where and what came back (bounded); the advice
/// says what to do.
#[derive(Debug, thiserror::Error)]
#[error("{message}")]
pub struct RunError {
    pub cause: Cause,
    pub message: String,
    pub advice: Option<String>,
    /// What was measured until then, with status `failed`.
    pub report: Option<Box<Report>>,
}

/// Who has to do something about it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Cause {
    /// The service cannot be reached or answers wrongly.
    Service,
    /// The plan asks for something that cannot be sent.
    Plan,
    /// A defect or a missing resource on our side.
    Ours,
}

impl RunError {
    pub(crate) fn new(cause: Cause, message: impl Into<String>) -> Self {
        Self { cause, message: message.into(), advice: None, report: None }
    }

    #[must_use]
    pub(crate) fn with_advice(mut self, advice: impl Into<String>) -> Self {
        self.advice = Some(advice.into());
        self
    }
}

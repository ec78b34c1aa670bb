//! What a run noticed about itself: things that void it, and things worth saying.

use serde::{Deserialize, Serialize};

/// What a finding does to the run.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
#[serde(rename_all = "snake_case")]
pub enum Severity {
    /// A cause outside the service spoiled the figures: the run is never compared and never a baseline.
    Voids,
    /// Said beside the figures, which stand.
    Notice,
}

/// One observation with its evidence. `code` is stable and names the rule; `message` is a plain sentence with the
/// numbers; `advice` says what to do.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
#[serde(deny_unknown_fields)]
pub struct Finding {
    pub code: String,
    pub severity: Severity,
    pub message: String,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub advice: Option<String>,
}

impl Finding {
    pub fn voids(code: &str, message: impl Into<String>, advice: impl Into<String>) -> Self {
        Self { code: code.to_owned(), severity: Severity::Voids, message: message.into(), advice: Some(advice.into()) }
    }

    pub fn notice(code: &str, message: impl Into<String>) -> Self {
        Self { code: code.to_owned(), severity: Severity::Notice, message: message.into(), advice: None }
    }

    #[must_use]
    pub fn with_advice(mut self, advice: impl Into<String>) -> Self {
        self.advice = Some(advice.into());
        self
    }
}

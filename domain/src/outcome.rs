//! How a request ended.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

/// Why a request failed. The order is the order of a request's life, and of every table of outcomes.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
#[serde(rename_all = "snake_case")]
pub enum ErrorKind {
    /// No socket, port or file handle left on our side: the step says nothing about the service.
    ClientResource,
    Dns,
    ConnectTimeout,
    ConnectRefused,
    Tls,
    /// The connection broke before the whole response had arrived, or what arrived was not HTTP.
    Reset,
    ResponseTimeout,
    #[serde(rename = "http_4xx")]
    Http4xx,
    #[serde(rename = "http_429")]
    Http429,
    #[serde(rename = "http_5xx")]
    Http5xx,
    /// A complete answer that fails the plan's assertions (an unexpected status below 400 counts here).
    BadOutput,
    StreamError,
    StreamTruncated,
}

impl ErrorKind {
    pub const ALL: [Self; 13] = [
        Self::ClientResource,
        Self::Dns,
        Self::ConnectTimeout,
        Self::ConnectRefused,
        Self::Tls,
        Self::Reset,
        Self::ResponseTimeout,
        Self::Http4xx,
        Self::Http429,
        Self::Http5xx,
        Self::BadOutput,
        Self::StreamError,
        Self::StreamTruncated,
    ];

    /// The name used in reports and tables.
    pub fn name(self) -> &'static str {
        match self {
            Self::ClientResource => "client_resource",
            Self::Dns => "dns",
            Self::ConnectTimeout => "connect_timeout",
            Self::ConnectRefused => "connect_refused",
            Self::Tls => "tls",
            Self::Reset => "reset",
            Self::ResponseTimeout => "response_timeout",
            Self::Http4xx => "http_4xx",
            Self::Http429 => "http_429",
            Self::Http5xx => "http_5xx",
            Self::BadOutput => "bad_output",
            Self::StreamError => "stream_error",
            Self::StreamTruncated => "stream_truncated",
        }
    }

    /// Whether the cause lies on our side, so that it voids the step instead of counting against the service.
    pub fn is_ours(self) -> bool {
        self == Self::ClientResource
    }

    /// The kind of an HTTP status that the plan did not expect.
    pub fn of_status(status: u16) -> Self {
        match status {
            429 => Self::Http429,
            400..=499 => Self::Http4xx,
            500..=599 => Self::Http5xx,
            _ => Self::BadOutput,
        }
    }
}

/// Requests counted by how they ended. Requests still open at the end of the run are `cut`: neither successes nor
/// errors.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
#[serde(deny_unknown_fields)]
pub struct Outcomes {
    pub ok: u64,
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub errors: BTreeMap<ErrorKind, u64>,
    #[serde(default)]
    pub cut: u64,
}

impl Outcomes {
    pub fn count(&mut self, result: Result<(), ErrorKind>) {
        match result {
            Ok(()) => self.ok += 1,
            Err(kind) => *self.errors.entry(kind).or_default() += 1,
        }
    }

    pub fn failed(&self) -> u64 {
        self.errors.values().sum()
    }

    /// Successes and failures, without the cut.
    pub fn finished(&self) -> u64 {
        self.ok + self.failed()
    }

    /// The fraction of finished requests that failed; `None` when none finished.
    pub fn error_rate(&self) -> Option<f64> {
        let finished = self.finished();
        (finished > 0).then(|| self.failed() as f64 / finished as f64)
    }

    pub fn merge(&mut self, other: &Self) {
        self.ok += other.ok;
        self.cut += other.cut;
        for (kind, count) in &other.errors {
            *self.errors.entry(*kind).or_default() += count;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_the_wire_names() {
        for kind in ErrorKind::ALL {
            assert_eq!(serde_json::to_value(kind).unwrap(), kind.name());
        }
    }

    #[test]
    fn no_finished_request_has_no_error_rate() {
        let mut outcomes = Outcomes { cut: 3, ..Outcomes::default() };
        assert_eq!(outcomes.error_rate(), None);
        outcomes.count(Ok(()));
        outcomes.count(Err(ErrorKind::Http5xx));
        assert_eq!(outcomes.error_rate(), Some(0.5));
    }
}

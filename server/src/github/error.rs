//! Why GitHub did not do what it was asked for: told apart by what helps.

use std::time::Duration;

use hyper::HeaderMap;
use jiff::Timestamp;
use serde::Deserialize;

pub type Result<T, E = Error> = std::result::Result<T, E>;

#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum Error {
    /// GitHub does not tell the one from the other.
    #[error("GitHub has no such thing, or does not show it to the App")]
    Missing,
    #[error("GitHub does not let the App do this{}", named(.permission.as_deref()))]
    Forbidden {
        /// The one that is missing, such as `checks: write`.
        permission: Option<String>,
    },
    #[error("GitHub asks to wait {} s", .retry_after.as_secs())]
    Limited { retry_after: Duration },
    /// The text that was sent.
    #[error("GitHub does not take a text that long")]
    TooLong,
    /// However often it is asked.
    #[error("GitHub refuses ({status}): {message}")]
    Refused { status: u16, message: String },
    /// What was sent may have been done all the same: look before it is sent again.
    #[error("GitHub does not answer as it should: {0}")]
    Unreachable(String),
}

/// Of a message of GitHub's, which is shown.
const MAX_MESSAGE: usize = 300;
/// For a limit without a time.
const A_WHILE: Duration = Duration::from_secs(60);
/// GitHub's longest window.
const LONGEST: Duration = Duration::from_secs(3_600);

impl Error {
    /// The same may go well later.
    pub fn passes(&self) -> bool {
        matches!(self, Self::Limited { .. } | Self::Unreachable(_))
    }

    pub(super) fn unreachable(error: &dyn std::error::Error) -> Self {
        Self::Unreachable(cause(error))
    }

    /// Out of an answer that is no success. `needs` is the permission that the call takes.
    pub(super) fn of(status: u16, headers: &HeaderMap, body: &[u8], needs: &str) -> Self {
        let text = String::from_utf8_lossy(body).to_lowercase();
        match status {
            404 | 410 => Self::Missing,
            429 => Self::Limited { retry_after: retry_after(headers) },
            403 if is_limit(headers, &text) => Self::Limited { retry_after: retry_after(headers) },
            403 if text.contains("not accessible by integration") => {
                let accepted = headers.get("x-accepted-github-permissions").and_then(|value| value.to_str().ok());
                let permission = accepted.filter(|text| !text.is_empty()).map_or(needs.to_owned(), spelled);
                Self::Forbidden { permission: Some(permission).filter(|text| !text.is_empty()) }
            }
            413 => Self::TooLong,
            422 if ["too long", "characters are allowed", "bytes are allowed"].iter().any(|s| text.contains(s)) => {
                Self::TooLong
            }
            // A move is told by an event too: by then the name is the new one.
            300..400 | 500.. => Self::Unreachable(format!("it answers {status}")),
            _ => Self::Refused { status, message: message(body) },
        }
    }
}

/// What is at the bottom of an error.
pub(super) fn cause(error: &dyn std::error::Error) -> String {
    let mut innermost = error;
    while let Some(source) = innermost.source() {
        innermost = source;
    }
    shown(&innermost.to_string())
}

fn named(permission: Option<&str>) -> String {
    permission.map(|permission| format!(": its permission \"{permission}\" is missing")).unwrap_or_default()
}

/// GitHub writes `checks=write; contents=read,issues=read`.
fn spelled(accepted: &str) -> String {
    shown(&accepted.replace('=', ": ").replace(',', ", "))
}

fn is_limit(headers: &HeaderMap, text: &str) -> bool {
    headers.contains_key("retry-after")
        || headers.get("x-ratelimit-remaining").is_some_and(|left| left == "0")
        || ["secondary rate limit", "rate limit exceeded", "abuse detection"].iter().any(|s| text.contains(s))
}

fn retry_after(headers: &HeaderMap) -> Duration {
    let number = |name| headers.get(name)?.to_str().ok()?.trim().parse::<i64>().ok();
    let until_reset = || number("x-ratelimit-reset").map(|at| at - Timestamp::now().as_second());
    let seconds = number("retry-after").or_else(until_reset);
    let wait = seconds.map_or(A_WHILE, |seconds| Duration::from_secs(u64::try_from(seconds).unwrap_or(0)));
    wait.clamp(Duration::from_secs(1), LONGEST)
}

#[derive(Deserialize)]
struct Told {
    message: String,
    #[serde(default)]
    errors: Vec<serde_json::Value>,
}

fn message(body: &[u8]) -> String {
    let Ok(told) = serde_json::from_slice::<Told>(body) else { return shown(&String::from_utf8_lossy(body)) };
    let detail = told.errors.iter().find_map(|error| error.as_str().or_else(|| error.get("message")?.as_str()));
    shown(&detail.map_or(told.message.clone(), |detail| format!("{}: {detail}", told.message)))
}

/// On one line, and not too long.
fn shown(text: &str) -> String {
    text.split_whitespace().collect::<Vec<_>>().join(" ").chars().take(MAX_MESSAGE).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn of(status: u16, headers: &[(&'static str, &str)], body: &str) -> Error {
        let headers = headers.iter().map(|(name, value)| (name.parse().unwrap(), value.parse().unwrap())).collect();
        Error::of(status, &headers, body.as_bytes(), "checks: write")
    }

    #[test]
    fn limits_say_how_long() {
        let limited = |seconds| Error::Limited { retry_after: Duration::from_secs(seconds) };
        assert_eq!(of(403, &[("retry-after", "7")], ""), limited(7));
        assert_eq!(of(429, &[], ""), limited(60));
        assert_eq!(of(403, &[], r#"{"message":"You have exceeded a secondary rate limit."}"#), limited(60));
        assert_eq!(of(429, &[("retry-after", "0")], ""), limited(1));
        assert_eq!(of(429, &[("retry-after", "99999999")], ""), limited(3_600));
        let soon = (Timestamp::now().as_second() + 30).to_string();
        let Error::Limited { retry_after } =
            of(403, &[("x-ratelimit-remaining", "0"), ("x-ratelimit-reset", &soon)], "")
        else {
            panic!("not a limit")
        };
        assert!((25..=30).contains(&retry_after.as_secs()), "{retry_after:?}");
    }

    #[test]
    fn a_missing_permission_is_named() {
        let told = r#"{"message":"Resource not accessible by integration"}"#;
        assert_eq!(of(403, &[], told), Error::Forbidden { permission: Some("checks: write".to_owned()) });
        let named = of(403, &[("x-accepted-github-permissions", "pull_requests=write; issues=write")], told);
        assert_eq!(
            named.to_string(),
            "GitHub does not let the App do this: its permission \"pull_requests: write; issues: write\" is missing"
        );
        assert!(matches!(of(403, &[], r#"{"message":"suspended"}"#), Error::Refused { status: 403, .. }));
    }

    #[test]
    fn what_is_too_long_is_told_from_what_is_wrong() {
        let comment = r#"{"message":"Validation Failed","errors":[{"message":"Body is too long (maximum is 65536 characters)"}]}"#;
        let check = r#"{"message":"Invalid request.\n\nOnly 65535 characters are allowed; 70000 were supplied."}"#;
        assert_eq!([of(422, &[], comment), of(422, &[], check)], [Error::TooLong, Error::TooLong]);
        let wrong =
            of(422, &[], r#"{"message":"Validation Failed","errors":[{"message":"No commit found for SHA: 1"}]}"#);
        assert_eq!(wrong.to_string(), "GitHub refuses (422): Validation Failed: No commit found for SHA: 1");
    }

    #[test]
    fn failures_of_its_own_pass() {
        for status in [500, 502, 503, 504, 307] {
            assert!(of(status, &[], "<html>").passes(), "{status}");
        }
        assert_eq!([of(404, &[], ""), of(410, &[], "")], [Error::Missing, Error::Missing]);
        assert!(!of(404, &[], "").passes());
    }
}

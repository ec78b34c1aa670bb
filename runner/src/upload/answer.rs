//! Answers of the server, read with bounds.

use std::time::Duration;

use reqwest::{Response, StatusCode, header};
use serde::Deserialize;

use super::{ServerError, Tried};

/// The longest answer that says no.
const MAX_REFUSAL: usize = 64 << 10;

/// What an answer that is no success says.
pub(super) async fn refusal(response: Response) -> Tried {
    let status = response.status();
    if status.is_redirection() {
        let to = response.headers().get(header::LOCATION).and_then(|to| to.to_str().ok()).unwrap_or("?");
        let message = format!("it redirects to {to:?}; give that address itself");
        return ServerError::Refused { status: status.as_u16(), message, problem: false }.into();
    }
    let asked = retry_after(&response);
    let body = body(response, MAX_REFUSAL).await.unwrap_or_default();
    let (message, problem) = said(status, &body);
    let error = match comes_back(status) {
        true => ServerError::Unreachable(message),
        false => ServerError::Refused { status: status.as_u16(), message, problem },
    };
    Tried { error, asked, body }
}

fn comes_back(status: StatusCode) -> bool {
    status.is_server_error() || status == StatusCode::TOO_MANY_REQUESTS || status == StatusCode::REQUEST_TIMEOUT
}

fn retry_after(response: &Response) -> Option<Duration> {
    let seconds = response.headers().get(header::RETRY_AFTER)?.to_str().ok()?.trim().parse().ok()?;
    Some(Duration::from_secs(seconds))
}

/// What a problem document says, or the status' own words; whether there was such a document.
fn said(status: StatusCode, body: &[u8]) -> (String, bool) {
    #[derive(Deserialize)]
    struct Problem {
        title: Option<String>,
        detail: Option<String>,
    }
    let problem: Option<Problem> = serde_json::from_slice(body).ok();
    let said = problem.and_then(|problem| match (problem.title, problem.detail) {
        (Some(title), Some(detail)) => Some(format!("{title}: {detail}")),
        (title, detail) => title.or(detail),
    });
    let problem = said.is_some();
    (one_line(&said.unwrap_or_else(|| format!("status {status}"))), problem)
}

/// What another machine says goes onto a terminal: one bounded line without control characters.
pub(crate) fn one_line(text: &str) -> String {
    text.chars().filter(|c| !c.is_control()).take(500).collect()
}

/// The body of an answer of at most `most` bytes.
pub(super) async fn body(mut response: Response, most: usize) -> Result<Vec<u8>, ServerError> {
    let mut bytes = Vec::new();
    while let Some(chunk) = response.chunk().await.map_err(|error| ServerError::Unreachable(causes(&error)))? {
        bytes.extend_from_slice(&chunk);
        if bytes.len() > most {
            return Err(ServerError::Strange(format!("an answer of more than {most} bytes")));
        }
    }
    Ok(bytes)
}

pub(crate) fn parse<T: for<'de> Deserialize<'de>>(bytes: &[u8]) -> Result<T, ServerError> {
    serde_json::from_slice(bytes).map_err(|error| ServerError::Strange(error.to_string()))
}

/// The innermost cause: "connection refused" rather than "error sending request".
pub(super) fn causes(error: &reqwest::Error) -> String {
    if error.is_timeout() {
        return "no answer in time".to_owned();
    }
    let mut cause: &dyn std::error::Error = error;
    while let Some(inner) = cause.source() {
        cause = inner;
    }
    cause.to_string()
}

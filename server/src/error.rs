//! The one error type at the HTTP edge: known failures have a status and a public message, the rest is an opaque 500.
//! All of them are `application/problem+json` (RFC 9457).

mod layer;

use axum::http::{HeaderValue, StatusCode, header};
use axum::response::{IntoResponse, Response};
use serde::Serialize;

use crate::access::Refusal;
use crate::github;
use crate::store::StoreError;
use crate::tasks;

pub use layer::{panicked, problems};

pub type Result<T, E = AppError> = std::result::Result<T, E>;

/// Seconds until what is not available may be again, when nothing else is known.
const RETRY_AFTER: u64 = 5;

/// A failure of a request. As a response it carries a [`Problem`] extension, from which pages may render their own.
#[derive(Debug)]
pub struct AppError(Problem);

/// What is told about a failure.
#[derive(Debug, Clone)]
pub struct Problem {
    pub status: StatusCode,
    /// What went wrong and where, in words for the client.
    pub detail: String,
    /// Seconds after which it is worth trying again.
    pub retry_after: Option<u64>,
    /// The cause that only the log may know.
    cause: Option<String>,
    /// Of an upload in parts: how much the server has.
    received: Option<u64>,
}

impl AppError {
    pub fn new(status: StatusCode, detail: impl Into<String>) -> Self {
        Self(Problem { status, detail: detail.into(), retry_after: None, cause: None, received: None })
    }

    /// An upload in parts is elsewhere than the client believes.
    pub fn at(received: u64, detail: impl Into<String>) -> Self {
        Self(Problem { received: Some(received), ..Self::new(StatusCode::CONFLICT, detail).0 })
    }

    pub fn not_found(what: impl std::fmt::Display) -> Self {
        Self::new(StatusCode::NOT_FOUND, format!("there is no {what}"))
    }

    pub fn bad_request(detail: impl Into<String>) -> Self {
        Self::new(StatusCode::BAD_REQUEST, detail)
    }

    pub fn unauthorized(detail: impl Into<String>) -> Self {
        Self::new(StatusCode::UNAUTHORIZED, detail)
    }

    /// A failure of ours: logged once with its cause, opaque to the client.
    pub fn internal(cause: impl std::fmt::Display) -> Self {
        Self(Problem {
            status: StatusCode::INTERNAL_SERVER_ERROR,
            detail: "an error of the server; its log has the details under this request id".to_owned(),
            retry_after: None,
            cause: Some(cause.to_string()),
            received: None,
        })
    }

    #[must_use]
    pub fn retry_after(mut self, seconds: u64) -> Self {
        self.0.retry_after = Some(seconds);
        self
    }

    pub fn status(&self) -> StatusCode {
        self.0.status
    }

    pub fn problem(&self) -> &Problem {
        &self.0
    }
}

impl From<StoreError> for AppError {
    fn from(error: StoreError) -> Self {
        match error {
            StoreError::NulInText => Self::new(StatusCode::UNPROCESSABLE_ENTITY, error.to_string()),
            StoreError::Unavailable(_) => {
                let problem = Self::new(StatusCode::SERVICE_UNAVAILABLE, "the database does not answer; try again");
                Self(Problem { cause: Some(error.to_string()), ..problem.0 })
            }
            StoreError::Database(_) | StoreError::Migrate(_) | StoreError::Corrupt { .. } => Self::internal(error),
        }
    }
}

impl From<Refusal> for AppError {
    fn from(refusal: Refusal) -> Self {
        match refusal {
            Refusal::Anonymous => Self::unauthorized(refusal.to_string()),
            Refusal::OutOfReach(why) => Self::new(StatusCode::FORBIDDEN, why),
        }
    }
}

impl From<tasks::Error> for AppError {
    fn from(error: tasks::Error) -> Self {
        use tasks::Error;
        match error {
            Error::NotFound(what) => Self::not_found(what),
            Error::Unfit(why) => Self::new(StatusCode::UNPROCESSABLE_ENTITY, why),
            Error::Refused(refusal) => refusal.into(),
            Error::Conflict(why) => Self::new(StatusCode::CONFLICT, why),
            Error::Limited { why, again_after } => {
                let problem = Self::new(StatusCode::TOO_MANY_REQUESTS, why).0;
                Self(Problem { retry_after: again_after.map(|after| after.as_secs()), ..problem })
            }
            Error::Unavailable(_) => Self::new(StatusCode::SERVICE_UNAVAILABLE, error.to_string()),
            Error::Internal(cause) => Self::internal(cause),
            Error::Store(error) => error.into(),
            Error::GitHub(error) => {
                let retry_after = match &error {
                    github::Error::Limited { retry_after } => Some(retry_after.as_secs()),
                    _ => None,
                };
                Self(Problem { retry_after, ..Self::new(StatusCode::BAD_GATEWAY, error.to_string()).0 })
            }
        }
    }
}

/// A problem document (RFC 9457).
#[derive(Debug, Serialize, utoipa::ToSchema)]
#[schema(as = Problem)]
pub struct Body<'a> {
    /// The status in words.
    title: &'a str,
    status: u16,
    /// What went wrong, where, and what to do.
    detail: &'a str,
    /// Of failures of the server: its log has the cause under it.
    #[serde(skip_serializing_if = "Option::is_none")]
    request_id: Option<&'a str>,
    /// Of an upload in parts that is elsewhere than the request says: where it is.
    #[serde(skip_serializing_if = "Option::is_none")]
    received: Option<u64>,
}

impl Problem {
    fn render(self, request_id: Option<&str>) -> Response {
        let body = Body {
            title: self.status.canonical_reason().unwrap_or("Error"),
            status: self.status.as_u16(),
            detail: &self.detail,
            request_id,
            received: self.received,
        };
        let json = serde_json::to_vec(&body).unwrap_or_default();
        let mut response = (self.status, [(header::CONTENT_TYPE, "application/problem+json")], json).into_response();
        let headers = response.headers_mut();
        if self.status == StatusCode::UNAUTHORIZED {
            headers.insert(header::WWW_AUTHENTICATE, HeaderValue::from_static("Bearer realm=\"plimsoll\""));
        }
        let soon = (self.status == StatusCode::SERVICE_UNAVAILABLE).then_some(RETRY_AFTER);
        if let Some(seconds) = self.retry_after.or(soon) {
            headers.insert(header::RETRY_AFTER, seconds.into());
        }
        response.extensions_mut().insert(self);
        response
    }
}

impl IntoResponse for AppError {
    fn into_response(self) -> Response {
        self.0.render(None)
    }
}

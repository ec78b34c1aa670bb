//! What administrators set: tokens, members, a project's visibility and webhooks. Forms post and redirect; only what is
//! shown once (a token, a webhook's secret) is answered at once, and kept by nobody.

pub(super) mod audit;
mod link;
mod members;
mod policy;
pub(super) mod project;
pub(super) mod server;
mod tokens;

use axum::http::{HeaderValue, StatusCode, header};
use axum::response::{IntoResponse as _, Response};
use plimsoll_domain::ids::ProjectSlug;

use super::view::sentence;
use crate::access::{Grant, Scope};
use crate::error::{AppError, Result};

/// Something that is shown once.
#[derive(Debug)]
struct Once {
    /// Of what it is.
    heading: String,
    secret: String,
    hint: &'static str,
}

/// What came of a form: something to show once, or why it was not done.
#[derive(Debug, Default)]
struct Outcome {
    status: StatusCode,
    once: Option<Once>,
    problem: Option<String>,
}

impl Outcome {
    /// What is wrong with a form is told beside it; what is wrong with us, by a page of its own.
    fn of(done: Result<Once, impl Into<AppError>>) -> Result<Self> {
        match done.map_err(Into::into) {
            Ok(once) => Ok(Self { once: Some(once), ..Self::default() }),
            Err(error) if error.status().is_client_error() => {
                Ok(Self { status: error.status(), problem: Some(sentence(&error.problem().detail)), once: None })
            }
            Err(error) => Err(error),
        }
    }

    /// Its fields say themselves what is wrong with them.
    fn unfit() -> Self {
        Self { status: StatusCode::UNPROCESSABLE_ENTITY, ..Self::default() }
    }

    /// As the answer, which no cache keeps.
    fn answer(&self, page: Response) -> Response {
        let mut response = (self.status, page).into_response();
        response.headers_mut().insert(header::CACHE_CONTROL, HeaderValue::from_static("no-store"));
        response
    }
}

/// A field that may be left empty.
fn filled(field: Option<&str>) -> Option<&str> {
    field.map(str::trim).filter(|text| !text.is_empty())
}

/// The grant that a form names.
fn grant(scope: &str, project: Option<&str>) -> Result<Grant> {
    let unfit = |why: String| AppError::new(StatusCode::UNPROCESSABLE_ENTITY, why);
    let scope: Scope = scope.parse().map_err(unfit)?;
    let project: Option<ProjectSlug> =
        filled(project).map(|slug| slug.parse().map_err(|e| unfit(format!("project: {e}")))).transpose()?;
    Ok(Grant { scope, project })
}

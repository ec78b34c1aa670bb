//! What the frame around a page shows: who looks at it, and in which project they are. What a caller may not do is not
//! offered.

use axum::extract::FromRequestParts;
use axum::http::Uri;
use axum::http::request::Parts;
use plimsoll_domain::ids::ProjectSlug;

use super::view::query_value;
use crate::access::{Caller, Scope, Who};
use crate::error::{AppError, Result};
use crate::state::AppState;
use crate::store;

#[derive(Debug, Clone)]
pub(super) struct Frame {
    pub(super) caller: Caller,
    /// Path and query of the page.
    address: String,
    pub(super) project: Option<Place>,
}

/// The project that a page belongs to.
#[derive(Debug, Clone)]
pub(super) struct Place {
    pub(super) slug: ProjectSlug,
    pub(super) private: bool,
    /// Whether its settings are offered.
    pub(super) settings: bool,
}

impl Frame {
    pub(super) fn new(caller: Caller, address: impl Into<String>) -> Self {
        Self { caller, address: address.into(), project: None }
    }

    /// The frame of a project that exists, and its name.
    pub(super) async fn within(mut self, state: &AppState, name: &str) -> Result<(ProjectSlug, Self)> {
        let missing = || AppError::not_found(format!("project {name:?}"));
        let slug: ProjectSlug = name.parse().map_err(|_| missing())?;
        let public = store::projects::is_public(state.pool(), &slug).await?.ok_or_else(missing)?;
        let settings = self.caller.may(Scope::Admin, &slug);
        self.project = Some(Place { slug: slug.clone(), private: !public, settings });
        Ok((slug, self))
    }

    /// Who is signed in, in a word.
    pub(super) fn name(&self) -> Option<String> {
        match &self.caller.who {
            Who::Anonymous => None,
            Who::Token { name, .. } => Some(format!("token {name}")),
            Who::Member { login } => Some(format!("@{login}")),
            Who::Workflow(workflow) => Some(format!("workflow of {}", workflow.repository)),
        }
    }

    /// Only a browser's session can be ended.
    pub(super) fn signs_out(&self) -> bool {
        self.caller.by_cookie
    }

    /// Whether the settings of the whole server are offered.
    pub(super) fn administers(&self) -> bool {
        self.caller.may_everywhere(Scope::Admin)
    }

    /// Hosts are shown to those only who have a scope of their own.
    pub(super) fn sees_runners(&self) -> bool {
        self.caller.may_somewhere(Scope::Read)
    }

    /// Leads back here after sign-in.
    pub(super) fn sign_in(&self) -> String {
        if self.address == "/" || self.address.starts_with("/sign-") {
            return "/sign-in".to_owned();
        }
        format!("/sign-in?next={}", query_value(&self.address))
    }
}

impl<S: Sync> FromRequestParts<S> for Frame {
    type Rejection = AppError;

    async fn from_request_parts(parts: &mut Parts, state: &S) -> Result<Self> {
        let caller = Caller::from_request_parts(parts, state).await?;
        Ok(Self::new(caller, address(&parts.uri)))
    }
}

pub(super) fn address(uri: &Uri) -> &str {
    uri.path_and_query().map_or("/", |address| address.as_str())
}

//! Who sends a request, and what they may do.

use std::net::IpAddr;

use axum::extract::FromRequestParts;
use axum::http::request::Parts;
use plimsoll_domain::ids::ProjectSlug;
use serde::{Deserialize, Serialize};
use uuid::Uuid;

use super::workflow::Workflow;
use crate::error::AppError;
use crate::store::audit::Entry;
use crate::store::projects::Readable;

/// What a token or a member may do; each scope includes those before it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
#[derive(utoipa::ToSchema)]
pub enum Scope {
    /// Read private projects.
    Read,
    /// Send reports, ask for runs.
    Upload,
    /// Carry out runs.
    Agent,
    /// Set policies, make tokens, see the audit log.
    Admin,
}

impl Scope {
    pub const ALL: [Self; 4] = [Self::Read, Self::Upload, Self::Agent, Self::Admin];

    pub fn name(self) -> &'static str {
        match self {
            Self::Read => "read",
            Self::Upload => "upload",
            Self::Agent => "agent",
            Self::Admin => "admin",
        }
    }
}

impl std::str::FromStr for Scope {
    type Err = String;
    fn from_str(text: &str) -> Result<Self, String> {
        let known = || format!("{text:?} is no scope; known: read, upload, agent, admin");
        Self::ALL.into_iter().find(|scope| scope.name() == text).ok_or_else(known)
    }
}

/// A scope for one project, or for the whole server.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Grant {
    pub scope: Scope,
    pub project: Option<ProjectSlug>,
}

/// By what a caller is known.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Who {
    Anonymous,
    /// One of the configured tokens has no id.
    Token {
        id: Option<Uuid>,
        name: String,
    },
    /// Signed in by GitHub.
    Member {
        login: String,
    },
    /// A run of a workflow of GitHub Actions, as GitHub says.
    Workflow(Box<Workflow>),
}

/// The sender of a request; the guard puts it into the request, handlers take it as an argument.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Caller {
    pub who: Who,
    pub grants: Vec<Grant>,
    /// Known by a cookie: requests that change something must then come from our own pages.
    pub by_cookie: bool,
    pub address: Option<IpAddr>,
    pub request_id: Option<String>,
}

/// Why a caller may not do what they ask for.
#[derive(Debug, thiserror::Error)]
pub enum Refusal {
    #[error("this needs a token: send `Authorization: Bearer TOKEN` (PLIMSOLL_TOKEN for plimsoll)")]
    Anonymous,
    #[error("{0}")]
    OutOfReach(String),
}

/// Where a grant without a project reaches.
pub(super) const WHOLE_SERVER: &str = "the whole server";

impl Caller {
    pub fn anonymous() -> Self {
        Self { who: Who::Anonymous, grants: Vec::new(), by_cookie: false, address: None, request_id: None }
    }

    /// Whether a grant covers `project`, known to the server or not; public projects are readable without.
    pub fn may(&self, scope: Scope, project: &ProjectSlug) -> bool {
        let covers = |grant: &Grant| grant.scope >= scope && grant.project.as_ref().is_none_or(|own| own == project);
        self.grants.iter().any(covers)
    }

    /// For the whole server.
    pub fn may_everywhere(&self, scope: Scope) -> bool {
        self.grants.iter().any(|grant| grant.scope >= scope && grant.project.is_none())
    }

    /// What lists show them.
    pub fn readable(&self) -> Readable {
        if self.may_everywhere(Scope::Read) {
            return Readable::All;
        }
        Readable::PublicAnd(self.grants.iter().filter_map(|grant| Some(grant.project.as_ref()?.to_string())).collect())
    }

    /// For some project at least.
    pub fn may_somewhere(&self, scope: Scope) -> bool {
        self.grants.iter().any(|grant| grant.scope >= scope)
    }

    pub fn require(&self, scope: Scope, project: &ProjectSlug) -> Result<(), Refusal> {
        if self.may(scope, project) { Ok(()) } else { Err(self.refusal(scope, &format!("project {project}"))) }
    }

    pub fn require_everywhere(&self, scope: Scope) -> Result<(), Refusal> {
        if self.may_everywhere(scope) { Ok(()) } else { Err(self.refusal(scope, WHOLE_SERVER)) }
    }

    /// `place` is that for which the scope is needed.
    pub(super) fn refusal(&self, scope: Scope, place: &str) -> Refusal {
        if self.who == Who::Anonymous {
            return Refusal::Anonymous;
        }
        let why = format!("{} may not do this: it needs the scope `{}` for {place}", self.name(), scope.name());
        Refusal::OutOfReach(why)
    }

    /// What they are about to do, for the audit log.
    pub fn entry(&self, action: &str) -> Entry {
        Entry { address: self.address, request_id: self.request_id.clone(), ..Entry::new(self.name(), action) }
    }

    /// As the audit log names them.
    pub fn name(&self) -> String {
        match &self.who {
            Who::Anonymous => "anonymous".to_owned(),
            Who::Token { name, .. } => format!("token {name}"),
            Who::Member { login } => format!("github {login}"),
            Who::Workflow(of) => format!("workflow {} run {}", of.repository, of.run_id),
        }
    }
}

impl<S: Sync> FromRequestParts<S> for Caller {
    type Rejection = AppError;

    async fn from_request_parts(parts: &mut Parts, _: &S) -> Result<Self, AppError> {
        parts.extensions.get::<Self>().cloned().ok_or_else(|| AppError::internal("a route without its guard"))
    }
}

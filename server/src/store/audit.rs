//! What privileged callers did: written in the transaction of the act, never changed.

use std::net::IpAddr;

use jiff::Timestamp;
use plimsoll_domain::ids::ProjectSlug;
use serde::Serialize;
use serde_json::Value;

use super::time::from_db;
use super::{Executor, Result, corrupt};

/// One act. [`Caller::entry`](crate::access::Caller::entry) starts one for the sender of a request.
#[derive(Debug, Clone, PartialEq, Serialize, utoipa::ToSchema)]
pub struct Entry {
    /// `token NAME`, `github LOGIN`, `console` or `server`.
    pub actor: String,
    /// `token.create`, `policy.set`, …
    pub action: String,
    #[schema(value_type = Option<String>)]
    pub project: Option<ProjectSlug>,
    /// What it was done to.
    pub subject: Option<String>,
    /// An object; no secrets.
    #[schema(value_type = Object)]
    pub detail: Value,
    #[schema(value_type = Option<String>)]
    pub address: Option<IpAddr>,
    pub request_id: Option<String>,
}

impl Entry {
    pub fn new(actor: impl Into<String>, action: impl Into<String>) -> Self {
        Self {
            actor: actor.into(),
            action: action.into(),
            project: None,
            subject: None,
            detail: Value::Object(serde_json::Map::new()),
            address: None,
            request_id: None,
        }
    }

    #[must_use]
    pub fn project(self, project: Option<&ProjectSlug>) -> Self {
        Self { project: project.cloned(), ..self }
    }

    #[must_use]
    pub fn subject(self, subject: impl Into<String>) -> Self {
        Self { subject: Some(subject.into()), ..self }
    }

    #[must_use]
    pub fn detail(self, detail: Value) -> Self {
        Self { detail, ..self }
    }
}

/// An entry as it is read.
#[derive(Debug, Clone, PartialEq, Serialize, utoipa::ToSchema)]
pub struct Recorded {
    pub id: i64,
    #[schema(value_type = String)]
    pub at: Timestamp,
    #[serde(flatten)]
    pub entry: Entry,
}

pub async fn write(executor: impl Executor<'_>, entry: &Entry) -> Result<()> {
    sqlx::query!(
        "insert into audit (actor, action, project, subject, detail, address, request_id)
         values ($1, $2, $3, $4, $5, $6, $7)",
        entry.actor,
        entry.action,
        entry.project.as_ref().map(ProjectSlug::as_str),
        entry.subject,
        entry.detail,
        entry.address.map(|address| address.to_string()),
        entry.request_id,
    )
    .execute(executor)
    .await?;
    Ok(())
}

/// The newest first: of one project, or all; only those before the entry `before`.
pub async fn list(
    executor: impl Executor<'_>,
    project: Option<&ProjectSlug>,
    before: Option<i64>,
    limit: u32,
) -> Result<Vec<Recorded>> {
    let found = sqlx::query!(
        "select id, at, actor, action, project, subject, detail, address, request_id from audit
         where ($1::text is null or project = $1) and ($2::bigint is null or id < $2)
         order by id desc limit $3",
        project.map(ProjectSlug::as_str),
        before,
        i64::from(limit),
    )
    .fetch_all(executor)
    .await?;
    let recorded = found.into_iter().map(|row| {
        let project = row.project.map(|slug| slug.parse()).transpose();
        let entry = Entry {
            actor: row.actor,
            action: row.action,
            project: project.map_err(|e| corrupt("project")(format!("{e}")))?,
            subject: row.subject,
            detail: row.detail,
            address: row.address.and_then(|address| address.parse().ok()),
            request_id: row.request_id,
        };
        Ok(Recorded { id: row.id, at: from_db(row.at), entry })
    });
    recorded.collect()
}

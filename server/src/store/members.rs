//! People who sign in by GitHub, and what they may do.

use jiff::Timestamp;
use plimsoll_domain::ids::ProjectSlug;
use serde::Serialize;

use super::time::from_db;
use super::tokens::grant;
use super::{Executor, Result};
use crate::access::{Grant, Scope};

/// One row: a scope for a project, or for all.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Member {
    /// Lower case.
    pub login: String,
    pub scope: Scope,
    pub project: Option<ProjectSlug>,
    pub created_at: Timestamp,
    pub created_by: String,
}

/// More rows than this are not listed.
const MAX_LISTED: i64 = 10_000;

/// Adds a row, or sets the scope of the one for the same project. True when it was new.
pub async fn put(executor: impl Executor<'_>, login: &str, grant: &Grant, by: &str) -> Result<bool> {
    let new = sqlx::query_scalar!(
        r#"insert into members (login, scope, project, created_by) values (lower($1), $2, $3, $4)
           on conflict (login, coalesce(project, '')) do update set scope = excluded.scope
           returning xmax = 0 as "new!""#,
        login,
        grant.scope.name(),
        grant.project.as_ref().map(ProjectSlug::as_str),
        by,
    );
    Ok(new.fetch_one(executor).await?)
}

/// Removes the row for this project (none: the one for the whole server); false when there is no such row.
pub async fn remove(executor: impl Executor<'_>, login: &str, project: Option<&ProjectSlug>) -> Result<bool> {
    let done = sqlx::query!(
        "delete from members where login = lower($1) and project is not distinct from $2",
        login,
        project.map(ProjectSlug::as_str),
    );
    Ok(done.execute(executor).await?.rows_affected() > 0)
}

/// What a person may do; nothing when they are no member.
pub async fn grants(executor: impl Executor<'_>, login: &str) -> Result<Vec<Grant>> {
    let found = sqlx::query!("select scope, project from members where login = lower($1)", login);
    let found = found.fetch_all(executor).await?;
    found.into_iter().map(|row| grant(&row.scope, row.project.as_deref())).collect()
}

/// By login; of one project, or all.
pub async fn list(executor: impl Executor<'_>, project: Option<&ProjectSlug>) -> Result<Vec<Member>> {
    let found = sqlx::query!(
        "select login, scope, project, created_at, created_by from members
         where $1::text is null or project = $1 order by login, project limit $2",
        project.map(ProjectSlug::as_str),
        MAX_LISTED,
    )
    .fetch_all(executor)
    .await?;
    let members = found.into_iter().map(|row| {
        let Grant { scope, project } = grant(&row.scope, row.project.as_deref())?;
        let created_at = from_db(row.created_at);
        Ok(Member { login: row.login, scope, project, created_at, created_by: row.created_by })
    });
    members.collect()
}

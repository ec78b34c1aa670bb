//! Tokens, by their SHA-256: the token itself is never stored.

use plimsoll_domain::ids::ProjectSlug;
use uuid::Uuid;

use super::{Executor, Result, corrupt};
use crate::access::Grant;

/// A token that works.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct InUse {
    pub id: Uuid,
    pub name: String,
    pub grant: Grant,
}

/// Stores the hash of an administrator's token under `name`; an earlier token of that name stops to work.
pub async fn put_admin(executor: impl Executor<'_>, name: &str, sha256: &[u8; 32]) -> Result<()> {
    sqlx::query!(
        "insert into access_tokens (name, sha256, scope, created_by) values ($1, $2, 'admin', 'server')
         on conflict (name) where revoked_at is null
             do update set sha256 = excluded.sha256, created_at = now(), scope = 'admin', project = null,
                 expires_at = null
             where access_tokens.sha256 <> excluded.sha256",
        name,
        &sha256[..],
    )
    .execute(executor)
    .await?;
    Ok(())
}

/// The token with this hash, unless it has expired or was revoked. The index finds it by the hash of what was sent:
/// how long that takes tells nothing about a token.
pub async fn in_use(executor: impl Executor<'_>, sha256: &[u8; 32]) -> Result<Option<InUse>> {
    let row = sqlx::query!(
        "select id, name, scope, project from access_tokens
         where sha256 = $1 and revoked_at is null and (expires_at is null or expires_at > now())",
        &sha256[..],
    )
    .fetch_optional(executor)
    .await?;
    row.map(|row| {
        let grant = grant(&row.scope, row.project.as_deref())?;
        Ok(InUse { id: row.id, name: row.name, grant })
    })
    .transpose()
}

pub(super) fn grant(scope: &str, project: Option<&str>) -> Result<Grant> {
    let project: Option<ProjectSlug> =
        project.map(str::parse).transpose().map_err(|e| corrupt("project")(format!("{e}")))?;
    Ok(Grant { scope: scope.parse().map_err(corrupt("scope"))?, project })
}

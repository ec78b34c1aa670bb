//! Tokens, by their SHA-256: the token itself is never stored.

use super::{Executor, Result};

/// What a stored token is for.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Known {
    pub sha256: Vec<u8>,
    /// Sets policies, beside uploading.
    pub admin: bool,
}

/// No server has more tokens than this.
const MAX_TOKENS: i64 = 1_000;

/// Stores the hash of an administrator's token under `name`; an earlier token of that name stops to work.
pub async fn put_admin(executor: impl Executor<'_>, name: &str, sha256: &[u8; 32]) -> Result<()> {
    sqlx::query!(
        "insert into tokens (name, sha256, scope) values ($1, $2, 'admin')
         on conflict (name) do update set sha256 = excluded.sha256, created_at = now()
         where tokens.sha256 <> excluded.sha256",
        name,
        &sha256[..],
    )
    .execute(executor)
    .await?;
    Ok(())
}

/// All tokens.
pub async fn all(executor: impl Executor<'_>) -> Result<Vec<Known>> {
    let rows = sqlx::query_as!(Known, r#"select sha256, scope = 'admin' as "admin!" from tokens limit $1"#, MAX_TOKENS);
    Ok(rows.fetch_all(executor).await?)
}

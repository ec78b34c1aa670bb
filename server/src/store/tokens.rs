//! Tokens, by their SHA-256: the token itself is never stored.

use super::{Executor, Result};

/// No server has more tokens than this.
const MAX_TOKENS: i64 = 1_000;

/// Stores the hash under `name`; an earlier token of that name stops to work.
pub async fn put(executor: impl Executor<'_>, name: &str, sha256: &[u8; 32]) -> Result<()> {
    sqlx::query!(
        "insert into tokens (name, sha256, scope) values ($1, $2, 'upload')
         on conflict (name) do update set sha256 = excluded.sha256, created_at = now()
         where tokens.sha256 <> excluded.sha256",
        name,
        &sha256[..],
    )
    .execute(executor)
    .await?;
    Ok(())
}

/// The hashes of all tokens that may upload.
pub async fn upload_hashes(executor: impl Executor<'_>) -> Result<Vec<Vec<u8>>> {
    let rows = sqlx::query_scalar!("select sha256 from tokens where scope = 'upload' limit $1", MAX_TOKENS);
    Ok(rows.fetch_all(executor).await?)
}

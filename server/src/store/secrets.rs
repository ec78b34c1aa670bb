//! Secrets that all servers on one database share.

use secrecy::SecretBox;

use super::{Pool, Result, corrupt};

pub type Secret = SecretBox<[u8; 32]>;

/// The secret of this name; `fresh` becomes it where there is none yet.
pub async fn shared(pool: &Pool, name: &str, fresh: &[u8; 32]) -> Result<Secret> {
    sqlx::query!(
        "insert into server_secrets (name, secret) values ($1, $2) on conflict (name) do nothing",
        name,
        &fresh[..],
    )
    .execute(pool)
    .await?;
    let stored = sqlx::query_scalar!("select secret from server_secrets where name = $1", name).fetch_one(pool).await?;
    let stored = <[u8; 32]>::try_from(stored).map_err(|_| corrupt("secret")(format!("{name} is not of 32 bytes")))?;
    Ok(SecretBox::new(Box::new(stored)))
}

//! Browsers that are signed in, by the SHA-256 of their cookie. What a session may do is looked up each time: it ends
//! with the token it was begun with, and changes with the member's rows.

use std::time::Duration;

use uuid::Uuid;

use super::{Executor, Result, members, tokens};
use crate::access::Grant;

/// How somebody signed in.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum SignedIn {
    /// By the token with this id.
    Token(Uuid),
    /// By GitHub, with this login.
    Member(String),
}

/// Who a session belongs to.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Owner {
    Token(tokens::InUse),
    Member { login: String, grants: Vec<Grant> },
}

/// Sessions of one token or member at a time; a further one ends the oldest.
const MAX_PER_OWNER: i64 = 20;

pub async fn insert(executor: impl Executor<'_>, sha256: &[u8; 32], by: &SignedIn, lasts: Duration) -> Result<()> {
    let (token, login) = match by {
        SignedIn::Token(id) => (Some(*id), None),
        SignedIn::Member(login) => (None, Some(login.to_lowercase())),
    };
    sqlx::query!(
        "with ended as (
             delete from sessions where sha256 in
                 (select sha256 from sessions
                  where token is not distinct from $2 and login is not distinct from $3
                  order by created_at desc, sha256 offset $5))
         insert into sessions (sha256, token, login, expires_at)
         values ($1, $2, $3, now() + make_interval(secs => $4))",
        &sha256[..],
        token,
        login,
        lasts.as_secs_f64(),
        MAX_PER_OWNER - 1,
    )
    .execute(executor)
    .await?;
    Ok(())
}

/// Whose session this is, unless it has ended, or its token has.
pub async fn owner(pool: &super::Pool, sha256: &[u8; 32]) -> Result<Option<Owner>> {
    let found =
        sqlx::query!("select token, login from sessions where sha256 = $1 and expires_at > now()", &sha256[..],);
    let Some(row) = found.fetch_optional(pool).await? else { return Ok(None) };
    Ok(match (row.token, row.login) {
        (Some(token), _) => tokens::in_use_by_id(pool, token).await?.map(Owner::Token),
        (None, Some(login)) => {
            let grants = members::grants(pool, &login).await?;
            Some(Owner::Member { login, grants })
        }
        (None, None) => None,
    })
}

pub async fn delete(executor: impl Executor<'_>, sha256: &[u8; 32]) -> Result<()> {
    sqlx::query!("delete from sessions where sha256 = $1", &sha256[..]).execute(executor).await?;
    Ok(())
}

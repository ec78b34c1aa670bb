//! Tokens, by their SHA-256: the token itself is never stored.

use std::time::Duration;

use jiff::Timestamp;
use plimsoll_domain::ids::ProjectSlug;
use serde::Serialize;
use sqlx::types::chrono::{DateTime, Utc};
use uuid::Uuid;

use super::time::from_db;
use super::{Executor, Result, StoreError, corrupt};
use crate::access::{Grant, Scope};

/// A token that works.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct InUse {
    pub id: Uuid,
    pub name: String,
    pub grant: Grant,
    /// Its last use was noted a minute ago or longer.
    pub unnoted: bool,
}

/// What is shown of a token.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, utoipa::ToSchema)]
pub struct Token {
    pub id: Uuid,
    pub name: String,
    pub scope: Scope,
    /// None: all projects.
    #[schema(value_type = Option<String>)]
    pub project: Option<ProjectSlug>,
    pub state: State,
    #[schema(value_type = String)]
    pub created_at: Timestamp,
    pub created_by: String,
    #[schema(value_type = Option<String>)]
    pub expires_at: Option<Timestamp>,
    #[schema(value_type = Option<String>)]
    pub revoked_at: Option<Timestamp>,
    /// To the minute.
    #[schema(value_type = Option<String>)]
    pub last_used_at: Option<Timestamp>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, utoipa::ToSchema)]
#[serde(rename_all = "snake_case")]
pub enum State {
    InUse,
    Expired,
    Revoked,
}

/// A token to be made.
#[derive(Debug, Clone)]
pub struct New<'a> {
    pub name: &'a str,
    pub grant: &'a Grant,
    pub created_by: &'a str,
    /// None: it does not expire.
    pub lasts: Option<Duration>,
}

/// More are not listed.
const MAX_LISTED: i64 = 10_000;

/// Stores the hash of an administrator's token under `name`; an earlier token of that name stops to work. A token that is
/// there already, revoked or under another name, stays as it is.
pub async fn put_admin(executor: impl Executor<'_>, name: &str, sha256: &[u8; 32]) -> Result<()> {
    sqlx::query!(
        "insert into access_tokens (name, sha256, scope, created_by) select $1, $2, 'admin', 'server'
         where not exists (select from access_tokens where sha256 = $2 and (revoked_at is not null or name <> $1))
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
    let row = sqlx::query_as!(
        Row,
        r#"select id, name, scope, project,
               coalesce(last_used_at < now() - interval '1 minute', true) as "unnoted!"
           from access_tokens
           where sha256 = $1 and revoked_at is null and (expires_at is null or expires_at > now())"#,
        &sha256[..],
    );
    row.fetch_optional(executor).await?.map(InUse::try_from).transpose()
}

/// The same by id, for sessions that were begun with it.
pub async fn in_use_by_id(executor: impl Executor<'_>, id: Uuid) -> Result<Option<InUse>> {
    let row = sqlx::query_as!(
        Row,
        r#"select id, name, scope, project,
               coalesce(last_used_at < now() - interval '1 minute', true) as "unnoted!"
           from access_tokens
           where id = $1 and revoked_at is null and (expires_at is null or expires_at > now())"#,
        id,
    );
    row.fetch_optional(executor).await?.map(InUse::try_from).transpose()
}

/// Notes that a token is used, once a minute whoever asks.
pub async fn note_use(executor: impl Executor<'_>, id: Uuid) -> Result<()> {
    sqlx::query!(
        "update access_tokens set last_used_at = now()
         where id = $1 and coalesce(last_used_at < now() - interval '1 minute', true)",
        id,
    )
    .execute(executor)
    .await?;
    Ok(())
}

/// Stores a new token, unless another in use has its name.
pub async fn insert(executor: impl Executor<'_>, sha256: &[u8; 32], token: &New<'_>) -> Result<Option<Token>> {
    let row = sqlx::query_as!(
        Stored,
        r#"insert into access_tokens (name, sha256, scope, project, created_by, expires_at)
           values ($1, $2, $3, $4, $5, now() + make_interval(secs => $6))
           on conflict (name) where revoked_at is null do nothing
           returning id, name, scope, project, created_at, created_by, expires_at, revoked_at, last_used_at,
               coalesce(expires_at <= now(), false) as "expired!""#,
        token.name,
        &sha256[..],
        token.grant.scope.name(),
        token.grant.project.as_ref().map(ProjectSlug::as_str),
        token.created_by,
        token.lasts.map(|lasts| lasts.as_secs_f64()),
    );
    row.fetch_optional(executor).await?.map(Token::try_from).transpose()
}

/// All tokens of one project, or of all and of the whole server; those in use first, then the newest.
pub async fn list(executor: impl Executor<'_>, project: Option<&ProjectSlug>) -> Result<Vec<Token>> {
    let rows = sqlx::query_as!(
        Stored,
        r#"select id, name, scope, project, created_at, created_by, expires_at, revoked_at, last_used_at,
               coalesce(expires_at <= now(), false) as "expired!"
           from access_tokens where $1::text is null or project = $1
           order by revoked_at desc nulls first, created_at desc, id limit $2"#,
        project.map(ProjectSlug::as_str),
        MAX_LISTED,
    );
    rows.fetch_all(executor).await?.into_iter().map(Token::try_from).collect()
}

pub async fn get(executor: impl Executor<'_>, id: Uuid) -> Result<Option<Token>> {
    let row = sqlx::query_as!(
        Stored,
        r#"select id, name, scope, project, created_at, created_by, expires_at, revoked_at, last_used_at,
               coalesce(expires_at <= now(), false) as "expired!"
           from access_tokens where id = $1"#,
        id,
    );
    row.fetch_optional(executor).await?.map(Token::try_from).transpose()
}

/// The one that is not revoked and has this name.
pub async fn by_name(executor: impl Executor<'_>, name: &str) -> Result<Option<Token>> {
    let row = sqlx::query_as!(
        Stored,
        r#"select id, name, scope, project, created_at, created_by, expires_at, revoked_at, last_used_at,
               coalesce(expires_at <= now(), false) as "expired!"
           from access_tokens where name = $1 and revoked_at is null"#,
        name,
    );
    row.fetch_optional(executor).await?.map(Token::try_from).transpose()
}

/// Ends a token, and the sessions that were begun with it. False when it had been revoked before.
pub async fn revoke(executor: impl Executor<'_>, id: Uuid) -> Result<bool> {
    let done = sqlx::query!(
        "with ended as (delete from sessions where token = $1)
         update access_tokens set revoked_at = now() where id = $1 and revoked_at is null",
        id,
    );
    Ok(done.execute(executor).await?.rows_affected() > 0)
}

/// How many there are that are not revoked.
pub async fn count(executor: impl Executor<'_>) -> Result<i64> {
    let count = sqlx::query_scalar!(r#"select count(*) as "count!" from access_tokens where revoked_at is null"#);
    Ok(count.fetch_one(executor).await?)
}

struct Row {
    id: Uuid,
    name: String,
    scope: String,
    project: Option<String>,
    unnoted: bool,
}

impl TryFrom<Row> for InUse {
    type Error = StoreError;
    fn try_from(row: Row) -> Result<Self> {
        let grant = grant(&row.scope, row.project.as_deref())?;
        Ok(Self { id: row.id, name: row.name, grant, unnoted: row.unnoted })
    }
}

struct Stored {
    id: Uuid,
    name: String,
    scope: String,
    project: Option<String>,
    created_at: DateTime<Utc>,
    created_by: String,
    expires_at: Option<DateTime<Utc>>,
    revoked_at: Option<DateTime<Utc>>,
    last_used_at: Option<DateTime<Utc>>,
    expired: bool,
}

impl TryFrom<Stored> for Token {
    type Error = StoreError;
    fn try_from(row: Stored) -> Result<Self> {
        let Grant { scope, project } = grant(&row.scope, row.project.as_deref())?;
        let state = match (row.revoked_at, row.expired) {
            (Some(_), _) => State::Revoked,
            (None, true) => State::Expired,
            (None, false) => State::InUse,
        };
        Ok(Self {
            id: row.id,
            name: row.name,
            scope,
            project,
            state,
            created_at: from_db(row.created_at),
            created_by: row.created_by,
            expires_at: row.expires_at.map(from_db),
            revoked_at: row.revoked_at.map(from_db),
            last_used_at: row.last_used_at.map(from_db),
        })
    }
}

pub(super) fn grant(scope: &str, project: Option<&str>) -> Result<Grant> {
    let project: Option<ProjectSlug> =
        project.map(str::parse).transpose().map_err(|e| corrupt("project")(format!("{e}")))?;
    Ok(Grant { scope: scope.parse().map_err(corrupt("scope"))?, project })
}

//! What an administrator does to tokens, members and projects, from the command line, the API or the pages: each act
//! with its line in the audit log, in one transaction.

use std::time::Duration;

use axum::http::StatusCode;
use plimsoll_domain::ids::ProjectSlug;
use secrecy::SecretString;
use serde_json::json;

use super::caller::Grant;
use super::token::{hash, new_token};
use crate::error::AppError;
use crate::store::audit::{self, Entry};
use crate::store::projects::{self, Visibility};
use crate::store::tokens::{self, Token};
use crate::store::{self, Pool, StoreError, members};

/// A token to be made.
#[derive(Debug, Clone)]
pub struct NewToken {
    /// Unique among the tokens that are not revoked.
    pub name: String,
    pub grant: Grant,
    /// None: it does not expire.
    pub lasts: Option<Duration>,
}

/// Why an act was not done.
#[derive(Debug, thiserror::Error)]
pub enum ActError {
    #[error("a token named {0:?} is in use: revoke it first, or choose another name")]
    NameTaken(String),
    #[error("the name {0:?} does not fit: 1 to {MAX_NAME} letters, digits, spaces, or any of . _ - @ / :")]
    BadName(String),
    #[error("the name {0:?} is kept for the servers' own tokens: choose one that does not begin with \"server \"")]
    Reserved(String),
    #[error("a token lasts at least a minute and at most ten years")]
    BadTime,
    #[error("there are {MAX_TOKENS} tokens: revoke some first")]
    TooMany,
    #[error("the login {0:?} does not fit: 1 to 39 letters, digits or '-'")]
    BadLogin(String),
    #[error("no random numbers: {0}")]
    Random(getrandom::Error),
    #[error(transparent)]
    Store(#[from] StoreError),
}

const MAX_NAME: usize = 64;
/// Not revoked ones.
const MAX_TOKENS: i64 = 5_000;
const SHORTEST: Duration = Duration::from_secs(60);
const LONGEST: Duration = Duration::from_secs(10 * 366 * 24 * 60 * 60);

/// Makes a token. It is returned once, and never again. `by` is the start of the audit log's entry; a project that is
/// new is created with this visibility.
pub async fn create_token(
    pool: &Pool,
    by: Entry,
    new: &NewToken,
    visibility: Visibility,
) -> Result<(SecretString, Token), ActError> {
    check_name(&new.name)?;
    if new.lasts.is_some_and(|lasts| !(SHORTEST..=LONGEST).contains(&lasts)) {
        return Err(ActError::BadTime);
    }
    let secret = new_token().map_err(ActError::Random)?;
    let project = new.grant.project.as_ref();
    let mut transaction = store::begin(pool).await?;
    if tokens::count(&mut *transaction).await? >= MAX_TOKENS {
        return Err(ActError::TooMany);
    }
    if let Some(project) = project {
        projects::ensure(&mut *transaction, project, visibility).await?;
    }
    let row = tokens::New { name: &new.name, grant: &new.grant, created_by: &by.actor, lasts: new.lasts };
    let token = tokens::insert(&mut *transaction, &hash(&secret), &row).await?;
    let token = token.ok_or_else(|| ActError::NameTaken(new.name.clone()))?;
    let detail = json!({ "id": token.id, "scope": token.scope, "expires_at": token.expires_at });
    let entry = by.project(project).subject(&new.name).detail(detail);
    audit::write(&mut *transaction, &Entry { action: "token.create".to_owned(), ..entry }).await?;
    store::commit(transaction).await?;
    Ok((SecretString::from(secret), token))
}

/// Revokes a token, and ends the sessions that were begun with it. False when it was revoked before.
pub async fn revoke_token(pool: &Pool, by: Entry, token: &Token) -> Result<bool, ActError> {
    let mut transaction = store::begin(pool).await?;
    if !tokens::revoke(&mut *transaction, token.id).await? {
        return Ok(false);
    }
    let entry = by.project(token.project.as_ref()).subject(&token.name).detail(json!({ "id": token.id }));
    audit::write(&mut *transaction, &Entry { action: "token.revoke".to_owned(), ..entry }).await?;
    store::commit(transaction).await?;
    Ok(true)
}

/// Sets what a person who signs in by GitHub may do in a project, or in all. True when they had nothing there before.
pub async fn put_member(
    pool: &Pool,
    by: Entry,
    login: &str,
    grant: &Grant,
    visibility: Visibility,
) -> Result<bool, ActError> {
    check_login(login)?;
    let project = grant.project.as_ref();
    let mut transaction = store::begin(pool).await?;
    if let Some(project) = project {
        projects::ensure(&mut *transaction, project, visibility).await?;
    }
    let new = members::put(&mut *transaction, login, grant, &by.actor).await?;
    let entry = by.project(project).subject(login.to_lowercase()).detail(json!({ "scope": grant.scope }));
    audit::write(&mut *transaction, &Entry { action: "member.set".to_owned(), ..entry }).await?;
    store::commit(transaction).await?;
    Ok(new)
}

/// Takes it away; false when there was nothing.
pub async fn remove_member(
    pool: &Pool,
    by: Entry,
    login: &str,
    project: Option<&ProjectSlug>,
) -> Result<bool, ActError> {
    check_login(login)?;
    let mut transaction = store::begin(pool).await?;
    if !members::remove(&mut *transaction, login, project).await? {
        return Ok(false);
    }
    let entry = by.project(project).subject(login.to_lowercase());
    audit::write(&mut *transaction, &Entry { action: "member.remove".to_owned(), ..entry }).await?;
    store::commit(transaction).await?;
    Ok(true)
}

/// Sets who may read a project; a new one is created.
pub async fn set_visibility(
    pool: &Pool,
    by: Entry,
    project: &ProjectSlug,
    visibility: Visibility,
) -> Result<(), ActError> {
    let mut transaction = store::begin(pool).await?;
    projects::ensure(&mut *transaction, project, visibility).await?;
    projects::set_visibility(&mut *transaction, project, visibility).await?;
    let entry = by.project(Some(project)).detail(json!({ "visibility": visibility }));
    audit::write(&mut *transaction, &Entry { action: "project.visibility".to_owned(), ..entry }).await?;
    Ok(store::commit(transaction).await?)
}

impl From<ActError> for AppError {
    fn from(error: ActError) -> Self {
        match error {
            ActError::NameTaken(_) | ActError::TooMany => Self::new(StatusCode::CONFLICT, error.to_string()),
            ActError::BadName(_) | ActError::Reserved(_) | ActError::BadTime | ActError::BadLogin(_) => {
                Self::new(StatusCode::UNPROCESSABLE_ENTITY, error.to_string())
            }
            ActError::Random(_) => Self::internal(error),
            ActError::Store(error) => error.into(),
        }
    }
}

fn check_name(name: &str) -> Result<(), ActError> {
    let fits = |c: char| c.is_alphanumeric() || " ._-@/:".contains(c);
    let bad = || ActError::BadName(name.chars().take(MAX_NAME).collect());
    if name.trim() != name || name.is_empty() || name.chars().count() > MAX_NAME || !name.chars().all(fits) {
        return Err(bad());
    }
    if name.starts_with("server ") { Err(ActError::Reserved(name.to_owned())) } else { Ok(()) }
}

fn check_login(login: &str) -> Result<(), ActError> {
    let fits = |c: char| c.is_ascii_alphanumeric() || c == '-';
    if (1..=39).contains(&login.len()) && login.chars().all(fits) {
        return Ok(());
    }
    Err(ActError::BadLogin(login.chars().take(39).collect()))
}

//! Tokens, for whoever administers a project or the server. An administrator of one project sees and makes only tokens
//! for it; those of others look as if they did not exist.

use std::time::Duration;

use axum::Json;
use axum::extract::rejection::{JsonRejection, QueryRejection};
use axum::extract::{Path, Query, State};
use axum::http::StatusCode;
use plimsoll_domain::ids::ProjectSlug;
use secrecy::ExposeSecret as _;
use serde::{Deserialize, Serialize};
use uuid::Uuid;

use super::read::asked;
use crate::access::acts::{self, NewToken};
use crate::access::{Caller, Grant, Scope};
use crate::error::{AppError, Result};
use crate::state::AppState;
use crate::store::tokens::{self, Token};

/// Which tokens.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct Of {
    project: Option<ProjectSlug>,
}

/// A token to be made.
#[derive(Debug, Deserialize, utoipa::ToSchema)]
#[serde(deny_unknown_fields, expecting = "an object with name and scope")]
#[schema(as = WantedToken)]
pub(super) struct Wanted {
    /// What it is for; unique among the tokens in use.
    name: String,
    scope: Scope,
    /// The one project for which it works; none: all of them.
    #[schema(value_type = Option<String>)]
    project: Option<ProjectSlug>,
    /// None: it does not expire.
    expires_in_s: Option<u64>,
}

/// A new token.
#[derive(Serialize, utoipa::ToSchema)]
#[schema(as = MadeToken)]
pub(super) struct Made {
    /// The token itself, shown this once.
    token: String,
    #[serde(flatten)]
    facts: Token,
}

/// Those that the caller administers, ended ones too.
#[utoipa::path(get, path = "/api/v1/tokens", params(("project" = Option<String>, Query)),
    responses((status = 200, body = [Token])))]
pub(super) async fn list(
    State(state): State<AppState>,
    caller: Caller,
    query: Result<Query<Of>, QueryRejection>,
) -> Result<Json<Vec<Token>>> {
    let Of { project } = asked(query)?;
    let mut found = tokens::list(state.pool(), project.as_ref()).await?;
    found.retain(|token| administers(&caller, token.project.as_ref()));
    Ok(Json(found))
}

/// Makes a token, for a project or for all.
#[utoipa::path(post, path = "/api/v1/tokens", request_body = Wanted, responses((status = 201, body = Made)))]
pub(super) async fn create(
    State(state): State<AppState>,
    caller: Caller,
    wanted: Result<Json<Wanted>, JsonRejection>,
) -> Result<(StatusCode, Json<Made>)> {
    let Json(wanted) = wanted.map_err(|rejection| AppError::new(rejection.status(), rejection.body_text()))?;
    let Wanted { name, scope, project, expires_in_s } = wanted;
    match &project {
        Some(project) => caller.require(Scope::Admin, project)?,
        None => caller.require_everywhere(Scope::Admin)?,
    }
    let new = NewToken { name, grant: Grant { scope, project }, lasts: expires_in_s.map(Duration::from_secs) };
    let by = caller.entry("token.create");
    let (secret, facts) = acts::create_token(state.pool(), by, &new, state.new_projects()).await?;
    Ok((StatusCode::CREATED, Json(Made { token: secret.expose_secret().to_owned(), facts })))
}

/// Ends a token, and the sessions that were begun with it.
#[utoipa::path(delete, path = "/api/v1/tokens/{id}", params(("id" = Uuid, Path)), responses((status = 204)))]
pub(super) async fn revoke(
    State(state): State<AppState>,
    caller: Caller,
    Path(id): Path<String>,
) -> Result<StatusCode> {
    let none = || AppError::not_found("token with this id that is in use");
    let id: Uuid = id.parse().map_err(|_| none())?;
    let token = tokens::get(state.pool(), id).await?;
    let token = token.filter(|token| administers(&caller, token.project.as_ref())).ok_or_else(none)?;
    match acts::revoke_token(state.pool(), caller.entry("token.revoke"), &token).await? {
        true => Ok(StatusCode::NO_CONTENT),
        false => Err(none()),
    }
}

fn administers(caller: &Caller, project: Option<&ProjectSlug>) -> bool {
    match project {
        Some(project) => caller.may(Scope::Admin, project),
        None => caller.may_everywhere(Scope::Admin),
    }
}

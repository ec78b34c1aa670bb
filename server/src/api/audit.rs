//! Who did what that only an administrator may do.

use axum::Json;
use axum::extract::rejection::QueryRejection;
use axum::extract::{Query, State};
use plimsoll_domain::ids::ProjectSlug;
use serde::Deserialize;

use super::read::asked;
use crate::access::{Caller, Scope};
use crate::error::Result;
use crate::state::AppState;
use crate::store::audit::{self, Recorded};

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct Of {
    project: Option<ProjectSlug>,
    before: Option<i64>,
    limit: Option<u32>,
}

/// Rows when nothing is said, and at most.
const LIMIT: u32 = 100;
const MAX_LIMIT: u32 = 1_000;

/// The newest first; `before` is the id of the last entry of the page before. Without a project it needs an
/// administrator of the whole server.
#[utoipa::path(get, path = "/api/v1/audit",
    params(("project" = Option<String>, Query), ("before" = Option<i64>, Query), ("limit" = Option<u32>, Query)),
    responses((status = 200, body = [Recorded])))]
pub(super) async fn list(
    State(state): State<AppState>,
    caller: Caller,
    query: Result<Query<Of>, QueryRejection>,
) -> Result<Json<Vec<Recorded>>> {
    let Of { project, before, limit } = asked(query)?;
    match &project {
        Some(project) => caller.require(Scope::Admin, project)?,
        None => caller.require_everywhere(Scope::Admin)?,
    }
    let limit = limit.unwrap_or(LIMIT).clamp(1, MAX_LIMIT);
    Ok(Json(audit::list(state.pool(), project.as_ref(), before, limit).await?))
}

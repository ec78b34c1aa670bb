//! Who may read a project.

use axum::Json;
use axum::extract::rejection::JsonRejection;
use axum::extract::{Path, State};
use serde::{Deserialize, Serialize};

use super::read::slug;
use crate::access::{Caller, acts};
use crate::error::{AppError, Result};
use crate::state::AppState;
use crate::store::projects::{self, Visibility};

#[derive(Debug, Serialize, Deserialize, utoipa::ToSchema)]
#[serde(deny_unknown_fields, expecting = "an object with visibility")]
#[schema(as = ProjectVisibility)]
pub(super) struct Document {
    visibility: Visibility,
}

/// Whether everybody may read the project, or only who has a token or is a member.
#[utoipa::path(get, path = "/api/v1/projects/{project}/visibility", params(("project" = String, Path)),
    responses((status = 200, body = Document)))]
pub(super) async fn get(State(state): State<AppState>, Path(project): Path<String>) -> Result<Json<Document>> {
    let project = slug(&project)?;
    let public = projects::is_public(state.pool(), &project).await?;
    let public = public.ok_or_else(|| AppError::not_found(format!("project {project}")))?;
    Ok(Json(Document { visibility: if public { Visibility::Public } else { Visibility::Private } }))
}

/// Sets it, from the next request on; a new project is created.
#[utoipa::path(put, path = "/api/v1/projects/{project}/visibility", params(("project" = String, Path)),
    request_body = Document, responses((status = 200, body = Document)))]
pub(super) async fn put(
    State(state): State<AppState>,
    caller: Caller,
    Path(project): Path<String>,
    wanted: Result<Json<Document>, JsonRejection>,
) -> Result<Json<Document>> {
    let project = slug(&project)?;
    let Json(wanted) = wanted.map_err(|rejection| AppError::new(rejection.status(), rejection.body_text()))?;
    acts::set_visibility(state.pool(), caller.entry("project.visibility"), &project, wanted.visibility).await?;
    Ok(Json(wanted))
}

//! The repository that a project is measured from.

use axum::Json;
use axum::extract::rejection::JsonRejection;
use axum::extract::{Path, State};
use axum::http::StatusCode;
use plimsoll_domain::ids::ProjectSlug;
use serde::Serialize;

use super::read::slug;
use crate::access::Caller;
use crate::error::{AppError, Result};
use crate::state::AppState;
use crate::tasks::links::{self, Wanted};

/// How it is linked, and how it goes.
#[derive(Debug, Serialize, utoipa::ToSchema)]
#[schema(as = LinkedProject)]
pub(super) struct Document {
    #[serde(flatten)]
    link: Wanted,
    /// The App reaches the repository.
    reachable: bool,
    created_by: String,
    /// The newest commit of the default branch whose plan and policy were read.
    #[serde(skip_serializing_if = "Option::is_none")]
    read_commit: Option<String>,
    /// What was wrong with them; the policy from before holds.
    #[serde(skip_serializing_if = "Option::is_none")]
    read_error: Option<String>,
}

/// The repository that the project is measured from.
#[utoipa::path(get, path = "/api/v1/projects/{project}/github", params(("project" = String, Path)),
    responses((status = 200, body = Document)))]
pub(super) async fn get(State(state): State<AppState>, Path(project): Path<String>) -> Result<Json<Document>> {
    found(&state, &slug(&project)?).await
}

/// Links the project, or changes how it is linked; a new project is created. The GitHub App must be installed on the
/// repository. Another repository than before needs the scope `admin` for the whole server.
#[utoipa::path(put, path = "/api/v1/projects/{project}/github", params(("project" = String, Path)),
    request_body = Wanted, responses((status = 200, body = Document)))]
pub(super) async fn put(
    State(state): State<AppState>,
    Path(project): Path<String>,
    caller: Caller,
    wanted: Result<Json<Wanted>, JsonRejection>,
) -> Result<Json<Document>> {
    let project = slug(&project)?;
    let Json(wanted) = wanted.map_err(|rejection| AppError::new(rejection.status(), rejection.body_text()))?;
    links::set(&state, &caller, &project, &wanted).await?;
    found(&state, &project).await
}

/// Nothing in the repository starts a run any more; what was measured stays.
#[utoipa::path(delete, path = "/api/v1/projects/{project}/github", params(("project" = String, Path)),
    responses((status = 204)))]
pub(super) async fn remove(
    State(state): State<AppState>,
    Path(project): Path<String>,
    caller: Caller,
) -> Result<StatusCode> {
    let project = slug(&project)?;
    let removed = links::remove(state.pool(), caller.entry(""), &project).await?;
    if removed { Ok(StatusCode::NO_CONTENT) } else { Err(none(&project)) }
}

async fn found(state: &AppState, project: &ProjectSlug) -> Result<Json<Document>> {
    let (link, repository) = links::get(state.pool(), project).await?.ok_or_else(|| none(project))?;
    Ok(Json(Document {
        reachable: repository.reachable,
        created_by: link.created_by.clone(),
        read_commit: link.read_commit.as_ref().map(ToString::to_string),
        read_error: link.read_error.clone(),
        link: Wanted::of(link, &repository),
    }))
}

fn none(project: &ProjectSlug) -> AppError {
    AppError::not_found(format!("repository that project {project} is measured from"))
}

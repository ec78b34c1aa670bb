//! A project's policy.

use axum::Json;
use axum::extract::rejection::JsonRejection;
use axum::extract::{Path, State};
use plimsoll_domain::policy::Policy;

use super::read::slug;
use crate::access::Caller;
use crate::error::{AppError, Result};
use crate::state::AppState;
use crate::{store, tasks};

/// The thresholds by which a project is judged.
#[utoipa::path(get, path = "/api/v1/projects/{project}/policy", params(("project" = String, Path, description = "The project's name")), responses((status = 200, body = Policy)))]
pub(super) async fn get(State(state): State<AppState>, Path(project): Path<String>) -> Result<Json<Policy>> {
    let project = slug(&project)?;
    let found = store::projects::get(state.pool(), &project).await?;
    Ok(Json(found.ok_or_else(|| AppError::not_found(format!("project {project}")))?.policy))
}

/// Sets it, for verdicts from now on; a new project is created. Stored verdicts keep the policy they were made by. Who
/// uploads must not move the line by which the upload is judged: the route needs an administrator.
#[utoipa::path(put, path = "/api/v1/projects/{project}/policy", params(("project" = String, Path, description = "The project's name")), request_body = Policy, responses((status = 200, body = Policy)))]
pub(super) async fn put(
    caller: Caller,
    State(state): State<AppState>,
    Path(project): Path<String>,
    policy: Result<Json<Policy>, JsonRejection>,
) -> Result<Json<Policy>> {
    let project = slug(&project)?;
    let Json(policy) = policy.map_err(|rejection| AppError::new(rejection.status(), rejection.body_text()))?;
    tasks::policy::set(&state, &caller, &project, &policy).await?;
    Ok(Json(policy))
}

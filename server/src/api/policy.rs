//! A project's policy.

use axum::Json;
use axum::extract::rejection::JsonRejection;
use axum::extract::{Path, State};
use axum::http::StatusCode;
use plimsoll_domain::policy::Policy;

use super::read::slug;
use crate::access::Caller;
use crate::error::{AppError, Result};
use crate::state::AppState;
use crate::store;

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
    check(&policy)?;
    let entry = caller.entry("policy.set").project(Some(&project)).detail(serde_json::json!({ "policy": policy }));
    let mut transaction = store::begin(state.pool()).await?;
    store::projects::ensure(&mut *transaction, &project, state.new_projects()).await?;
    store::projects::set_policy(&mut *transaction, &project, &policy).await?;
    store::audit::write(&mut *transaction, &entry).await?;
    store::commit(transaction).await?;
    Ok(Json(policy))
}

/// A change is a fraction: of the capacity and of the error rate at most all of it.
fn check(policy: &Policy) -> Result<()> {
    let fits = [
        ("p99_increase", policy.p99_increase, 100.0),
        ("capacity_decrease", policy.capacity_decrease, 1.0),
        ("error_rate_points", policy.error_rate_points, 1.0),
    ];
    match fits.into_iter().find(|(_, value, most)| !(*value >= 0.0 && value <= most)) {
        None => Ok(()),
        Some((name, value, most)) => {
            let detail = format!("{name}: {value} is not a fraction from 0 to {most}");
            Err(AppError::new(StatusCode::UNPROCESSABLE_ENTITY, detail))
        }
    }
}

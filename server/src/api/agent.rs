//! What runners ask and tell. A runner's token reaches the jobs of its own projects only.

use axum::Json;
use axum::extract::rejection::JsonRejection;
use axum::extract::{Path, State};
use axum::http::StatusCode;
use axum::response::{IntoResponse, Response};
use plimsoll_domain::job::{Assignment, Claim, Ended, Heartbeat, HeartbeatAnswer, Reach};

use super::read::run_id;
use super::runs::body;
use crate::access::{Caller, Scope};
use crate::error::Result;
use crate::state::AppState;
use crate::tasks::jobs;

/// Waits for a job; 204 when there is none.
#[utoipa::path(post, path = "/api/v1/agent/claim", request_body = Claim, responses((status = 200, body = Assignment), (status = 204, description = "No job in this time")))]
pub(super) async fn claim(
    State(state): State<AppState>,
    caller: Caller,
    claim: Result<Json<Claim>, JsonRejection>,
) -> Result<Response> {
    match jobs::claim(&state, &caller, &body(claim)?).await? {
        Some(assignment) => Ok(Json(assignment).into_response()),
        None => Ok(StatusCode::NO_CONTENT.into_response()),
    }
}

/// The projects whose runs the caller may carry out.
#[utoipa::path(get, path = "/api/v1/agent/reach", responses((status = 200, body = Reach)))]
pub(super) async fn reach(caller: Caller) -> Json<Reach> {
    let projects = caller.grants.iter().filter(|grant| grant.scope >= Scope::Agent);
    let projects = projects.filter_map(|grant| grant.project.clone()).collect();
    Json(Reach { everywhere: caller.may_everywhere(Scope::Agent), projects })
}

/// Renews the lease; 409 when it is another's or over.
#[utoipa::path(post, path = "/api/v1/agent/runs/{run}/heartbeat", params(("run" = String, Path, description = "The run's id", format = Uuid)), request_body = Heartbeat, responses((status = 200, body = HeartbeatAnswer)))]
pub(super) async fn heartbeat(
    State(state): State<AppState>,
    Path(run): Path<String>,
    heartbeat: Result<Json<Heartbeat>, JsonRejection>,
) -> Result<Json<HeartbeatAnswer>> {
    Ok(Json(jobs::heartbeat(&state, run_id(&run)?, &body(heartbeat)?).await?))
}

/// Ends a run without a report.
#[utoipa::path(post, path = "/api/v1/agent/runs/{run}/end", params(("run" = String, Path, description = "The run's id", format = Uuid)), request_body = Ended, responses((status = 204, description = "Ended")))]
pub(super) async fn end(
    State(state): State<AppState>,
    Path(run): Path<String>,
    ended: Result<Json<Ended>, JsonRejection>,
) -> Result<StatusCode> {
    jobs::end(&state, run_id(&run)?, &body(ended)?).await?;
    Ok(StatusCode::NO_CONTENT)
}

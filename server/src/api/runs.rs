//! Runs that somebody asks for.

use axum::Json;
use axum::extract::rejection::{JsonRejection, QueryRejection};
use axum::extract::{Path, Query, State};
use axum::http::StatusCode;
use plimsoll_domain::ids::{ProjectSlug, RunId};
use plimsoll_domain::job::{self, Run, RunRequest};
use serde::Deserialize;

use super::read::{asked, run_id};
use crate::access::{Caller, Scope, Told as _, on_run};
use crate::error::{AppError, Result};
use crate::state::AppState;
use crate::store;
use crate::store::jobs::Filter;
use crate::store::runners::Runner;
use crate::tasks::jobs;

/// Rows of a list when nothing is said, and at most.
const LIMIT: u32 = 50;
const MAX_LIMIT: u32 = 500;
const MAX_RUNNERS: u32 = 1_000;

#[derive(Debug, Deserialize, utoipa::IntoParams)]
#[into_params(parameter_in = Query)]
#[serde(deny_unknown_fields)]
pub(super) struct RunsQuery {
    #[param(value_type = Option<String>)]
    project: Option<ProjectSlug>,
    state: Option<job::State>,
    limit: Option<u32>,
    /// The last run of the page before.
    #[param(value_type = Option<String>, format = Uuid)]
    before: Option<RunId>,
}

#[derive(Debug, Deserialize, utoipa::ToSchema)]
#[serde(deny_unknown_fields, expecting = "an object with reason")]
pub(super) struct Cancel {
    /// In a sentence, for people.
    reason: String,
}

/// Asks for a run. Asking again for the same under the same run id is no harm.
#[utoipa::path(post, path = "/api/v1/runs", request_body = RunRequest, responses((status = 201, description = "Queued", body = Run), (status = 200, description = "Asked for before", body = Run)))]
pub(super) async fn create(
    State(state): State<AppState>,
    caller: Caller,
    request: Result<Json<RunRequest>, JsonRejection>,
) -> Result<(StatusCode, Json<Run>)> {
    let (run, created) = jobs::create(&state, &caller, body(request)?).await?;
    Ok((if created { StatusCode::CREATED } else { StatusCode::OK }, Json(run)))
}

/// The newest first; `before` names the last run of the page before.
#[utoipa::path(get, path = "/api/v1/runs", params(RunsQuery), responses((status = 200, body = Vec<Run>)))]
pub(super) async fn list(
    State(state): State<AppState>,
    caller: Caller,
    query: Result<Query<RunsQuery>, QueryRejection>,
) -> Result<Json<Vec<Run>>> {
    let RunsQuery { project, state: wanted, limit, before } = asked(query)?;
    let limit = limit.unwrap_or(LIMIT).clamp(1, MAX_LIMIT);
    if let Some(before) = before {
        on_run(&state, &caller, Scope::Read, before).await?;
    }
    let filter = Filter { project: project.as_ref(), state: wanted, before, limit };
    let runs = store::jobs::list_readable(state.pool(), filter, &caller.readable()).await?;
    Ok(Json(runs.into_iter().map(|run| told(run, &caller)).collect()))
}

/// How a run goes that was asked for.
#[utoipa::path(get, path = "/api/v1/runs/{run}", params(("run" = String, Path, description = "The run's id", format = Uuid)), responses((status = 200, body = Run)))]
pub(super) async fn get(State(state): State<AppState>, caller: Caller, Path(run): Path<String>) -> Result<Json<Run>> {
    let run_id = run_id(&run)?;
    let run = store::jobs::get(state.pool(), run_id).await?.ok_or_else(|| jobs::no_job(run_id))?;
    Ok(Json(told(run, &caller)))
}

/// Cancels a run: at once while no runner has it, else as soon as its runner is heard.
#[utoipa::path(post, path = "/api/v1/runs/{run}/cancel", params(("run" = String, Path, description = "The run's id", format = Uuid)), request_body = Cancel, responses((status = 200, body = Run)))]
pub(super) async fn cancel(
    State(state): State<AppState>,
    caller: Caller,
    Path(run): Path<String>,
    cancel: Result<Json<Cancel>, JsonRejection>,
) -> Result<Json<Run>> {
    let Cancel { reason } = body(cancel)?;
    Ok(Json(jobs::cancel(&state, &caller, run_id(&run)?, &reason).await?))
}

/// The runners of the projects that the caller's own grants reach: hosts are nobody else's business, though the
/// project be public.
#[utoipa::path(get, path = "/api/v1/runners", responses((status = 200, body = Vec<Runner>)))]
pub(super) async fn runners(State(state): State<AppState>, caller: Caller) -> Result<Json<Vec<Runner>>> {
    let mut runners = store::runners::list(state.pool(), MAX_RUNNERS).await?;
    if !caller.may_everywhere(Scope::Read) {
        for runner in &mut runners {
            runner.projects.retain(|project| caller.may(Scope::Read, project));
            // It may be one of another project.
            runner.run = None;
        }
        runners.retain(|runner| !runner.projects.is_empty());
    }
    Ok(Json(runners))
}

fn told(run: Run, caller: &Caller) -> Run {
    let project = run.project.clone();
    run.to(caller, &project)
}

pub(super) fn body<T>(json: Result<Json<T>, JsonRejection>) -> Result<T> {
    json.map(|Json(body)| body).map_err(|rejection| AppError::new(rejection.status(), rejection.body_text()))
}

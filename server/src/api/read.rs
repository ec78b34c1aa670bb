//! What can be asked for.

use axum::Json;
use axum::extract::rejection::QueryRejection;
use axum::extract::{Path, Query, State};
use axum::http::header;
use axum::response::IntoResponse;
use plimsoll_domain::comparison::Comparison;
use plimsoll_domain::figures::Figures;
use plimsoll_domain::ids::{Digest, ProjectSlug, RunId};
use plimsoll_domain::policy::Policy;
use plimsoll_domain::report::Report;
use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};

use crate::access::{Caller, Scope, on_run};
use crate::error::{AppError, Result};
use crate::state::AppState;
use crate::store::projects::Overview;
use crate::store::snapshots::{Filter, PinnedLoad, Series, SnapshotRow};
use crate::store::{self, reports};
use crate::tasks::{pack, verdict};

/// Rows of a history when nothing is said, and at most.
const LIMIT: u32 = 100;
const MAX_LIMIT: u32 = 1_000;

#[derive(Debug, Serialize, utoipa::ToSchema)]
pub(super) struct ProjectDocument {
    slug: ProjectSlug,
    policy: Policy,
    series: Vec<Series>,
}

#[derive(Debug, Serialize, utoipa::ToSchema)]
pub(super) struct SnapshotDocument {
    #[serde(flatten)]
    row: SnapshotRow,
    figures: Figures,
}

#[derive(Debug, Deserialize, utoipa::IntoParams)]
#[into_params(parameter_in = Query)]
#[serde(deny_unknown_fields)]
pub(super) struct HistoryQuery {
    /// A fingerprint or a label.
    testbed: Option<String>,
    /// A plan's digest.
    #[param(value_type = Option<String>)]
    plan: Option<Digest>,
    /// 1 to 1,000; 100 when nothing is said.
    limit: Option<u32>,
    /// The last run of the page before.
    #[param(value_type = Option<String>, format = Uuid)]
    before: Option<RunId>,
}

#[derive(Debug, Deserialize, utoipa::IntoParams)]
#[into_params(parameter_in = Query)]
#[serde(deny_unknown_fields)]
pub(super) struct PinnedQuery {
    /// The plan's digest.
    #[param(value_type = String)]
    plan: Digest,
    /// The testbed's fingerprint.
    #[param(value_type = String)]
    testbed: Digest,
}

#[derive(Debug, Deserialize, utoipa::IntoParams)]
#[into_params(parameter_in = Query)]
#[serde(deny_unknown_fields)]
pub(super) struct ComparisonQuery {
    #[param(value_type = String, format = Uuid)]
    baseline: RunId,
    #[param(value_type = String, format = Uuid)]
    candidate: RunId,
}

/// All projects that the caller may read, with their newest snapshot.
#[utoipa::path(get, path = "/api/v1/projects", responses((status = 200, body = Vec<Overview>)))]
pub(super) async fn projects(State(state): State<AppState>, caller: Caller) -> Result<Json<Vec<Overview>>> {
    Ok(Json(store::projects::list(state.pool(), &caller.readable()).await?))
}

/// A project, its policy and what lines its history has.
#[utoipa::path(get, path = "/api/v1/projects/{project}", params(("project" = String, Path, description = "The project's name")), responses((status = 200, body = ProjectDocument)))]
pub(super) async fn project(
    State(state): State<AppState>,
    Path(project): Path<String>,
) -> Result<Json<ProjectDocument>> {
    let slug = slug(&project)?;
    let found = store::projects::get(state.pool(), &slug).await?.ok_or_else(|| no_project(&slug))?;
    let series = store::snapshots::series(state.pool(), &slug).await?;
    Ok(Json(ProjectDocument { slug, policy: found.policy, series }))
}

/// The newest first; `before` names the last run of the page before.
#[utoipa::path(get, path = "/api/v1/projects/{project}/snapshots", params(("project" = String, Path, description = "The project's name"), HistoryQuery), responses((status = 200, body = Vec<SnapshotRow>)))]
pub(super) async fn history(
    State(state): State<AppState>,
    Path(project): Path<String>,
    query: Result<Query<HistoryQuery>, QueryRejection>,
) -> Result<Json<Vec<SnapshotRow>>> {
    let slug = slug(&project)?;
    let HistoryQuery { testbed, plan, limit, before } = asked(query)?;
    let limit = limit.unwrap_or(LIMIT).clamp(1, MAX_LIMIT);
    let part = Filter { testbed: testbed.as_deref(), plan: plan.as_ref(), before, limit };
    let rows = store::snapshots::history(state.pool(), &slug, part).await?;
    if rows.is_empty() && store::projects::get(state.pool(), &slug).await?.is_none() {
        return Err(no_project(&slug));
    }
    Ok(Json(rows))
}

/// The load at which the stability phase runs; 404 while nothing pins it.
#[utoipa::path(get, path = "/api/v1/projects/{project}/pinned-load", params(("project" = String, Path, description = "The project's name"), PinnedQuery), responses((status = 200, body = PinnedLoad)))]
pub(super) async fn pinned_load(
    State(state): State<AppState>,
    Path(project): Path<String>,
    query: Result<Query<PinnedQuery>, QueryRejection>,
) -> Result<Json<PinnedLoad>> {
    let slug = slug(&project)?;
    let PinnedQuery { plan, testbed } = asked(query)?;
    let found = store::snapshots::pinned_load(state.pool(), &slug, &plan, &testbed).await?;
    let none = || AppError::not_found(format!("accepted snapshot of {slug} with this plan on this testbed yet"));
    Ok(Json(found.ok_or_else(none)?))
}

/// A snapshot with its figures.
#[utoipa::path(get, path = "/api/v1/snapshots/{run}", params(("run" = String, Path, description = "The run's id", format = Uuid)), responses((status = 200, body = SnapshotDocument)))]
pub(super) async fn snapshot(State(state): State<AppState>, Path(run): Path<String>) -> Result<Json<SnapshotDocument>> {
    let run_id = run_id(&run)?;
    let row = store::snapshots::get(state.pool(), run_id).await?.ok_or_else(|| no_run(run_id))?;
    let figures = store::snapshots::figures(state.pool(), run_id).await?.ok_or_else(|| no_run(run_id))?;
    Ok(Json(SnapshotDocument { row, figures }))
}

/// The report as stored.
#[utoipa::path(get, path = "/api/v1/snapshots/{run}/report", params(("run" = String, Path, description = "The run's id", format = Uuid)), responses((status = 200, body = Report)))]
pub(super) async fn report(State(state): State<AppState>, Path(run): Path<String>) -> Result<impl IntoResponse> {
    let run_id = run_id(&run)?;
    let _turn = state.turn_to_read().await?;
    let packed = reports::get(state.pool(), run_id).await?.ok_or_else(|| no_run(run_id))?;
    let json = state.compute(move || pack::json(&packed)).await??;
    Ok(([(header::CONTENT_TYPE, "application/json")], json))
}

/// The comparison by which the snapshot was judged when it arrived.
#[utoipa::path(get, path = "/api/v1/snapshots/{run}/comparison", params(("run" = String, Path, description = "The run's id", format = Uuid)), responses((status = 200, body = Comparison)))]
pub(super) async fn stored_comparison(
    State(state): State<AppState>,
    Path(run): Path<String>,
) -> Result<Json<Comparison>> {
    let run_id = run_id(&run)?;
    Ok(Json(store::verdicts::get(state.pool(), run_id).await?.ok_or_else(|| no_run(run_id))?))
}

/// Any two snapshots, compared now.
#[utoipa::path(get, path = "/api/v1/comparisons", params(ComparisonQuery), responses((status = 200, body = Comparison)))]
pub(super) async fn comparison(
    State(state): State<AppState>,
    caller: Caller,
    query: Result<Query<ComparisonQuery>, QueryRejection>,
) -> Result<Json<Comparison>> {
    let ComparisonQuery { baseline, candidate } = asked(query)?;
    for run in [baseline, candidate] {
        on_run(&state, &caller, Scope::Read, run).await?;
    }
    Ok(Json(verdict::compare(&state, baseline, candidate).await?))
}

pub(super) fn slug(text: &str) -> Result<ProjectSlug> {
    text.parse().map_err(|e| AppError::bad_request(format!("{e}")))
}

pub(super) fn run_id(text: &str) -> Result<RunId> {
    text.parse().map_err(|e| AppError::bad_request(format!("{e}")))
}

pub(super) fn asked<T: DeserializeOwned>(query: Result<Query<T>, QueryRejection>) -> Result<T> {
    query.map(|Query(asked)| asked).map_err(|rejection| AppError::bad_request(rejection.body_text()))
}

fn no_project(slug: &ProjectSlug) -> AppError {
    AppError::not_found(format!("project {slug}"))
}

fn no_run(run_id: RunId) -> AppError {
    AppError::not_found(format!("run {run_id}"))
}

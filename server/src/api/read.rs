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

#[derive(Debug, Serialize)]
pub(super) struct ProjectDocument {
    slug: ProjectSlug,
    policy: Policy,
    series: Vec<Series>,
}

#[derive(Debug, Serialize)]
pub(super) struct SnapshotDocument {
    #[serde(flatten)]
    row: SnapshotRow,
    figures: Figures,
}

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct HistoryQuery {
    testbed: Option<String>,
    plan: Option<Digest>,
    limit: Option<u32>,
    before: Option<RunId>,
}

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct PinnedQuery {
    plan: Digest,
    testbed: Digest,
}

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct ComparisonQuery {
    baseline: RunId,
    candidate: RunId,
}

pub(super) async fn projects(State(state): State<AppState>, caller: Caller) -> Result<Json<Vec<Overview>>> {
    let mut projects = store::projects::list(state.pool()).await?;
    projects.retain(|project| project.public || caller.may(Scope::Read, &project.slug));
    Ok(Json(projects))
}

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

pub(super) async fn snapshot(State(state): State<AppState>, Path(run): Path<String>) -> Result<Json<SnapshotDocument>> {
    let run_id = run_id(&run)?;
    let row = store::snapshots::get(state.pool(), run_id).await?.ok_or_else(|| no_run(run_id))?;
    let figures = store::snapshots::figures(state.pool(), run_id).await?.ok_or_else(|| no_run(run_id))?;
    Ok(Json(SnapshotDocument { row, figures }))
}

/// The report as stored.
pub(super) async fn report(State(state): State<AppState>, Path(run): Path<String>) -> Result<impl IntoResponse> {
    let run_id = run_id(&run)?;
    let packed = reports::get(state.pool(), run_id).await?.ok_or_else(|| no_run(run_id))?;
    let json = state.compute(move || pack::json(&packed)).await??;
    Ok(([(header::CONTENT_TYPE, "application/json")], json))
}

/// The comparison by which the snapshot was judged when it arrived.
pub(super) async fn stored_comparison(
    State(state): State<AppState>,
    Path(run): Path<String>,
) -> Result<Json<Comparison>> {
    let run_id = run_id(&run)?;
    Ok(Json(store::verdicts::get(state.pool(), run_id).await?.ok_or_else(|| no_run(run_id))?))
}

/// Any two snapshots, compared now.
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

fn run_id(text: &str) -> Result<RunId> {
    text.parse().map_err(|e| AppError::bad_request(format!("{e}")))
}

fn asked<T: DeserializeOwned>(query: Result<Query<T>, QueryRejection>) -> Result<T> {
    query.map(|Query(asked)| asked).map_err(|rejection| AppError::bad_request(rejection.body_text()))
}

fn no_project(slug: &ProjectSlug) -> AppError {
    AppError::not_found(format!("project {slug}"))
}

fn no_run(run_id: RunId) -> AppError {
    AppError::not_found(format!("run {run_id}"))
}

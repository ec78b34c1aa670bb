//! Where a project's events are sent.

use axum::Json;
use axum::extract::rejection::JsonRejection;
use axum::extract::{Path, State};
use axum::http::StatusCode;
use serde::{Deserialize, Serialize};
use serde_json::json;
use uuid::Uuid;

use super::read::slug;
use crate::access::{Caller, random};
use crate::error::{AppError, Result};
use crate::state::AppState;
use crate::store::webhooks::{MAX_PER_PROJECT, New, Webhook};
use crate::store::{self, StoreError};

#[derive(Debug, Deserialize, utoipa::ToSchema)]
#[serde(deny_unknown_fields)]
#[schema(as = NewWebhook)]
pub(super) struct Wanted {
    /// Starts with `http://` or `https://` and leads to a public address.
    #[schema(example = "https://example.com/hooks/plimsoll")]
    url: String,
}

#[derive(Debug, Serialize, utoipa::ToSchema)]
#[schema(as = MadeWebhook)]
pub(super) struct Made {
    id: Uuid,
    url: String,
    /// Signs what is sent. Shown this once.
    secret: String,
}

/// The project's webhooks, without their secrets.
#[utoipa::path(get, path = "/api/v1/projects/{project}/webhooks", params(("project" = String, Path)),
    responses((status = 200, body = Vec<Webhook>)))]
pub(super) async fn list(State(state): State<AppState>, Path(project): Path<String>) -> Result<Json<Vec<Webhook>>> {
    Ok(Json(store::webhooks::list(state.pool(), &slug(&project)?).await?))
}

/// Events from now on go there; a new project is created.
#[utoipa::path(post, path = "/api/v1/projects/{project}/webhooks", params(("project" = String, Path)),
    request_body = Wanted, responses((status = 201, body = Made)))]
pub(super) async fn create(
    State(state): State<AppState>,
    Path(project): Path<String>,
    caller: Caller,
    wanted: Result<Json<Wanted>, JsonRejection>,
) -> Result<(StatusCode, Json<Made>)> {
    let project = slug(&project)?;
    let Json(wanted) = wanted.map_err(|rejection| AppError::new(rejection.status(), rejection.body_text()))?;
    let unfit = |why: String| AppError::new(StatusCode::UNPROCESSABLE_ENTITY, format!("url: {why}"));
    let target = state.outgoing().target(&wanted.url).map_err(|refused| unfit(refused.to_string()))?;
    let secret = random().map_err(AppError::internal)?;

    let mut transaction = state.pool().begin().await.map_err(StoreError::from)?;
    store::projects::ensure(&mut *transaction, &project, state.new_projects()).await?;
    let new = New { project: &project, url: target.as_str(), secret: &secret, created_by: &caller.name() };
    let Some(id) = store::webhooks::create(&mut *transaction, &new).await? else {
        let detail = format!("project {project} has {MAX_PER_PROJECT} webhooks, as many as it may; remove one");
        return Err(AppError::new(StatusCode::CONFLICT, detail));
    };
    let entry = caller.entry("webhook.create").project(Some(&project)).subject(id.to_string());
    store::audit::write(&mut *transaction, &entry.detail(json!({ "to": target.origin() }))).await?;
    transaction.commit().await.map_err(StoreError::from)?;
    Ok((StatusCode::CREATED, Json(Made { id, url: target.as_str().to_owned(), secret })))
}

/// What was on its way there is not sent any more.
#[utoipa::path(delete, path = "/api/v1/projects/{project}/webhooks/{id}",
    params(("project" = String, Path), ("id" = Uuid, Path)), responses((status = 204)))]
pub(super) async fn remove(
    State(state): State<AppState>,
    Path((project, id)): Path<(String, String)>,
    caller: Caller,
) -> Result<StatusCode> {
    let project = slug(&project)?;
    let none = || AppError::not_found(format!("webhook {id:.80} of project {project}"));
    let id: Uuid = id.parse().map_err(|_| none())?;
    let mut transaction = state.pool().begin().await.map_err(StoreError::from)?;
    let Some(url) = store::webhooks::remove(&mut *transaction, &project, id).await? else { return Err(none()) };
    let to = state.outgoing().target(&url).map(|target| target.origin()).unwrap_or_default();
    let entry = caller.entry("webhook.remove").project(Some(&project)).subject(id.to_string());
    store::audit::write(&mut *transaction, &entry.detail(json!({ "to": to }))).await?;
    transaction.commit().await.map_err(StoreError::from)?;
    Ok(StatusCode::NO_CONTENT)
}

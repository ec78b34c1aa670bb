//! Where a project's events are sent.

use axum::Json;
use axum::extract::rejection::JsonRejection;
use axum::extract::{Path, State};
use axum::http::StatusCode;
use serde::{Deserialize, Serialize};
use uuid::Uuid;

use super::read::slug;
use crate::access::Caller;
use crate::error::{AppError, Result};
use crate::state::AppState;
use crate::store;
use crate::store::webhooks::Webhook;
use crate::tasks::webhooks;

#[derive(Debug, Deserialize, utoipa::ToSchema)]
#[serde(deny_unknown_fields, expecting = "an object with url")]
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
    let webhooks::Made { id, url, secret } = webhooks::create(&state, &caller, &project, &wanted.url).await?;
    Ok((StatusCode::CREATED, Json(Made { id, url, secret })))
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
    if webhooks::remove(&state, &caller, &project, id).await? { Ok(StatusCode::NO_CONTENT) } else { Err(none()) }
}

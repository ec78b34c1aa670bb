//! Webhooks as administrators add and remove them, by the API or the pages: each act with its line in the audit log.

use plimsoll_domain::ids::ProjectSlug;
use serde_json::json;
use uuid::Uuid;

use super::{Error, Result};
use crate::access::{Caller, random};
use crate::state::AppState;
use crate::store;
use crate::store::webhooks::{MAX_PER_PROJECT, New};

/// A webhook that was made just now.
#[derive(Debug)]
pub struct Made {
    pub id: Uuid,
    pub url: String,
    /// Signs what is sent; not shown again.
    pub secret: String,
}

/// Events from now on go there; a new project is created.
pub async fn create(state: &AppState, caller: &Caller, project: &ProjectSlug, url: &str) -> Result<Made> {
    let unfit = |why: String| Error::Unfit(format!("url: {why}"));
    let target = state.outgoing().target(url).map_err(|refused| unfit(refused.to_string()))?;
    let secret = random().map_err(Error::internal)?;
    let mut transaction = store::begin(state.pool()).await?;
    store::projects::ensure(&mut *transaction, project, state.new_projects()).await?;
    let new = New { project, url: target.as_str(), secret: &secret, created_by: &caller.name() };
    let Some(id) = store::webhooks::create(&mut *transaction, &new).await? else {
        let detail = format!("project {project} has {MAX_PER_PROJECT} webhooks, as many as it may; remove one");
        return Err(Error::Conflict(detail));
    };
    let entry = caller.entry("webhook.create").project(Some(project)).subject(id.to_string());
    store::audit::write(&mut *transaction, &entry.detail(json!({ "to": target.origin() }))).await?;
    store::commit(transaction).await?;
    Ok(Made { id, url: target.as_str().to_owned(), secret })
}

/// What was on its way there is not sent any more. False when there is no such webhook.
pub async fn remove(state: &AppState, caller: &Caller, project: &ProjectSlug, id: Uuid) -> Result<bool> {
    let mut transaction = store::begin(state.pool()).await?;
    let Some(url) = store::webhooks::remove(&mut *transaction, project, id).await? else { return Ok(false) };
    let to = state.outgoing().target(&url).map(|target| target.origin()).unwrap_or_default();
    let entry = caller.entry("webhook.remove").project(Some(project)).subject(id.to_string());
    store::audit::write(&mut *transaction, &entry.detail(json!({ "to": to }))).await?;
    store::commit(transaction).await?;
    Ok(true)
}

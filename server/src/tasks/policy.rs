//! A project's thresholds as administrators set them, by the API or the pages, with a line in the audit log.

use plimsoll_domain::ids::ProjectSlug;
use plimsoll_domain::policy::Policy;
use serde_json::json;

use super::{Error, Result};
use crate::access::Caller;
use crate::state::AppState;
use crate::store;

/// For verdicts from now on; a new project is created. Stored verdicts keep the policy they were made by.
pub async fn set(state: &AppState, caller: &Caller, project: &ProjectSlug, policy: &Policy) -> Result<()> {
    policy.check().map_err(|wrong| Error::Unfit(wrong.to_string()))?;
    let entry = caller.entry("policy.set").project(Some(project)).detail(json!({ "policy": policy }));
    let mut transaction = store::begin(state.pool()).await?;
    store::projects::ensure(&mut *transaction, project, state.new_projects()).await?;
    store::projects::set_policy(&mut *transaction, project, policy).await?;
    store::audit::write(&mut *transaction, &entry).await?;
    Ok(store::commit(transaction).await?)
}

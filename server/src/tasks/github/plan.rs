//! A project's plan and policy, as its repository's default branch has them: never those of the change that is judged.

use std::path::Path;

use plimsoll_domain::ids::{CommitSha, ProjectSlug};
use plimsoll_domain::plan_file::source::PlanError;
use plimsoll_domain::plan_file::{self, Gate};
use serde_json::json;

use super::start::BY_ITSELF;
use crate::github::{Client, Error as GitHubError, Place};
use crate::state::AppState;
use crate::store::audit::{self, Entry};
use crate::store::github::links::{self, Link};
use crate::store::github::repositories::{self, Repository, Seen};
use crate::store::{self, projects};
use crate::tasks::Result;
use crate::tasks::links as linking;

/// Of what is remembered about a broken plan.
const MAX_ERROR: usize = 1_000;

/// Reads the plan at `head`, the newest commit of the default branch, and sets the project's policy by it. A plan without
/// a `[gate]` leaves the policy as it is, and so does one that is broken, which is remembered.
pub async fn refresh(state: &AppState, link: &Link, head: &CommitSha) -> Result<()> {
    if link.read_commit.as_ref() == Some(head) {
        return Ok(());
    }
    let Some(client) = state.app() else { return Ok(()) };
    let Some(repository) = repositories::get(state.pool(), link.repository).await? else { return Ok(()) };
    let read = match at(client, &repository, &link.plan, head).await? {
        Ok(Some(gate)) => Ok(gate),
        Ok(None) => Err(format!("there is no {} in {}", link.plan, repository.default_branch)),
        Err(why) => Err(why),
    };
    let mut transaction = store::begin(state.pool()).await?;
    links::read(&mut *transaction, &link.project, head, read.as_ref().err().map(String::as_str)).await?;
    if let Err(why) = &read {
        tracing::warn!(project = %link.project, %head, why, "the plan could not be read: the policy from before holds");
    }
    if let Some(policy) = read.ok().and_then(|gate| gate.policy) {
        let former = projects::get(&mut *transaction, &link.project).await?;
        if former.is_some_and(|project| project.policy != policy) {
            projects::set_policy(&mut *transaction, &link.project, &policy).await?;
            let entry = Entry::new(BY_ITSELF, "policy.set").project(Some(&link.project));
            let entry = entry.subject(&repository.full_name).detail(json!({ "policy": policy, "commit": head }));
            audit::write(&mut *transaction, &entry).await?;
        }
    }
    Ok(store::commit(transaction).await?)
}

/// Reads them now, if GitHub can be asked: for a project that was linked just now.
pub(in crate::tasks) async fn refresh_now(state: &AppState, project: &ProjectSlug) -> Result<()> {
    let Some(client) = state.app() else { return Ok(()) };
    let Some((link, repository)) = linking::get(state.pool(), project).await? else { return Ok(()) };
    match head(state, client, &repository).await? {
        Some(head) => refresh(state, &link, &head).await,
        None => Ok(()),
    }
}

/// Links a repository by itself whose plan names a project that is new here. A name that is taken is left alone: who
/// may link that project can do it.
pub async fn discover(state: &AppState, repository: &Repository) -> Result<()> {
    let Some(client) = state.app() else { return Ok(()) };
    let linked = !links::of_repository(state.pool(), repository.id).await?.is_empty();
    if linked || !repository.reachable {
        return Ok(());
    }
    let Some(head) = head(state, client, repository).await? else { return Ok(()) };
    let name = &repository.full_name;
    let gate = match at(client, repository, plan_file::FILE, &head).await? {
        Ok(Some(gate)) => gate,
        Ok(None) => return Ok(()),
        Err(why) => {
            tracing::warn!(repository = name, why, "its plan could not be read: link it by hand");
            return Ok(());
        }
    };
    let Some(project) = gate.project else {
        tracing::info!(repository = name, "its plan names no project: link it by hand");
        return Ok(());
    };
    match linking::found(state, client, &project, repository).await? {
        true => tracing::info!(repository = name, %project, "linked by its plan"),
        false => {
            tracing::warn!(repository = name, %project, "its plan names a project that is there already: link it by hand");
            return Ok(());
        }
    }
    match links::get(state.pool(), &project).await? {
        Some(link) => refresh(state, &link, &head).await,
        None => Ok(()),
    }
}

/// The newest commit of the default branch. Of a repository that was just heard of, its name may not be known.
async fn head(state: &AppState, client: &Client, repository: &Repository) -> Result<Option<CommitSha>> {
    let place = Place::from(repository);
    let Some(told) = client.at(&place).about().await?.filter(|told| told.id == repository.id) else { return Ok(None) };
    let name = told.default_branch.as_deref().unwrap_or(&repository.default_branch);
    if name != repository.default_branch {
        let seen = Seen {
            id: repository.id,
            installation: repository.installation,
            full_name: &repository.full_name,
            default_branch: Some(name),
            private: told.private,
        };
        repositories::put(state.pool(), seen).await?;
    }
    Ok(client.at(&place).branch(name).await?.map(|branch| branch.head))
}

/// What the plan at a commit says, `None` without one; else what is wrong with it.
async fn at(
    client: &Client,
    repository: &Repository,
    path: &str,
    commit: &CommitSha,
) -> Result<Result<Option<Gate>, String>> {
    let place = Place::from(repository);
    let text = match client.at(&place).file(path, commit.as_str()).await {
        Ok(Some(text)) => text,
        Ok(None) => return Ok(Ok(None)),
        Err(error @ GitHubError::Refused { .. }) => return Ok(Err(kept(&error.to_string()))),
        Err(error) => return Err(error.into()),
    };
    let gate = plan_file::read_gate(Path::new(path), &text).map_err(|error| kept(&told(&error)));
    Ok(gate.and_then(|gate| match gate.policy.as_ref().map_or(Ok(()), |policy| policy.check()) {
        Ok(()) => Ok(Some(gate)),
        Err(wrong) => Err(kept(&format!("{path}: [gate]: {wrong}"))),
    }))
}

fn told(error: &PlanError) -> String {
    match error.advice() {
        Some(advice) => format!("{error}; {advice}"),
        None => error.to_string(),
    }
}

/// As the database keeps it.
fn kept(text: &str) -> String {
    text.chars().map(|c| if c.is_control() { ' ' } else { c }).take(MAX_ERROR).collect()
}

//! Where the App is installed, and which repositories it reaches there.

use crate::github::events::{self, Change, Installation, InstallationAction, Repositories, RepositoryChange};
use crate::state::AppState;
use crate::store;
use crate::store::github::repositories::{self, Repository, Seen};
use crate::tasks::{Error, Result};

use super::{Outcome, plan};

pub(super) async fn installation(state: &AppState, event: &Installation) -> Result<Outcome> {
    let id = event.installation;
    let mut transaction = store::begin(state.pool()).await?;
    let outcome = match event.action {
        InstallationAction::Created | InstallationAction::PermissionsAccepted | InstallationAction::Unsuspended => {
            repositories::install(&mut *transaction, id, &event.account).await?;
            repositories::suspend(&mut *transaction, id, false).await?;
            for repository in &event.repositories {
                repositories::put(&mut *transaction, seen(repository, id)).await?;
            }
            "the App is installed"
        }
        InstallationAction::Suspended => {
            repositories::meet(&mut *transaction, id, &event.account).await?;
            repositories::suspend(&mut *transaction, id, true).await?;
            "the App is suspended"
        }
        InstallationAction::Deleted => {
            repositories::meet(&mut *transaction, id, &event.account).await?;
            repositories::uninstall(&mut *transaction, id).await?;
            "the App is not installed any more"
        }
    };
    store::commit(transaction).await?;
    if event.action == InstallationAction::Created {
        discover(state, &event.repositories).await?;
    }
    Ok(outcome.into())
}

/// Of more repositories than this at once none is looked at by itself.
const MOST_DISCOVERED: usize = 100;

/// Links those whose plan says so.
async fn discover(state: &AppState, new: &[events::Repository]) -> Result<()> {
    if new.len() > MOST_DISCOVERED {
        tracing::warn!(repositories = new.len(), "more than are looked at by themselves: link them by hand");
        return Ok(());
    }
    for one in new {
        if let Some(repository) = repositories::get(state.pool(), one.id).await? {
            match plan::discover(state, &repository).await {
                // Asked again it says the same.
                Err(Error::GitHub(error)) if !error.passes() => {
                    tracing::warn!(%error, repository = repository.full_name, "its plan cannot be read: link it by hand");
                }
                done => done?,
            }
        }
    }
    Ok(())
}

pub(super) async fn reached(state: &AppState, event: &Repositories) -> Result<Outcome> {
    let mut transaction = store::begin(state.pool()).await?;
    repositories::meet(&mut *transaction, event.installation, &event.account).await?;
    for repository in &event.added {
        repositories::put(&mut *transaction, seen(repository, event.installation)).await?;
    }
    for repository in &event.removed {
        repositories::remove(&mut *transaction, repository.id).await?;
    }
    store::commit(transaction).await?;
    discover(state, &event.added).await?;
    Ok(format!("{} repositories more, {} less", event.added.len(), event.removed.len()).into())
}

pub(super) async fn changed(state: &AppState, event: &RepositoryChange) -> Result<Outcome> {
    let RepositoryChange { repository, change } = event;
    if *change == Change::Deleted {
        repositories::remove(state.pool(), repository.id).await?;
        return Ok("the repository is gone".into());
    }
    let Some(installation) = repository.installation else {
        return Ok("the App does not reach this repository".into());
    };
    let mut transaction = store::begin(state.pool()).await?;
    repositories::meet(&mut *transaction, installation, &repository.owner).await?;
    repositories::put(&mut *transaction, seen(repository, installation)).await?;
    store::commit(transaction).await?;
    let outcome = match change {
        Change::Created => "the repository is new",
        Change::Edited => "its default branch is known",
        Change::Renamed => "it has a new name",
        Change::Transferred => "it has another owner",
        Change::Privatized => "it is private now",
        Change::Publicized => "it is public now",
        Change::Deleted => "the repository is gone",
    };
    Ok(outcome.into())
}

/// The repository of an event that is about something in it. One that was not known is from now on: the event that
/// announced it may be late or lost. `None` when the App does not reach it, as far as is known.
pub(super) async fn known(state: &AppState, event: &events::Repository) -> Result<Option<Repository>> {
    let known = repositories::get(state.pool(), event.id).await?;
    let Some(installation) = event.installation else { return Ok(known.filter(|known| known.reachable)) };
    if let Some(known) = known.filter(|known| known.installation == installation) {
        if !known.reachable {
            return Ok(None);
        }
        // Events about installations do not tell it.
        let branch = event.default_branch.as_deref().filter(|branch| *branch != known.default_branch);
        let Some(branch) = branch else { return Ok(Some(known)) };
        let seen = Seen { default_branch: Some(branch), ..of(&known) };
        repositories::put(state.pool(), seen).await?;
        return Ok(repositories::get(state.pool(), event.id).await?);
    }
    let mut transaction = store::begin(state.pool()).await?;
    let is_there = repositories::meet(&mut *transaction, installation, &event.owner).await?;
    if is_there {
        repositories::put(&mut *transaction, seen(event, installation)).await?;
    }
    store::commit(transaction).await?;
    Ok(repositories::get(state.pool(), event.id).await?.filter(|known| known.reachable))
}

fn seen(repository: &events::Repository, installation: i64) -> Seen<'_> {
    Seen {
        id: repository.id,
        installation,
        full_name: &repository.full_name,
        default_branch: repository.default_branch.as_deref(),
        private: repository.private,
    }
}

fn of(known: &Repository) -> Seen<'_> {
    Seen {
        id: known.id,
        installation: known.installation,
        full_name: &known.full_name,
        default_branch: None,
        private: known.private,
    }
}

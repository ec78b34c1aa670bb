//! Installations of the App, and the repositories that they reach.

use serde::Deserialize;

use super::read::json;
use super::wire::{self, Around, User};
use super::{Change, Event, Installation, InstallationAction, Repositories, RepositoryChange, Unreadable};

#[derive(Deserialize)]
struct InstallationPayload {
    action: Option<String>,
    installation: Installed,
    /// Not every action has them.
    repositories: Option<Vec<wire::Repository>>,
}

#[derive(Deserialize)]
struct Installed {
    id: i64,
    account: Option<Account>,
}

/// An enterprise has a slug in the place of a login.
#[derive(Deserialize)]
#[serde(untagged)]
enum Account {
    User(User),
    Enterprise { slug: String },
}

impl Installed {
    fn account(&self) -> String {
        match &self.account {
            Some(Account::User(user)) => user.login.clone(),
            Some(Account::Enterprise { slug }) => slug.clone(),
            None => String::new(),
        }
    }
}

pub(super) fn installation(body: &[u8]) -> Result<Event, Unreadable> {
    let InstallationPayload { action, installation, repositories } = json(body)?;
    let action = match action.as_deref() {
        Some("created") => InstallationAction::Created,
        Some("new_permissions_accepted") => InstallationAction::PermissionsAccepted,
        Some("suspend") => InstallationAction::Suspended,
        Some("unsuspend") => InstallationAction::Unsuspended,
        Some("deleted") => InstallationAction::Deleted,
        _ => return Ok(Event::Ignored("an action on an installation that is not used")),
    };
    let repositories = reached(repositories, installation.id);
    let account = installation.account();
    Ok(Event::Installation(Installation { installation: installation.id, account, action, repositories }))
}

#[derive(Deserialize)]
struct ReachPayload {
    installation: Installed,
    repositories_added: Option<Vec<wire::Repository>>,
    repositories_removed: Option<Vec<wire::Repository>>,
}

pub(super) fn installation_repositories(body: &[u8]) -> Result<Event, Unreadable> {
    let ReachPayload { installation, repositories_added, repositories_removed } = json(body)?;
    Ok(Event::Repositories(Repositories {
        installation: installation.id,
        account: installation.account(),
        added: reached(repositories_added, installation.id),
        removed: reached(repositories_removed, installation.id),
    }))
}

fn reached(repositories: Option<Vec<wire::Repository>>, installation: i64) -> Vec<super::Repository> {
    repositories.unwrap_or_default().into_iter().map(|repository| repository.of(Some(installation))).collect()
}

pub(super) fn repository(body: &[u8]) -> Result<Event, Unreadable> {
    let around: Around = json(body)?;
    let change = match around.action() {
        "created" => Change::Created,
        "edited" => Change::Edited,
        "renamed" => Change::Renamed,
        "transferred" => Change::Transferred,
        "privatized" => Change::Privatized,
        "publicized" => Change::Publicized,
        "deleted" => Change::Deleted,
        _ => return Ok(Event::Ignored("an action on a repository that is not used")),
    };
    Ok(Event::Repository(RepositoryChange { repository: around.into_repository(), change }))
}

//! Pushes to the default branch: the newest commit is measured, as a baseline for what comes.

use plimsoll_domain::ids::CommitSha;

use crate::github::Error;
use crate::github::answers::Files;
use crate::github::events::Push;
use crate::state::AppState;
use crate::store::github::checks::{self, Kind};
use crate::store::github::links::Link;
use crate::store::github::repositories::Repository;
use crate::tasks::Result;

use super::start::{self, BY_ITSELF, Head, StartRequest, Started};
use super::{LOOKS, Outcome, Site, all, filter, plan};

pub(super) async fn handle(state: &AppState, push: &Push) -> Result<Outcome> {
    let site = match Site::of(state, &push.repository).await? {
        Ok(site) => site,
        Err(why) => return Ok(why),
    };
    if push.branch != site.repository.default_branch {
        return Ok("not the default branch".into());
    }
    // Where history was rewritten, what is left out changed too.
    measure(state, &site, Since::Push(push.before.as_ref().filter(|_| !push.forced))).await
}

/// Asks GitHub for the head of the default branch, and measures it if what changed since it was measured last matches.
pub async fn refresh(state: &AppState, repository: &Repository) -> Result<Outcome> {
    match Site::new(state, repository.clone()).await? {
        Ok(site) => measure(state, &site, Since::Measured).await,
        Err(why) => Ok(why),
    }
}

/// From where on changes count.
enum Since<'a> {
    /// The commit before a push; without one everything counts.
    Push(Option<&'a CommitSha>),
    /// Of each project the commit that was measured last.
    Measured,
}

/// Measures the newest commit. Whoever asked for it before another server did, and comes here after that, takes the
/// place of what is newer: so it is asked for again once something was started.
async fn measure(state: &AppState, site: &Site<'_>, since: Since<'_>) -> Result<Outcome> {
    let mut outcome = Outcome::from("the branch is gone");
    let mut seen = None;
    for _ in 0..LOOKS {
        let newest = site.repo().branch(&site.repository.default_branch).await?.map(|branch| branch.head);
        let Some(newest) = newest.filter(|newest| seen.as_ref() != Some(newest)) else { break };
        let mut each = Vec::new();
        let mut is_new = false;
        for link in &site.links {
            plan::refresh(state, link, &newest).await?;
            let measured;
            let before = match since {
                Since::Push(before) => before,
                Since::Measured => {
                    measured = checks::last_of_branch(state.pool(), &link.project, site.repository.id).await?;
                    measured.as_ref()
                }
            };
            if !filter::matches(link, &changed(site, link, before, &newest).await?) {
                each.push((link.project.clone(), "no matching path".into()));
                continue;
            }
            let started = one(state, site, link, &newest).await?;
            is_new |= matches!(started, Started::New { .. });
            each.push((link.project.clone(), started.phrase(&newest)));
        }
        outcome = all(each);
        if !is_new {
            break;
        }
        seen = Some(newest);
    }
    Ok(outcome)
}

/// What changed since `before`. The list of commits in an event may be cut short, so GitHub is asked.
async fn changed(site: &Site<'_>, link: &Link, before: Option<&CommitSha>, newest: &CommitSha) -> Result<Files> {
    let untold = Files { paths: Vec::new(), complete: false };
    let Some(before) = before.filter(|before| *before != newest && !link.paths.is_empty()) else { return Ok(untold) };
    match site.repo().compare(before.as_str(), newest.as_str()).await {
        Ok(compared) => Ok(compared.files),
        Err(Error::Missing | Error::Refused { .. }) => Ok(untold),
        Err(error) => Err(error.into()),
    }
}

async fn one(state: &AppState, site: &Site<'_>, link: &Link, commit: &CommitSha) -> Result<Started> {
    let branch = &site.repository.default_branch;
    let request = StartRequest {
        head: Head {
            link,
            commit,
            kind: Kind::Branch,
            tag: None,
            pull: None,
            into: None,
            key: Some(&format!("branch {branch}")),
            deadline: None,
        },
        branch: Some(branch),
        base: None,
        profile: None,
        plan_commit: None,
        requested_by: BY_ITSELF,
        again: false,
    };
    start::open(state, &request).await
}

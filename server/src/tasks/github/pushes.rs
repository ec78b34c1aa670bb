//! Pushes to the default branch: the newest commit is measured, as a baseline for what comes.

use std::borrow::Cow;

use plimsoll_domain::ids::CommitSha;

use crate::github::Error;
use crate::github::answers::Files;
use crate::github::events::Push;
use crate::state::AppState;
use crate::store::github::checks::{self, Kind};
use crate::store::github::links::Link;
use crate::store::github::repositories::Repository;
use crate::tasks::Result;

use super::start::{self, BY_ITSELF, Head, StartRequest};
use super::{Outcome, Site, all, filter};

pub(super) async fn handle(state: &AppState, push: &Push) -> Result<Outcome> {
    let site = match Site::of(state, &push.repository).await? {
        Ok(site) => site,
        Err(why) => return Ok(why),
    };
    if push.branch != site.repository.default_branch {
        return Ok("not the default branch".into());
    }
    let Some(branch) = site.repo().branch(&push.branch).await? else {
        return Ok("the branch is gone".into());
    };
    // Where history was rewritten, what is left out changed too.
    let before = push.before.as_ref().filter(|_| !push.forced);
    let files = changed(&site, before, &branch.head).await?;
    let mut each = Vec::new();
    for link in &site.links {
        each.push((link.project.clone(), one(state, &site, link, &branch.head, &files).await?));
    }
    Ok(all(each))
}

/// Asks GitHub for the head of the default branch, and measures what was pushed since it was measured last.
pub async fn refresh(state: &AppState, repository: &Repository) -> Result<Outcome> {
    let site = match Site::new(state, repository.clone()).await? {
        Ok(site) => site,
        Err(why) => return Ok(why),
    };
    let Some(branch) = site.repo().branch(&site.repository.default_branch).await? else {
        return Ok("the branch is gone".into());
    };
    let mut each = Vec::new();
    for link in &site.links {
        let last = checks::last_of_branch(state.pool(), &link.project, site.repository.id).await?;
        let files = changed(&site, last.as_ref(), &branch.head).await?;
        each.push((link.project.clone(), one(state, &site, link, &branch.head, &files).await?));
    }
    Ok(all(each))
}

/// What changed since `before`. The list of commits in an event may be cut short, so GitHub is asked.
async fn changed(site: &Site<'_>, before: Option<&CommitSha>, head: &CommitSha) -> Result<Files> {
    let untold = Files { paths: Vec::new(), complete: false };
    let Some(before) = before else { return Ok(untold) };
    if before == head || site.links.iter().all(|link| link.paths.is_empty()) {
        return Ok(untold);
    }
    match site.repo().compare(before.as_str(), head.as_str()).await {
        Ok(compared) => Ok(compared.files),
        Err(Error::Missing | Error::Refused { .. }) => Ok(untold),
        Err(error) => Err(error.into()),
    }
}

async fn one(
    state: &AppState,
    site: &Site<'_>,
    link: &Link,
    head: &CommitSha,
    files: &Files,
) -> Result<Cow<'static, str>> {
    if !filter::matches(link, files) {
        return Ok("no matching path".into());
    }
    let branch = &site.repository.default_branch;
    let request = StartRequest {
        head: Head {
            link,
            commit: head,
            kind: Kind::Branch,
            tag: None,
            pull: None,
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
    Ok(start::open(state, &request).await?.phrase(head))
}

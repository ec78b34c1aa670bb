//! Pull requests: the newest head of each is measured when its changes are the project's. A stranger's code is not run
//! before somebody approved of just this head.

mod known;

use std::borrow::Cow;

use plimsoll_domain::ids::{CommitSha, ProjectSlug};
use plimsoll_domain::plan::Profile;

use crate::github::Error as GitHubError;
use crate::github::answers::Files;
use crate::github::events::PullRequest;
use crate::state::AppState;
use crate::store::github::checks::{Conclusion, Kind, Settled};
use crate::store::github::links::Link;
use crate::store::github::pulls::{self, Pull};
use crate::store::github::repositories::Repository;
use crate::store::{self, audit};
use crate::tasks::{Error, Result};

use super::outdated::{Reach, cancel_all};
use super::start::{self, BY_ITSELF, Head, StartRequest, Started};
use super::{Outcome, Site, all, filter, plan};

pub(super) async fn handle(state: &AppState, event: &PullRequest) -> Result<Outcome> {
    let site = match Site::of(state, &event.repository).await? {
        Ok(site) => site,
        Err(why) => return Ok(why),
    };
    match known::look(state, &site, event.number, Some(event)).await? {
        Some(pull) => decide(state, &site, &pull, Asked::default()).await,
        None => Ok("the pull request is gone".into()),
    }
}

/// Asks GitHub how a pull request is now, and starts what is missing.
pub async fn refresh(state: &AppState, repository: &Repository, number: i64) -> Result<Outcome> {
    let site = match Site::new(state, repository.clone()).await? {
        Ok(site) => site,
        Err(why) => return Ok(why),
    };
    match known::look(state, &site, number, None).await? {
        Some(pull) => decide(state, &site, &pull, Asked::default()).await,
        None => Ok("the pull request is gone".into()),
    }
}

/// Measures the newest head once more, because somebody who may asked for it: all projects, or one. With `head` only if
/// that is the newest. `by` is whom the audit log names, as `github LOGIN`.
pub async fn again(
    state: &AppState,
    repository: &Repository,
    number: i64,
    project: Option<&ProjectSlug>,
    head: Option<&CommitSha>,
    by: &str,
) -> Result<Outcome> {
    let mut site = Site::new(state, repository.clone()).await?.map_err(|why| Error::Conflict(why.to_string()))?;
    site.links.retain(|link| project.is_none_or(|project| link.project == *project));
    let pull = current(state, &site, number, head).await?;
    if !pull.may_run() {
        let detail = "it comes from a fork: approve of its head first".to_owned();
        return Err(Error::Conflict(detail));
    }
    decide(state, &site, &pull, Asked { again: true, by: Some(by) }).await
}

/// Lets the code of a fork run, at this head and no other, and starts what waited for it. `by` is a person with write
/// access, as the audit log names them.
pub async fn approve(
    state: &AppState,
    repository: &Repository,
    number: i64,
    head: &CommitSha,
    by: &str,
) -> Result<Outcome> {
    let site = Site::new(state, repository.clone()).await?.map_err(|why| Error::Conflict(why.to_string()))?;
    current(state, &site, number, Some(head)).await?;
    let mut transaction = store::begin(state.pool()).await?;
    if !pulls::approve(&mut *transaction, repository.id, number, head, by).await? {
        return Err(moved());
    }
    let entry = audit::Entry::new(by, "pull.approve").subject(format!("{}#{number}", repository.full_name));
    let entry = entry.detail(serde_json::json!({ "head": head }));
    audit::write(&mut *transaction, &entry).await?;
    store::commit(transaction).await?;
    let pull = pulls::get(state.pool(), repository.id, number).await?.ok_or_else(moved)?;
    decide(state, &site, &pull, Asked { again: false, by: Some(by) }).await
}

/// As GitHub has it now, if it is open and this is its head.
async fn current(state: &AppState, site: &Site<'_>, number: i64, head: Option<&CommitSha>) -> Result<Pull> {
    let pull = known::look(state, site, number, None).await?;
    let pull = pull.filter(|pull| pull.open).ok_or_else(|| Error::Conflict("it is not open any more".to_owned()))?;
    if head.is_some_and(|head| pull.head_sha != *head) {
        return Err(moved());
    }
    Ok(pull)
}

fn moved() -> Error {
    Error::Conflict("it has a newer head by now".to_owned())
}

/// Who asked, if a person did.
#[derive(Debug, Clone, Copy, Default)]
struct Asked<'a> {
    /// Measured before or not, and whatever changed.
    again: bool,
    by: Option<&'a str>,
}

async fn decide(state: &AppState, site: &Site<'_>, pull: &Pull, asked: Asked<'_>) -> Result<Outcome> {
    if !pull.open {
        return close(state, site, pull).await;
    }
    match pulls::first_of_head(state.pool(), pull.repository, &pull.head_sha).await? {
        Some(first) if first != pull.number => Ok(format!("its head is judged for #{first}").into()),
        _ => judge(state, site, pull, asked).await,
    }
}

async fn judge(state: &AppState, site: &Site<'_>, pull: &Pull, asked: Asked<'_>) -> Result<Outcome> {
    let facts = Facts::ask(site, pull, asked).await?;
    let key = key(pull.number);
    let mut each = Vec::new();
    for link in &site.links {
        if link.read_commit.is_none() {
            plan::refresh(state, link, &facts.plan_commit).await?;
        }
        let head = Head {
            link,
            commit: &pull.head_sha,
            kind: Kind::PullRequest,
            tag: None,
            pull: Some(pull.number),
            into: Some(&pull.base_ref),
            key: Some(&key),
            deadline: None,
        };
        each.push((link.project.clone(), one(state, pull, &head, &facts, asked).await?));
    }
    Ok(all(each))
}

async fn one(
    state: &AppState,
    pull: &Pull,
    head: &Head<'_>,
    facts: &Facts,
    asked: Asked<'_>,
) -> Result<Cow<'static, str>> {
    if !asked.again && !filter::matches(head.link, &facts.files) {
        match start::settle(state, head, &not_measured()).await? {
            Started::Judged => {}
            Started::Outrun => return Ok(Started::Outrun.phrase(head.commit)),
            _ => return Ok("no matching path".into()),
        }
    }
    if !pull.may_run() {
        return Ok(match start::settle(state, head, &waits()).await? {
            Started::Outrun => Started::Outrun.phrase(head.commit),
            _ => "waits for approval".into(),
        });
    }
    let request = StartRequest {
        head: *head,
        branch: None,
        base: facts.merge_base.as_ref(),
        profile: Some(Profile::Pr),
        plan_commit: Some(&facts.plan_commit),
        requested_by: asked.by.unwrap_or(BY_ITSELF),
        again: asked.again,
    };
    Ok(start::open(state, &request).await?.phrase(head.commit))
}

fn not_measured() -> Settled {
    Settled {
        conclusion: Conclusion::Success,
        title: "not measured: no matching path".to_owned(),
        summary: "None of the files that this pull request changes is one that the project is about.".to_owned(),
    }
}

fn waits() -> Settled {
    Settled {
        conclusion: Conclusion::ActionRequired,
        title: "A maintainer must approve".to_owned(),
        summary: "This pull request comes from a fork. Its code runs on the machine that measures only after somebody \
                  with write access has looked at this commit and commented `/plimsoll approve`. A new push needs a \
                  new approval."
            .to_owned(),
    }
}

fn key(number: i64) -> String {
    format!("pull {number}")
}

/// What is asked of GitHub about a head.
struct Facts {
    files: Files,
    merge_base: Option<CommitSha>,
    /// The head of the default branch, whose plan counts: a change must not choose how it is measured.
    plan_commit: CommitSha,
}

impl Facts {
    async fn ask(site: &Site<'_>, pull: &Pull, asked: Asked<'_>) -> Result<Self> {
        let repo = site.repo();
        let compared = async {
            match repo.compare(&pull.base_ref, pull.head_sha.as_str()).await {
                Ok(compared) => Ok(Some(compared)),
                // The branch is gone, or has nothing in common with the head.
                Err(GitHubError::Missing) => Ok(None),
                Err(error) => Err(error),
            }
        };
        let name = &site.repository.default_branch;
        let (compared, branch) = tokio::try_join!(compared, repo.branch(name))?;
        let no_plan = || Error::Conflict(format!("{} has no branch {name:?}", site.repository.full_name));
        let plan_commit = branch.ok_or_else(no_plan)?.head;
        let Some(compared) = compared else {
            return Ok(Self { files: Files { paths: Vec::new(), complete: false }, merge_base: None, plan_commit });
        };
        let is_filtered = !asked.again && site.links.iter().any(|link| !link.paths.is_empty());
        let files = match is_filtered && !compared.files.complete {
            true => all_files(site, pull).await?,
            false => compared.files,
        };
        Ok(Self { files, merge_base: Some(compared.merge_base), plan_commit })
    }
}

/// A comparison lists fewer files than a pull request does. But that one says only what changed at its newest head, which
/// may be another by now.
async fn all_files(site: &Site<'_>, pull: &Pull) -> Result<Files> {
    let files = site.repo().pull_files(pull.number).await?;
    let now = site.repo().pull(pull.number).await?;
    let is_same = now.head_sha == pull.head_sha && now.base_ref == pull.base_ref;
    Ok(Files { complete: files.complete && is_same, ..files })
}

/// Nobody waits for it any more; but for another one with the same head somebody may.
async fn close(state: &AppState, site: &Site<'_>, pull: &Pull) -> Result<Outcome> {
    let mut transaction = store::begin(state.pool()).await?;
    let still = pulls::lock(&mut transaction, pull.repository, pull.number).await?;
    if still.is_some_and(|still| still.open) {
        return Ok(Started::Outrun.phrase(&pull.head_sha).into());
    }
    let mut cancelled = 0;
    for Link { project, .. } in &site.links {
        let reason = format!("pull request #{} was closed", pull.number);
        cancelled += cancel_all(&mut transaction, project, &key(pull.number), Reach::All, &reason).await?;
    }
    store::commit(transaction).await?;
    if let Some(other) = pulls::first_of_head(state.pool(), pull.repository, &pull.head_sha).await?
        && let Some(other) = pulls::get(state.pool(), pull.repository, other).await?
    {
        judge(state, site, &other, Asked::default()).await?;
    }
    Ok(match cancelled {
        0 => "closed".into(),
        _ => format!("closed: {cancelled} runs cancelled").into(),
    })
}

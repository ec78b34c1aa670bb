//! Starts what an event asks for: a check on a head, and the run that decides it, in one transaction with everything
//! that is told of them. Asked twice it starts once.

use std::borrow::Cow;
use std::time::Duration;

use plimsoll_domain::ids::{CommitSha, RunId};
use plimsoll_domain::job::{self, Priority, Wanted};
use plimsoll_domain::plan::Profile;
use uuid::Uuid;

use crate::state::AppState;
use crate::store::github::checks::{self, Check, Conclusion, Kind, NewCheck, Settled};
use crate::store::github::links::{self, Link};
use crate::store::github::pulls::{self, Pull};
use crate::store::github::{repositories, tags, writes};
use crate::store::jobs::NewJob;
use crate::store::{self, Transaction, audit, jobs};
use crate::tasks::jobs::{TAKE_WITHIN, has_room, queue};
use crate::tasks::{Error, Result};

use super::{Outcome, outdated};

/// A head of a linked project, and why it is judged.
#[derive(Debug, Clone, Copy)]
pub struct Head<'a> {
    pub link: &'a Link,
    pub commit: &'a CommitSha,
    pub kind: Kind,
    /// Of a tag its name.
    pub tag: Option<&'a str>,
    /// Of a pull request its number.
    pub pull: Option<i64>,
    /// And the branch that it is to be merged into, by which it is judged.
    pub into: Option<&'a str>,
    /// Of what older runs are cancelled, as `pull 7` or `branch main`.
    pub key: Option<&'a str>,
    /// In the merge queue: from now.
    pub deadline: Option<Duration>,
}

#[derive(Debug, Clone, Copy)]
pub struct StartRequest<'a> {
    pub head: Head<'a>,
    pub branch: Option<&'a str>,
    /// What it is compared with first: the merge base.
    pub base: Option<&'a CommitSha>,
    pub profile: Option<Profile>,
    /// The commit whose plan is used instead of the head's own.
    pub plan_commit: Option<&'a CommitSha>,
    /// `github`, or `github LOGIN` of the person who asked.
    pub requested_by: &'a str,
    /// Measured before or not.
    pub again: bool,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Started {
    New {
        check: Uuid,
        run_id: RunId,
    },
    /// Settled without a run.
    Settled(Uuid),
    /// A run decides this head: "not measured" does not take its place.
    Judged,
    /// It was before; or with `again`: it is being measured.
    Already,
    /// By now it has another head or base, or is closed; or nobody approved of this head.
    Outrun,
}

impl Started {
    /// In a phrase for people.
    pub fn phrase(self, commit: &CommitSha) -> Cow<'static, str> {
        match self {
            Self::New { run_id, .. } => format!("run {run_id} of {}", commit.short()).into(),
            Self::Settled(_) => "settled without a run".into(),
            Self::Judged | Self::Already => "known already".into(),
            Self::Outrun => "something newer is known of it".into(),
        }
    }
}

/// Opens a check and queues its run.
pub async fn open(state: &AppState, request: &StartRequest<'_>) -> Result<Started> {
    let mut transaction = store::begin(state.pool()).await?;
    let started = open_in(&mut transaction, request).await?;
    store::commit(transaction).await?;
    if let Started::New { run_id, .. } = started {
        let Head { link, commit, kind, .. } = request.head;
        tracing::info!(project = %link.project, %run_id, %commit, kind = kind.name(), "queued for GitHub");
    }
    Ok(started)
}

/// A check without a run, which concludes as `settled` says.
pub async fn settle(state: &AppState, head: &Head<'_>, settled: &Settled) -> Result<Started> {
    let mut transaction = store::begin(state.pool()).await?;
    let started = settle_in(&mut transaction, head, settled).await?;
    store::commit(transaction).await?;
    Ok(started)
}

/// A new check and a new run for the head of a check, because a person asked for it, whom the audit log names as
/// `github LOGIN`. Of a pull request only the newest head counts. One that is under way goes on.
pub async fn again(state: &AppState, check: &Check, by: &str) -> Result<Outcome> {
    let gone = || Error::not_found(format!("repository that {} is measured from", check.project));
    if let (Kind::PullRequest, Some(number)) = (check.kind, check.pull_request) {
        let repository = repositories::get(state.pool(), check.repository).await?.ok_or_else(gone)?;
        let (project, head) = (Some(&check.project), Some(&check.head_sha));
        return super::pulls::again(state, &repository, number, project, head, by).await;
    }
    let link = links::get(state.pool(), &check.project).await?;
    let link = link.filter(|link| link.repository == check.repository).ok_or_else(gone)?;
    let former = match check.run_id {
        Some(run_id) => jobs::look(state.pool(), run_id).await?,
        None => None,
    };
    let revision = former.as_ref().map(|job| job.run.revision.clone()).unwrap_or_default();
    let request = StartRequest {
        head: Head {
            link: &link,
            commit: &check.head_sha,
            kind: check.kind,
            tag: check.tag.as_deref(),
            pull: check.pull_request,
            into: None,
            key: former.as_ref().and_then(|job| job.supersedes.as_deref()),
            deadline: check.deadline.map(|_| queue_patience(&link)),
        },
        branch: revision.branch.as_deref(),
        base: revision.merge_base.as_ref(),
        profile: former.as_ref().and_then(|job| job.profile),
        plan_commit: former.as_ref().and_then(|job| job.plan_commit.as_ref()),
        requested_by: by,
        again: true,
    };
    Ok(open(state, &request).await?.phrase(&check.head_sha).into())
}

/// Who asks for what nobody asked for.
pub const BY_ITSELF: &str = "github";

/// How long the merge queue waits for a check of this project.
pub fn queue_patience(link: &Link) -> Duration {
    Duration::from_secs(u64::from(link.queue_minutes.unsigned_abs()) * 60)
}

pub(super) async fn open_in(transaction: &mut Transaction, request: &StartRequest<'_>) -> Result<Started> {
    let StartRequest { head, .. } = request;
    let held = hold(transaction, head).await?;
    if !held.may_run {
        return Ok(Started::Outrun);
    }
    if let Some(former) = &held.former
        && answers(transaction, former, request).await?
    {
        return Ok(Started::Already);
    }
    if let Some(tag) = head.tag
        && !tags::put(&mut **transaction, &head.link.project, tag, head.commit).await?
        && !request.again
        && !held.former.as_ref().is_some_and(was_cancelled)
    {
        return Ok(Started::Already);
    }
    let run_id = RunId(Uuid::now_v7());
    outdated::cancel(transaction, head, &format!("superseded by {}", head.commit.short())).await?;
    has_room(transaction, &head.link.project).await?;
    let wanted = Wanted {
        commit: Some(head.commit.clone()),
        tag: head.tag.map(ToOwned::to_owned),
        branch: request.branch.map(ToOwned::to_owned),
        pull_request: head.pull.and_then(|number| u64::try_from(number).ok()),
        merge_base: request.base.cloned(),
    };
    let job = NewJob {
        run_id,
        project: &head.link.project,
        kind: job::Kind::Measure,
        priority: priority(head.kind).rank(),
        revision: &wanted,
        plan: Some(&head.link.plan),
        plan_commit: request.plan_commit,
        profile: request.profile,
        labels: &head.link.labels,
        supersedes: head.key,
        baseline_of: None,
        requested_by: request.requested_by,
        take_within: TAKE_WITHIN,
    };
    if !queue(transaction, &job).await? {
        return Err(Error::internal(format!("run {run_id} is new, and is known")));
    }
    let check = put(transaction, head, Some(run_id), None).await?;
    if request.requested_by != BY_ITSELF {
        let entry = audit::Entry::new(request.requested_by, "run.create").project(Some(&head.link.project));
        audit::write(&mut **transaction, &entry.subject(run_id.to_string())).await?;
    }
    Ok(Started::New { check, run_id })
}

pub(super) async fn settle_in(transaction: &mut Transaction, head: &Head<'_>, settled: &Settled) -> Result<Started> {
    let held = hold(transaction, head).await?;
    if !held.is_current {
        return Ok(Started::Outrun);
    }
    if let Some(former) = held.former.filter(|former| !former.superseded) {
        if former.settled.as_ref() == Some(settled) {
            return Ok(Started::Already);
        }
        if settled.conclusion == Conclusion::Success && former.run_id.is_some() && !was_cancelled(&former) {
            return Ok(Started::Judged);
        }
    }
    outdated::cancel(transaction, head, &format!("superseded by {}", head.commit.short())).await?;
    Ok(Started::Settled(put(transaction, head, None, Some(settled)).await?))
}

fn priority(kind: Kind) -> Priority {
    match kind {
        Kind::PullRequest | Kind::MergeGroup => Priority::PullRequest,
        Kind::Tag => Priority::Release,
        Kind::Branch => Priority::Normal,
    }
}

/// What is known of a head whose name is held.
struct Held {
    /// What was opened of it last.
    former: Option<Check>,
    /// The pull request is as it was, and the check stands for it; or there is none.
    is_current: bool,
    may_run: bool,
}

async fn hold(transaction: &mut Transaction, head: &Head<'_>) -> Result<Held> {
    let Head { link, commit, kind, tag, pull, into, .. } = *head;
    jobs::hold(&mut **transaction, &format!("head {} {commit}", link.project)).await?;
    let (mut is_current, mut may_run) = (true, true);
    if let (Kind::PullRequest, Some(number)) = (kind, pull) {
        let known = pulls::lock(transaction, link.repository, number).await?;
        let is_same = |known: &Pull| known.open && known.head_sha == *commit && into == Some(known.base_ref.as_str());
        let known = known.filter(is_same);
        let first = pulls::first_of_head(&mut **transaction, link.repository, commit).await?;
        is_current = known.is_some() && first == pull;
        may_run = is_current && known.is_some_and(|known| known.may_run());
    }
    let former = checks::last(&mut **transaction, &link.project, commit, kind, tag, pull).await?;
    Ok(Held { former, is_current, may_run })
}

/// Whether what was opened before is what is asked for.
async fn answers(transaction: &mut Transaction, former: &Check, request: &StartRequest<'_>) -> Result<bool> {
    let Some(run_id) = former.run_id else { return Ok(false) };
    let job = jobs::look(&mut **transaction, run_id).await?;
    if request.again {
        return Ok(former.settled.is_none() && job.is_some_and(|job| !job.run.state.is_final()));
    }
    if was_cancelled(former) {
        return Ok(false);
    }
    // The check of another pull request stands in its place by now.
    if former.superseded && former.kind == Kind::PullRequest {
        return Ok(false);
    }
    // Into another branch it is compared with another commit.
    Ok(job.is_none_or(|job| job.run.revision.merge_base.as_ref() == request.base))
}

/// By us, not by a person.
fn was_cancelled(check: &Check) -> bool {
    check.settled.as_ref().is_some_and(|settled| settled.conclusion == Conclusion::Cancelled)
}

/// Opens the check, and has it told.
async fn put(
    transaction: &mut Transaction,
    head: &Head<'_>,
    run_id: Option<RunId>,
    settled: Option<&Settled>,
) -> Result<Uuid> {
    let new = NewCheck {
        project: &head.link.project,
        repository: head.link.repository,
        head_sha: head.commit,
        kind: head.kind,
        tag: head.tag,
        pull_request: head.pull,
        run_id,
        settled,
        deadline: head.deadline,
    };
    let check = checks::open(&mut **transaction, &new).await?;
    writes::check(&mut **transaction, check).await?;
    Ok(check)
}

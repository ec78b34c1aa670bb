//! Pull requests, comments on them, and the merge queue.

use jiff::Timestamp;
use plimsoll_domain::ids::CommitSha;
use serde::Deserialize;
use serde::de::IgnoredAny;

use super::read::json;
use super::wire::{Around, Id, User};
use super::{Comment, Event, MergeAction, MergeGroup, PullAction, PullRequest, Unreadable};

#[derive(Deserialize)]
struct PullPayload {
    pull_request: Pull,
    changes: Option<PullChanges>,
}

#[derive(Deserialize)]
struct Pull {
    number: i64,
    head: End,
    base: End,
    state: String,
    draft: Option<bool>,
    merged: Option<bool>,
    updated_at: Timestamp,
    user: Option<User>,
}

#[derive(Deserialize)]
struct End {
    #[serde(rename = "ref")]
    reference: String,
    sha: CommitSha,
    /// The head's is null when it was deleted.
    repo: Option<Id>,
}

#[derive(Deserialize)]
struct PullChanges {
    base: Option<IgnoredAny>,
}

pub(super) fn pull_request(body: &[u8]) -> Result<Event, Unreadable> {
    let around: Around = json(body)?;
    let action = match around.action() {
        "opened" => PullAction::Opened,
        "reopened" => PullAction::Reopened,
        "synchronize" => PullAction::Synchronize,
        "ready_for_review" => PullAction::ReadyForReview,
        "converted_to_draft" => PullAction::ConvertedToDraft,
        "edited" => PullAction::BaseChanged,
        // Whether it was merged is read below.
        "closed" => PullAction::Closed { merged: false },
        _ => return Ok(Event::Ignored("nothing that changes what is measured")),
    };
    let PullPayload { pull_request: pull, changes } = json(body)?;
    let action = match action {
        PullAction::Closed { .. } => PullAction::Closed { merged: pull.merged.unwrap_or(false) },
        PullAction::BaseChanged if changes.is_none_or(|changes| changes.base.is_none()) => {
            return Ok(Event::Ignored("another title or text"));
        }
        action => action,
    };
    let repository = around.into_repository();
    Ok(Event::PullRequest(PullRequest {
        number: pull.number,
        action,
        fork: pull.head.repo.is_none_or(|repo| repo.id != repository.id),
        head_sha: pull.head.sha,
        head_ref: pull.head.reference,
        base_ref: pull.base.reference,
        base_sha: pull.base.sha,
        draft: pull.draft.unwrap_or(false),
        open: pull.state == "open",
        updated_at: pull.updated_at,
        author: pull.user.map(|user| user.login),
        repository,
    }))
}

#[derive(Deserialize)]
struct GroupPayload {
    merge_group: Group,
}

/// `head_commit.id` may be another one than `head_sha`, where the check belongs.
#[derive(Deserialize)]
struct Group {
    head_sha: CommitSha,
    head_ref: String,
    base_sha: CommitSha,
    base_ref: String,
}

pub(super) fn merge_group(body: &[u8]) -> Result<Event, Unreadable> {
    let around: Around = json(body)?;
    let action = match around.action() {
        "checks_requested" => MergeAction::ChecksRequested,
        "destroyed" => MergeAction::Destroyed,
        _ => return Ok(Event::Ignored("an action of the merge queue that is not used")),
    };
    let GroupPayload { merge_group: group } = json(body)?;
    let bare = |reference: String| match reference.strip_prefix("refs/heads/") {
        Some(bare) => bare.to_owned(),
        None => reference,
    };
    Ok(Event::MergeGroup(MergeGroup {
        repository: around.into_repository(),
        action,
        head_sha: group.head_sha,
        head_ref: bare(group.head_ref),
        base_sha: group.base_sha,
        base_ref: bare(group.base_ref),
    }))
}

#[derive(Deserialize)]
struct CommentPayload {
    issue: Issue,
    comment: Written,
}

#[derive(Deserialize)]
struct Issue {
    number: i64,
    /// Issues have none.
    pull_request: Option<IgnoredAny>,
}

#[derive(Deserialize)]
struct Written {
    id: i64,
    body: Option<String>,
    user: Option<User>,
    performed_via_github_app: Option<Id>,
    created_at: Timestamp,
}

pub(super) fn issue_comment(body: &[u8]) -> Result<Event, Unreadable> {
    let around: Around = json(body)?;
    if around.action() != "created" {
        return Ok(Event::Ignored("a comment that is not new"));
    }
    let CommentPayload { issue, comment } = json(body)?;
    if issue.pull_request.is_none() {
        return Ok(Event::Ignored("a comment on an issue that is no pull request"));
    }
    Ok(Event::Comment(Comment {
        repository: around.into_repository(),
        pull_request: issue.number,
        id: comment.id,
        author: comment.user.as_ref().map(User::sender),
        app_id: comment.performed_via_github_app.map(|app| app.id),
        body: comment.body.unwrap_or_default(),
        created_at: comment.created_at,
    }))
}

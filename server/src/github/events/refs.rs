//! Branches and tags: `push`, `create`, `delete`, `release`.

use plimsoll_domain::ids::CommitSha;
use serde::Deserialize;
use serde::de::IgnoredAny;

use super::read::json;
use super::wire::{Around, commit_or_none, null_or};
use super::{Event, Push, Tag, Unreadable};

#[derive(Deserialize)]
struct PushPayload {
    #[serde(rename = "ref")]
    reference: String,
    #[serde(default, deserialize_with = "commit_or_none")]
    before: Option<CommitSha>,
    #[serde(default, deserialize_with = "commit_or_none")]
    after: Option<CommitSha>,
    #[serde(default, deserialize_with = "null_or")]
    deleted: bool,
    #[serde(default, deserialize_with = "null_or")]
    forced: bool,
    head_commit: Option<HeadCommit>,
}

#[derive(Deserialize)]
struct HeadCommit {
    id: CommitSha,
}

pub(super) fn push(body: &[u8]) -> Result<Event, Unreadable> {
    let PushPayload { reference, before, after, deleted, forced, head_commit } = json(body)?;
    let repository = json::<Around>(body)?.into_repository();
    let head_commit = head_commit.map(|commit| commit.id);
    if let Some(tag) = reference.strip_prefix("refs/tags/") {
        let deleted = deleted || after.is_none();
        let commit = head_commit.filter(|_| !deleted);
        return Ok(Event::Tag(Tag { repository, tag: tag.to_owned(), commit, deleted }));
    }
    let Some(branch) = reference.strip_prefix("refs/heads/") else {
        return Ok(Event::Ignored("neither a branch nor a tag"));
    };
    match after.filter(|_| !deleted) {
        Some(after) => {
            let branch = branch.to_owned();
            Ok(Event::Push(Push { repository, branch, before, after, head_commit, forced }))
        }
        None => Ok(Event::Ignored("a branch was deleted")),
    }
}

/// Of `create` and `delete`: the tag's name comes bare, and without a commit.
#[derive(Deserialize)]
struct RefPayload {
    #[serde(rename = "ref")]
    reference: String,
    ref_type: String,
}

pub(super) fn create(body: &[u8]) -> Result<Event, Unreadable> {
    reference(body, false)
}

pub(super) fn delete(body: &[u8]) -> Result<Event, Unreadable> {
    reference(body, true)
}

fn reference(body: &[u8], deleted: bool) -> Result<Event, Unreadable> {
    let RefPayload { reference, ref_type } = json(body)?;
    if ref_type != "tag" {
        return Ok(Event::Ignored("a branch: its push says the same"));
    }
    let repository = json::<Around>(body)?.into_repository();
    Ok(Event::Tag(Tag { repository, tag: reference, commit: None, deleted }))
}

#[derive(Deserialize)]
struct ReleasePayload {
    release: Release,
    changes: Option<ReleaseChanges>,
}

#[derive(Deserialize)]
struct Release {
    tag_name: String,
    #[serde(default, deserialize_with = "null_or")]
    draft: bool,
}

#[derive(Deserialize)]
struct ReleaseChanges {
    tag_name: Option<IgnoredAny>,
}

/// What a release leads to (`target_commitish`) is only where its tag would be made if there were none.
pub(super) fn release(body: &[u8]) -> Result<Event, Unreadable> {
    let around: Around = json(body)?;
    let ReleasePayload { release, changes } = json(body)?;
    if release.draft {
        return Ok(Event::Ignored("a release that is a draft"));
    }
    let announces = match around.action() {
        "created" | "published" | "released" | "prereleased" => true,
        "edited" => changes.is_some_and(|changes| changes.tag_name.is_some()),
        _ => false,
    };
    if !announces {
        return Ok(Event::Ignored("a release that announces no tag"));
    }
    let repository = around.into_repository();
    Ok(Event::Tag(Tag { repository, tag: release.tag_name, commit: None, deleted: false }))
}

//! Tags that are versions: measured once for each commit that they lead to, whatever announced them.

use plimsoll_domain::ids::CommitSha;

use crate::github::events::Tag;
use crate::state::AppState;
use crate::store::github::checks::Kind;
use crate::store::github::links::Link;
use crate::tasks::Result;

use super::start::{self, BY_ITSELF, Head, StartRequest, Started};
use super::{LOOKS, Outcome, Site, all, filter};

pub(super) async fn handle(state: &AppState, event: &Tag) -> Result<Outcome> {
    if event.deleted {
        return Ok("a tag was deleted".into());
    }
    let site = match Site::of(state, &event.repository).await? {
        Ok(site) => site,
        Err(why) => return Ok(why),
    };
    if !site.links.iter().any(|link| filter::is_version(link, &event.tag)) {
        return Ok("no version of a project".into());
    }
    let mut outcome = Outcome::from("the tag is gone");
    let mut seen = None;
    for _ in 0..LOOKS {
        // Where it leads by now: the event may be late, and so may be what was asked before.
        let commit = site.repo().tag_commit(&event.tag).await?;
        let Some(commit) = commit.filter(|commit| seen.as_ref() != Some(commit)) else { break };
        let mut each = Vec::new();
        let mut is_new = false;
        for link in site.links.iter().filter(|link| filter::is_version(link, &event.tag)) {
            let started = measure(state, link, &event.tag, &commit).await?;
            is_new |= matches!(started, Started::New { .. });
            each.push((link.project.clone(), started.phrase(&commit)));
        }
        outcome = all(each);
        if !is_new {
            break;
        }
        seen = Some(commit);
    }
    Ok(outcome)
}

/// Measures a tag, unless it was measured, or known, at this commit. A tag that was moved takes the place of its run
/// that waits; a snapshot stays.
pub async fn measure(state: &AppState, link: &Link, tag: &str, commit: &CommitSha) -> Result<Started> {
    let request = StartRequest {
        head: Head {
            link,
            commit,
            kind: Kind::Tag,
            tag: Some(tag),
            pull: None,
            into: None,
            key: Some(&format!("tag {tag}")),
            deadline: None,
        },
        branch: None,
        base: None,
        profile: None,
        plan_commit: None,
        requested_by: BY_ITSELF,
        again: false,
    };
    start::open(state, &request).await
}

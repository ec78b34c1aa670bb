//! Tags that are versions: measured once for each commit that they lead to, whatever announced them.

use plimsoll_domain::ids::CommitSha;

use crate::github::events::Tag;
use crate::state::AppState;
use crate::store::github::checks::Kind;
use crate::store::github::links::Link;
use crate::tasks::Result;

use super::start::{self, BY_ITSELF, Head, StartRequest, Started};
use super::{Outcome, Site, all, filter};

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
    // Where it leads by now: the event may be late.
    let Some(commit) = site.repo().tag_commit(&event.tag).await? else {
        return Ok("the tag is gone".into());
    };
    let mut each = Vec::new();
    for link in &site.links {
        if filter::is_version(link, &event.tag) {
            each.push((link.project.clone(), measure(state, link, &event.tag, &commit).await?.phrase(&commit)));
        }
    }
    Ok(all(each))
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

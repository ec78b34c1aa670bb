//! What somebody asks for when they ask for a run, and what is checked about it.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

use crate::ids::{CommitSha, ProjectSlug, RunId};
use crate::plan::Profile;
use crate::revision::Revision;

/// Who goes first.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
pub enum Priority {
    Backfill,
    /// The default branch, a cron job, anything that nobody waits for.
    Normal,
    Release,
    /// Somebody waits to merge.
    PullRequest,
}

impl Priority {
    /// As stored; the highest first.
    pub fn rank(self) -> i16 {
        match self {
            Self::Backfill => 0,
            Self::Normal => 10,
            Self::Release => 20,
            Self::PullRequest => 30,
        }
    }
}

/// `POST /api/v1/runs`: measure a revision.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, expecting = "an object with project and revision")]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
pub struct RunRequest {
    #[cfg_attr(feature = "openapi", schema(example = "sentiment"))]
    pub project: ProjectSlug,
    /// At least a commit, a tag or a branch. What it leaves out (ancestors, merge base) the runner's checkout tells.
    pub revision: Wanted,
    /// Path of the plan in the repository, when it is not the runner's default.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub plan: Option<String>,
    /// The commit whose plan is used instead of the revision's own.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub plan_commit: Option<CommitSha>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub profile: Option<Profile>,
    /// What the runner must have, for example `gpu` = `A10`.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub labels: BTreeMap<String, String>,
    /// By default that of the revision: a pull request before a tag before the rest.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub priority: Option<Priority>,
    /// Queued runs of the project with the same key are cancelled: only the newest of a pull request counts.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub supersedes: Option<String>,
    /// Chosen by the caller, so that asking twice is no harm.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub run_id: Option<RunId>,
}

/// The revision that is to be measured.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, expecting = "an object with commit, tag or branch")]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
pub struct Wanted {
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[cfg_attr(feature = "openapi", schema(example = "3f2c91a7"))]
    pub commit: Option<CommitSha>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub tag: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub branch: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub pull_request: Option<u64>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub merge_base: Option<CommitSha>,
}

impl Wanted {
    /// As a revision without history.
    pub fn revision(&self) -> Revision {
        Revision {
            commit: self.commit.clone(),
            tag: self.tag.clone(),
            branch: self.branch.clone(),
            pull_request: self.pull_request,
            merge_base: self.merge_base.clone(),
            ..Revision::default()
        }
    }
}

const MAX_NAME: usize = 200;
const MAX_LABELS: usize = 32;

impl RunRequest {
    /// Says which field is wrong, and how.
    pub fn check(&self) -> Result<(), String> {
        let Wanted { commit, tag, branch, pull_request, .. } = &self.revision;
        if commit.is_none() && tag.is_none() && branch.is_none() {
            return Err("revision: name a commit, a tag or a branch".to_owned());
        }
        if pull_request.is_some_and(|number| number == 0 || number > i64::MAX as u64) {
            return Err("revision.pull_request: no such number".to_owned());
        }
        for (at, name) in [("revision.tag", tag), ("revision.branch", branch)] {
            if let Some(name) = name {
                check_ref(name).map_err(|why| format!("{at}: {why}"))?;
            }
        }
        if let Some(plan) = &self.plan {
            check_path(plan).map_err(|why| format!("plan: {why}"))?;
        }
        if let Some(key) = &self.supersedes {
            check_name(key).map_err(|why| format!("supersedes: {why}"))?;
        }
        check_labels(&self.labels)
    }

    pub fn priority(&self) -> Priority {
        self.priority.unwrap_or(match (&self.revision.pull_request, &self.revision.tag) {
            (Some(_), _) => Priority::PullRequest,
            (None, Some(_)) => Priority::Release,
            (None, None) => Priority::Normal,
        })
    }
}

/// Labels of a runner, or that a job asks for.
pub fn check_labels(labels: &BTreeMap<String, String>) -> Result<(), String> {
    if labels.len() > MAX_LABELS {
        return Err(format!("labels: more than {MAX_LABELS}"));
    }
    labels
        .iter()
        .flat_map(|(k, v)| [k, v])
        .try_for_each(|text| check_name(text).map_err(|why| format!("labels: {why}")))
}

/// A text of 1 to 200 characters without control characters.
pub fn check_name(text: &str) -> Result<(), String> {
    if text.is_empty() || text.chars().count() > MAX_NAME || text.contains(char::is_control) {
        return Err(format!("a name has 1 to {MAX_NAME} characters, none of them a control character"));
    }
    Ok(())
}

/// A name that git takes for a tag or a branch (git-check-ref-format), so that it cannot pass for an option or a range.
pub fn check_ref(name: &str) -> Result<(), String> {
    check_name(name)?;
    let part = |part: &str| !part.is_empty() && !part.starts_with('.') && !part.ends_with(".lock");
    let odd = |c: char| c.is_ascii_whitespace() || "~^:?*[\\".contains(c);
    let fits = !name.starts_with('-')
        && !name.contains(odd)
        && !name.contains("..")
        && !name.contains("@{")
        && name != "@"
        && !name.ends_with('.')
        && name.split('/').all(part);
    if fits { Ok(()) } else { Err(format!("{name:?} is no name that git takes")) }
}

/// A relative path below the checkout, with `/` between its parts.
pub fn check_path(path: &str) -> Result<(), String> {
    check_name(path)?;
    let fits = path.split('/').all(|part| !matches!(part, "" | "." | ".." | ".git"));
    if fits && !path.contains('\\') { Ok(()) } else { Err(format!("{path:?} is no plain path below the checkout")) }
}

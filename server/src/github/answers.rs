//! What GitHub answers, as far as it is used. Fields that GitHub may leave out are optional here.

mod wire;

use jiff::Timestamp;
use plimsoll_domain::ids::CommitSha;
use serde::Deserialize;

pub(super) use wire::*;

/// The App as GitHub knows it.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize)]
pub struct About {
    pub id: i64,
    pub slug: String,
    /// Such as `checks` → `write`.
    #[serde(default)]
    pub permissions: std::collections::BTreeMap<String, String>,
    #[serde(default)]
    pub events: Vec<String>,
}

#[derive(Debug, Clone, PartialEq, Eq, Deserialize)]
#[serde(from = "InstallationWire")]
pub struct Installation {
    pub id: i64,
    pub account: String,
    pub suspended: bool,
}

#[derive(Debug, Clone, PartialEq, Eq, Deserialize)]
pub struct Repository {
    pub id: i64,
    /// owner/name
    pub full_name: String,
    pub default_branch: Option<String>,
    pub private: bool,
}

#[derive(Debug, Clone, PartialEq, Eq, Deserialize)]
#[serde(from = "PullWire")]
pub struct Pull {
    pub number: i64,
    pub open: bool,
    pub draft: bool,
    pub head_sha: CommitSha,
    pub head_ref: String,
    /// From another repository, or from one that is gone.
    pub fork: bool,
    pub base_ref: String,
    pub base_sha: CommitSha,
    /// `None` when the account is gone.
    pub author: Option<String>,
    pub updated_at: Timestamp,
}

/// Paths that changed; of a renamed file both.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Files {
    pub paths: Vec<String>,
    /// False where GitHub lists no more.
    pub complete: bool,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Compared {
    pub merge_base: CommitSha,
    /// Commits of the head that the base does not have, and the other way round.
    pub ahead: i64,
    pub behind: i64,
    /// What changed between the merge base and the head.
    pub files: Files,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Branch {
    pub head: CommitSha,
    /// What a merge into it waits for, by protection and rulesets.
    pub required: Vec<Required>,
}

#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub struct Required {
    pub check: String,
    /// `None` takes it from anybody.
    pub app_id: Option<i64>,
}

impl Branch {
    /// Whether a merge waits for this check by this App.
    pub fn requires(&self, check: &str, app_id: i64) -> bool {
        self.required.iter().any(|one| one.check == check && one.app_id.is_none_or(|id| id == app_id))
    }
}

/// What somebody may do in a repository. GitHub's `triage` counts as read, `maintain` as write.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Permission {
    None,
    Read,
    Write,
    Admin,
}

impl Permission {
    pub fn can_write(self) -> bool {
        self >= Self::Write
    }
}

#[derive(Debug, Clone, PartialEq, Eq, Deserialize)]
#[serde(from = "CommentWire")]
pub struct Comment {
    pub id: i64,
    /// The App that wrote it, if one did.
    pub app_id: Option<i64>,
    /// `None` when the account is gone.
    pub login: Option<String>,
    pub body: String,
}

//! Which state of the service was measured.

use serde::{Deserialize, Serialize};

use crate::ids::CommitSha;

/// A commit with its names, and the history that finds its baseline. Everything is optional: a service can be
/// measured without a checkout.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
#[serde(deny_unknown_fields)]
pub struct Revision {
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub commit: Option<CommitSha>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub tag: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub branch: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub pull_request: Option<u64>,
    /// Inference engine and version, part of what is judged.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub engine: Option<String>,
    /// First-parent ancestors, nearest first, without the commit itself; at most [`MAX_ANCESTORS`].
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub ancestors: Vec<CommitSha>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub merge_base: Option<CommitSha>,
    /// Whether the checkout had uncommitted changes: then the commit does not say what was measured.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub dirty: bool,
}

/// How far back a report carries history.
pub const MAX_ANCESTORS: usize = 200;

impl Revision {
    /// What people call it: the tag, else the short commit, else the branch, else nothing.
    pub fn label(&self) -> Option<String> {
        let dirty = if self.dirty { "+" } else { "" };
        let commit = || self.commit.as_ref().map(|sha| format!("{}{dirty}", sha.short()));
        self.tag.clone().or_else(commit).or_else(|| self.branch.clone())
    }

    /// The label, or words that stand for a missing one.
    pub fn label_or_unnamed(&self) -> String {
        self.label().unwrap_or_else(|| "unnamed revision".to_owned())
    }
}

//! Which earlier run a candidate is compared with.

use jiff::Timestamp;

use crate::ids::RunId;
use crate::revision::Revision;

/// An earlier run that would compare: same project, plan digest, testbed and load, valid.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Measured {
    pub run_id: RunId,
    pub revision: Revision,
    pub started_at: Timestamp,
    /// Neither judged `regressed` nor left undecided, unless a person accepted it.
    pub accepted: bool,
}

/// The chosen baseline: the runs of one revision, newest first, at most [`MAX_POOLED`].
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Choice {
    pub run_ids: Vec<RunId>,
    /// A phrase for people: "the previous release", "the merge base".
    pub because: String,
}

pub const MAX_POOLED: usize = 5;

/// The baseline of `candidate`, which was measured at `at`, among `earlier` runs in any order.
pub fn choose(_candidate: &Revision, _at: Timestamp, _earlier: &[Measured]) -> Option<Choice> {
    None
}

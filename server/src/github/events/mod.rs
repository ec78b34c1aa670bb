//! What GitHub says happened: the payload of a delivery, reduced to what is used of it. Events are hints: what is done
//! about one is worked out from how things are when it is handled, so that one that is late or comes twice is no harm.
//!
//! Reading is tolerant: what is not used may have any shape, and an event or action that is not known is ignored.

mod checks;
mod places;
mod pulls;
mod read;
mod refs;
mod wire;

use jiff::Timestamp;
use plimsoll_domain::ids::CommitSha;
use uuid::Uuid;

pub use read::{Unreadable, lane, read};

#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Event {
    Push(Push),
    Tag(Tag),
    PullRequest(PullRequest),
    MergeGroup(MergeGroup),
    CheckRun(CheckRun),
    CheckSuite(CheckSuite),
    Comment(Comment),
    Installation(Installation),
    Repositories(Repositories),
    Repository(RepositoryChange),
    /// Nothing of ours, and why.
    Ignored(&'static str),
}

/// A repository as the event shows it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Repository {
    pub id: i64,
    /// owner/name
    pub full_name: String,
    /// Events about installations do not know it.
    pub default_branch: Option<String>,
    pub private: bool,
    /// `None` when the event did not come through an App.
    pub installation: Option<i64>,
    /// Whose account it is on.
    pub owner: String,
}

/// Who did it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Sender {
    pub login: String,
    pub is_bot: bool,
}

/// Commits came to a branch, or the branch is new.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Push {
    pub repository: Repository,
    /// Without `refs/heads/`.
    pub branch: String,
    /// `None` of a branch that is new.
    pub before: Option<CommitSha>,
    pub after: CommitSha,
    /// GitHub leaves it out at times; else the same as `after`.
    pub head_commit: Option<CommitSha>,
    /// The history was rewritten.
    pub forced: bool,
}

/// A tag was made, moved or deleted, or a release (not a draft) of it announced.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Tag {
    pub repository: Repository,
    /// Without `refs/tags/`; it may have slashes.
    pub tag: String,
    /// The commit it leads to, never the tag object. `None` where only GitHub can say: of announcements without one, and
    /// of a tag that is deleted.
    pub commit: Option<CommitSha>,
    pub deleted: bool,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PullRequest {
    pub repository: Repository,
    pub number: i64,
    pub action: PullAction,
    pub head_sha: CommitSha,
    pub head_ref: String,
    /// Where it is to be merged: a branch of `repository`.
    pub base_ref: String,
    pub base_sha: CommitSha,
    /// From another repository, or from one that is gone.
    pub fork: bool,
    pub draft: bool,
    pub open: bool,
    /// GitHub's time of this state.
    pub updated_at: Timestamp,
    /// `None`: the account is gone.
    pub author: Option<String>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum PullAction {
    Opened,
    Reopened,
    /// It has new commits.
    Synchronize,
    ReadyForReview,
    ConvertedToDraft,
    /// It is to be merged into another branch.
    BaseChanged,
    Closed {
        merged: bool,
    },
}

/// The merge queue asks whether a group may be merged.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct MergeGroup {
    pub repository: Repository,
    pub action: MergeAction,
    /// Where the check belongs.
    pub head_sha: CommitSha,
    /// Without `refs/heads/`; GitHub writes the number of the pull request into it.
    pub head_ref: String,
    pub base_sha: CommitSha,
    /// Without `refs/heads/`.
    pub base_ref: String,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum MergeAction {
    ChecksRequested,
    /// Merged, or given up: nobody waits any more.
    Destroyed,
}

/// Somebody did something to a check run: perhaps to one of another App.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct CheckRun {
    pub repository: Repository,
    pub action: CheckAction,
    pub app_id: i64,
    /// GitHub's id.
    pub check_run: i64,
    pub name: String,
    /// `None`: not of the form that we give.
    pub external_id: Option<Uuid>,
    pub head_sha: CommitSha,
    /// `None`: the account is gone.
    pub sender: Option<Sender>,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub enum CheckAction {
    /// "Re-run".
    Rerequested,
    /// A button of ours, by its identifier.
    RequestedAction(String),
}

/// "Re-run all checks" of one App on a head: perhaps of another.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct CheckSuite {
    pub repository: Repository,
    pub app_id: i64,
    pub head_sha: CommitSha,
    pub sender: Option<Sender>,
}

/// Somebody, perhaps this server, wrote a comment on a pull request.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Comment {
    pub repository: Repository,
    pub pull_request: i64,
    /// GitHub's id.
    pub id: i64,
    /// `None`: the account is gone.
    pub author: Option<Sender>,
    /// The App that wrote it.
    pub app_id: Option<i64>,
    pub body: String,
    pub created_at: Timestamp,
}

/// The App was installed, changed or removed on an account.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Installation {
    pub installation: i64,
    pub account: String,
    pub action: InstallationAction,
    /// Those that it reaches, as far as the event says.
    pub repositories: Vec<Repository>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum InstallationAction {
    Created,
    PermissionsAccepted,
    Suspended,
    Unsuspended,
    Deleted,
}

/// What an installation reaches has changed.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Repositories {
    pub installation: i64,
    pub account: String,
    pub added: Vec<Repository>,
    pub removed: Vec<Repository>,
}

/// The repository itself has changed: it is carried as it is now.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct RepositoryChange {
    pub repository: Repository,
    pub change: Change,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Change {
    Created,
    /// Another default branch, perhaps.
    Edited,
    Renamed,
    Transferred,
    Privatized,
    Publicized,
    Deleted,
}

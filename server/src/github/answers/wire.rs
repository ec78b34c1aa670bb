//! The shapes as they travel, where they are not those that are used.

use jiff::Timestamp;
use plimsoll_domain::ids::CommitSha;
use secrecy::SecretString;
use serde::Deserialize;
use uuid::Uuid;

use super::{Comment, Compared, Files, Installation, Permission, Pull, Repository, Required};

#[derive(Deserialize)]
pub(in crate::github) struct Id {
    pub(in crate::github) id: i64,
}

#[derive(Deserialize)]
struct Account {
    login: String,
}

#[derive(Deserialize)]
pub(in crate::github) struct InstallationWire {
    id: i64,
    account: Option<serde_json::Value>,
    suspended_at: Option<String>,
}

impl From<InstallationWire> for Installation {
    fn from(wire: InstallationWire) -> Self {
        // Of an enterprise there is only the slug.
        let named = |account: &serde_json::Value| {
            let name = account.get("login").or_else(|| account.get("slug"))?;
            Some(name.as_str()?.to_owned())
        };
        Self {
            id: wire.id,
            account: wire.account.as_ref().and_then(named).unwrap_or_default(),
            suspended: wire.suspended_at.is_some(),
        }
    }
}

#[derive(Deserialize)]
pub(in crate::github) struct Token {
    #[serde(deserialize_with = "secret")]
    pub(in crate::github) token: SecretString,
    pub(in crate::github) expires_at: Timestamp,
}

fn secret<'de, D: serde::Deserializer<'de>>(deserializer: D) -> Result<SecretString, D::Error> {
    String::deserialize(deserializer).map(SecretString::from)
}

#[derive(Deserialize)]
pub(in crate::github) struct Repositories {
    repositories: Vec<Repository>,
}

impl From<Repositories> for Vec<Repository> {
    fn from(page: Repositories) -> Self {
        page.repositories
    }
}

#[derive(Deserialize)]
pub(in crate::github) struct PullWire {
    number: i64,
    state: String,
    #[serde(default)]
    draft: bool,
    head: Side,
    base: Side,
    user: Option<Account>,
    updated_at: Timestamp,
}

#[derive(Deserialize)]
struct Side {
    sha: CommitSha,
    #[serde(rename = "ref")]
    name: String,
    repo: Option<Id>,
}

impl From<PullWire> for Pull {
    fn from(wire: PullWire) -> Self {
        let id = |side: &Side| side.repo.as_ref().map(|repo| repo.id);
        Self {
            number: wire.number,
            open: wire.state == "open",
            draft: wire.draft,
            fork: id(&wire.head).is_none() || id(&wire.head) != id(&wire.base),
            head_sha: wire.head.sha,
            head_ref: wire.head.name,
            base_ref: wire.base.name,
            base_sha: wire.base.sha,
            author: wire.user.map(|user| user.login),
            updated_at: wire.updated_at,
        }
    }
}

#[derive(Deserialize)]
pub(in crate::github) struct File {
    filename: String,
    previous_filename: Option<String>,
}

impl Files {
    /// `most` is how many GitHub lists.
    pub(in crate::github) fn of(files: Vec<File>, most: usize) -> Self {
        let complete = files.len() < most;
        let paths = files.into_iter().flat_map(|file| [Some(file.filename), file.previous_filename]).flatten();
        Self { paths: paths.collect(), complete }
    }
}

#[derive(Deserialize)]
pub(in crate::github) struct ComparedWire {
    merge_base_commit: Commit,
    ahead_by: i64,
    behind_by: i64,
    #[serde(default)]
    files: Vec<File>,
}

#[derive(Deserialize)]
pub(in crate::github) struct Commit {
    pub(in crate::github) sha: CommitSha,
}

/// Of a comparison.
const MOST_FILES: usize = 300;

impl From<ComparedWire> for Compared {
    fn from(wire: ComparedWire) -> Self {
        Self {
            merge_base: wire.merge_base_commit.sha,
            ahead: wire.ahead_by,
            behind: wire.behind_by,
            files: Files::of(wire.files, MOST_FILES),
        }
    }
}

/// A reference, and an annotated tag: both lead to an object.
#[derive(Deserialize)]
pub(in crate::github) struct Leads {
    pub(in crate::github) object: Object,
}

#[derive(Deserialize)]
pub(in crate::github) struct Object {
    pub(in crate::github) sha: CommitSha,
    #[serde(rename = "type")]
    pub(in crate::github) kind: String,
}

#[derive(Deserialize)]
pub(in crate::github) struct Tag {
    pub(in crate::github) name: String,
    pub(in crate::github) commit: Commit,
}

#[derive(Deserialize)]
pub(in crate::github) struct BranchWire {
    pub(in crate::github) commit: Commit,
    protection: Option<Protection>,
}

#[derive(Deserialize)]
struct Protection {
    required_status_checks: Option<RequiredChecks>,
}

#[derive(Deserialize)]
struct RequiredChecks {
    #[serde(default)]
    contexts: Vec<String>,
    #[serde(default)]
    checks: Vec<RequiredWire>,
}

#[derive(Deserialize)]
struct RequiredWire {
    context: String,
    /// Less than 0 is anybody. Rulesets have another word for it.
    #[serde(alias = "integration_id")]
    app_id: Option<i64>,
}

impl From<RequiredWire> for Required {
    fn from(wire: RequiredWire) -> Self {
        Self { check: wire.context, app_id: wire.app_id.filter(|id| *id > 0) }
    }
}

impl BranchWire {
    pub(in crate::github) fn required(self) -> Vec<Required> {
        let Some(checks) = self.protection.and_then(|protection| protection.required_status_checks) else {
            return Vec::new();
        };
        // The older form names each check once more.
        let known: Vec<Required> = checks.checks.into_iter().map(Required::from).collect();
        let older = checks.contexts.into_iter().filter(|name| !known.iter().any(|one| one.check == *name));
        let older: Vec<Required> = older.map(|check| Required { check, app_id: None }).collect();
        known.into_iter().chain(older).collect()
    }
}

/// One rule that rulesets lay on a branch.
#[derive(Deserialize)]
pub(in crate::github) struct Rule {
    #[serde(rename = "type")]
    kind: String,
    parameters: Option<serde_json::Value>,
}

impl Rule {
    pub(in crate::github) fn required(self) -> Vec<Required> {
        if self.kind != "required_status_checks" {
            return Vec::new();
        }
        let checks = self.parameters.and_then(|mut all| Some(all.get_mut("required_status_checks")?.take()));
        let checks: Vec<RequiredWire> =
            checks.and_then(|checks| serde_json::from_value(checks).ok()).unwrap_or_default();
        checks.into_iter().map(Required::from).collect()
    }
}

/// What lies at a path.
#[derive(Deserialize)]
pub(in crate::github) struct Entry {
    #[serde(rename = "type")]
    pub(in crate::github) kind: String,
    pub(in crate::github) size: u64,
    #[serde(default)]
    pub(in crate::github) content: String,
}

#[derive(Deserialize)]
pub(in crate::github) struct PermissionWire {
    permission: String,
}

impl From<PermissionWire> for Permission {
    fn from(wire: PermissionWire) -> Self {
        match wire.permission.as_str() {
            "admin" => Self::Admin,
            "write" | "push" | "maintain" => Self::Write,
            "read" | "pull" | "triage" => Self::Read,
            _ => Self::None,
        }
    }
}

#[derive(Deserialize)]
pub(in crate::github) struct CheckRuns {
    check_runs: Vec<CheckRun>,
}

#[derive(Deserialize)]
pub(in crate::github) struct CheckRun {
    pub(in crate::github) id: i64,
    pub(in crate::github) name: String,
    pub(in crate::github) external_id: Option<String>,
    app: Option<Id>,
}

impl From<CheckRuns> for Vec<CheckRun> {
    fn from(page: CheckRuns) -> Self {
        page.check_runs
    }
}

impl CheckRun {
    pub(in crate::github) fn is(&self, name: &str, external_id: Uuid, app_id: i64) -> bool {
        let same = self.external_id.as_deref().and_then(|id| Uuid::parse_str(id).ok()) == Some(external_id);
        same && self.name == name && self.app.as_ref().is_some_and(|app| app.id == app_id)
    }
}

#[derive(Deserialize)]
pub(in crate::github) struct CommentWire {
    id: i64,
    body: Option<String>,
    user: Option<Account>,
    performed_via_github_app: Option<Id>,
}

impl From<CommentWire> for Comment {
    fn from(wire: CommentWire) -> Self {
        Self {
            id: wire.id,
            app_id: wire.performed_via_github_app.map(|app| app.id),
            login: wire.user.map(|user| user.login),
            body: wire.body.unwrap_or_default(),
        }
    }
}

//! The revision, from the checkout that the plan lies in. Without `git` or a checkout there is simply nothing known.

use std::path::Path;
use std::process::{Command, Stdio};

use plimsoll_domain::ids::CommitSha;
use plimsoll_domain::revision::{MAX_ANCESTORS, Revision};

use crate::plan::Environment;

/// What flags say about the revision.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Named {
    /// A commit when it is hexadecimal, else a tag.
    pub revision: Option<String>,
    pub tag: Option<String>,
    pub commit: Option<CommitSha>,
    pub branch: Option<String>,
    pub pull_request: Option<u64>,
    pub engine: Option<String>,
}

/// The revision of the checkout at `folder`, with what the flags and the CI's environment say. A flag that names
/// another commit than the checked out one takes that commit's history if the checkout has it, and none otherwise.
pub fn revision(folder: &Path, named: &Named, environment: Environment) -> Revision {
    let (mut commit, mut tag) = (named.commit.clone(), named.tag.clone());
    if let Some(name) = &named.revision {
        match name.parse() {
            Ok(sha) => commit = commit.or(Some(sha)),
            Err(_) => tag = tag.or_else(|| Some(name.clone())),
        }
    }
    let wanted = match (&commit, &named.revision) {
        (Some(sha), _) => sha.to_string(),
        (None, Some(tag)) => format!("refs/tags/{tag}"),
        (None, None) => "HEAD".to_owned(),
    };
    let ci = Ci::read(environment);
    let mut revision = checked_out(folder, &wanted, &ci).unwrap_or_default();
    revision.commit = revision.commit.or(commit);
    revision.tag = tag.or(revision.tag);
    revision.branch = named.branch.clone().or(revision.branch);
    revision.pull_request = named.pull_request.or(if named.revision.is_none() { ci.pull_request } else { None });
    revision.engine.clone_from(&named.engine);
    revision
}

/// What GitHub's runner tells: a pull request is checked out detached.
#[derive(Debug, Default)]
struct Ci {
    pull_request: Option<u64>,
    branch: Option<String>,
    base: Option<String>,
}

impl Ci {
    fn read(environment: Environment) -> Self {
        if environment("GITHUB_ACTIONS").as_deref() != Some("true") {
            return Self::default();
        }
        let filled = |name: &str| environment(name).filter(|value| !value.is_empty());
        let reference = filled("GITHUB_REF").unwrap_or_default();
        let number = reference.strip_prefix("refs/pull/").and_then(|rest| rest.split('/').next()?.parse().ok());
        let branch = reference.strip_prefix("refs/heads/").map(str::to_owned);
        Self { pull_request: number, branch: filled("GITHUB_HEAD_REF").or(branch), base: filled("GITHUB_BASE_REF") }
    }
}

fn checked_out(folder: &Path, wanted: &str, ci: &Ci) -> Option<Revision> {
    let git = Git { folder };
    let commit: CommitSha =
        git.line(&["rev-parse", "--verify", "--quiet", &format!("{wanted}^{{commit}}")])?.parse().ok()?;
    let sha = commit.as_str();
    let is_head = git.line(&["rev-parse", "--verify", "--quiet", "HEAD"]).as_deref() == Some(sha);
    let count = format!("--max-count={}", MAX_ANCESTORS + 1);
    let history = git.text(&["rev-list", "--first-parent", &count, sha]).unwrap_or_default();
    let at_head = |value: Option<String>| if is_head { value } else { None };
    Some(Revision {
        tag: git.line(&["describe", "--tags", "--exact-match", sha]),
        branch: at_head(git.line(&["symbolic-ref", "--short", "--quiet", "HEAD"]).or_else(|| ci.branch.clone())),
        ancestors: history.lines().skip(1).filter_map(|line| line.parse().ok()).collect(),
        merge_base: git.merge_base(sha, ci),
        dirty: is_head && git.text(&["status", "--porcelain", "--untracked-files=no"]).is_some_and(|s| !s.is_empty()),
        commit: Some(commit),
        ..Revision::default()
    })
}

struct Git<'a> {
    folder: &'a Path,
}

impl Git<'_> {
    /// The merge base with the branch it is to go into; `None` on that branch itself.
    fn merge_base(&self, sha: &str, ci: &Ci) -> Option<CommitSha> {
        let named = ci.base.iter().map(|base| format!("origin/{base}"));
        let usual = ["origin/HEAD", "origin/main", "origin/master", "main", "master"].map(str::to_owned);
        let base = named
            .chain(usual)
            .find(|name| self.line(&["rev-parse", "--verify", "--quiet", &format!("{name}^{{commit}}")]).is_some())?;
        let found = self.line(&["merge-base", sha, &base])?;
        if found == sha { None } else { found.parse().ok() }
    }

    fn line(&self, arguments: &[&str]) -> Option<String> {
        let text = self.text(arguments)?;
        let line = text.lines().next()?.trim();
        (!line.is_empty()).then(|| line.to_owned())
    }

    /// The output of a command that succeeded. A checkout's own settings start no program and take no lock.
    fn text(&self, arguments: &[&str]) -> Option<String> {
        let output = Command::new("git")
            .args(["-c", "core.fsmonitor=false", "-C"])
            .arg(self.folder)
            .args(arguments)
            .env("GIT_OPTIONAL_LOCKS", "0")
            .env("LC_ALL", "C")
            .stdin(Stdio::null())
            .stderr(Stdio::null())
            .output()
            .ok()?;
        output.status.success().then(|| String::from_utf8(output.stdout).ok())?
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A checkout with a branch: three commits on `main`, the second tagged, and one on `topic` after the second.
    fn checkout() -> tempfile::TempDir {
        let folder = tempfile::tempdir().unwrap();
        let git = |arguments: &[&str]| {
            let status = Command::new("git")
                .arg("-C")
                .arg(folder.path())
                .args(["-c", "user.name=t", "-c", "user.email=t@t", "-c", "commit.gpgsign=false"])
                .args(arguments)
                .env("GIT_CONFIG_GLOBAL", "/dev/null")
                .stdout(Stdio::null())
                .stderr(Stdio::null())
                .status();
            assert!(status.unwrap().success(), "{arguments:?}");
        };
        git(&["init", "--initial-branch=main"]);
        std::fs::write(folder.path().join("file"), "1").unwrap();
        git(&["add", "file"]);
        git(&["commit", "-m", "1"]);
        git(&["commit", "--allow-empty", "-m", "2"]);
        git(&["tag", "v1.0.0"]);
        git(&["branch", "topic"]);
        git(&["commit", "--allow-empty", "-m", "3"]);
        git(&["checkout", "topic"]);
        git(&["commit", "--allow-empty", "-m", "4"]);
        folder
    }

    fn none(_: &str) -> Option<String> {
        None
    }

    #[test]
    fn the_checkout_tells_commit_branch_history_and_merge_base() {
        let folder = checkout();
        let found = revision(folder.path(), &Named::default(), &none);
        assert_eq!((found.branch.as_deref(), found.tag.as_deref(), found.dirty), (Some("topic"), None, false));
        assert_eq!(found.ancestors.len(), 2);
        assert_eq!(found.merge_base.as_ref(), found.ancestors.first());
        assert!(!found.ancestors.contains(&found.commit.unwrap()));
        std::fs::write(folder.path().join("file"), "2").unwrap();
        assert!(revision(folder.path(), &Named::default(), &none).dirty);
    }

    #[test]
    fn a_named_revision_has_its_own_history_or_none() {
        let folder = checkout();
        let named = |name: &str| Named { revision: Some(name.to_owned()), ..Named::default() };
        std::fs::write(folder.path().join("file"), "2").unwrap();
        let tagged = revision(folder.path(), &named("v1.0.0"), &none);
        assert_eq!((tagged.tag.as_deref(), tagged.branch, tagged.ancestors.len()), (Some("v1.0.0"), None, 1));
        assert!(!tagged.dirty, "the changes are not in the tag");
        let unknown = revision(folder.path(), &named("v9"), &none);
        assert_eq!(unknown, Revision { tag: Some("v9".to_owned()), ..Revision::default() });
        let elsewhere = revision(folder.path(), &named("0123456789abcdef"), &none);
        assert_eq!((elsewhere.commit.unwrap().short(), elsewhere.ancestors.len()), ("0123456", 0));
    }

    #[test]
    fn no_checkout_is_no_error() {
        let folder = tempfile::tempdir().unwrap();
        let named = Named { engine: Some("e 1".to_owned()), pull_request: Some(7), ..Named::default() };
        let found = revision(folder.path(), &named, &none);
        assert_eq!((found.engine.as_deref(), found.pull_request, found.commit), (Some("e 1"), Some(7), None));
    }

    #[test]
    fn a_workflow_tells_its_pull_request() {
        let environment = |name: &str| {
            let value = match name {
                "GITHUB_ACTIONS" => "true",
                "GITHUB_REF" => "refs/pull/128/merge",
                "GITHUB_HEAD_REF" => "topic",
                "GITHUB_BASE_REF" => "main",
                _ => return None,
            };
            Some(value.to_owned())
        };
        let folder = tempfile::tempdir().unwrap();
        assert_eq!(revision(folder.path(), &Named::default(), &environment).pull_request, Some(128));
        let ci = Ci::read(&environment);
        assert_eq!((ci.branch.as_deref(), ci.base.as_deref()), (Some("topic"), Some("main")));
    }
}

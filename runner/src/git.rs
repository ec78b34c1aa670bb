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

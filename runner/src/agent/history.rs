//! What git tells of a revision. Read before the service starts: from then on the files are the service's, and what it
//! wrote there would tell git what to run.

use std::ffi::OsString;
use std::time::Duration;

use plimsoll_domain::ids::CommitSha;
use plimsoll_domain::revision::{MAX_ANCESTORS, Revision};

use super::git::Git;

/// For all of it: without an answer there is simply nothing known.
const PATIENCE: Duration = Duration::from_secs(20);

/// The commit that `name` stands for, its tag, its first parents, and where it left the main branch.
pub(super) async fn of_commit(git: &Git<'_>, name: &str) -> Option<Revision> {
    let told = async {
        let commit: CommitSha = line(git, &["rev-parse", "--verify", "--quiet", &peeled(name)]).await?.parse().ok()?;
        let sha = commit.as_str();
        let count = format!("--max-count={}", MAX_ANCESTORS + 1);
        let history = text(git, &["rev-list", "--first-parent", &count, sha]).await.unwrap_or_default();
        Some(Revision {
            tag: line(git, &["describe", "--tags", "--exact-match", sha]).await,
            ancestors: history.lines().skip(1).filter_map(|line| line.parse().ok()).collect(),
            merge_base: merge_base(git, sha).await,
            commit: Some(commit),
            ..Revision::default()
        })
    };
    tokio::time::timeout(PATIENCE, told).await.ok()?
}

/// What is checked out, or the history of `commit` where that is another one.
pub(super) async fn of_folder(mut git: Git<'_>, commit: Option<&CommitSha>) -> Option<Revision> {
    let told = of_commit(&git, commit.map_or("HEAD", CommitSha::as_str)).await?;
    let state = async {
        let head = line(&git, &["rev-parse", "--verify", "--quiet", "HEAD"]).await;
        if head.as_deref() != told.commit.as_ref().map(CommitSha::as_str) {
            return (None, false);
        }
        let branch = line(&git, &["symbolic-ref", "--short", "--quiet", "HEAD"]).await;
        leave_filters_out(&mut git).await;
        // A submodule has settings of its own.
        let changes = ["status", "--porcelain", "--untracked-files=no", "--ignore-submodules=dirty"];
        (branch, text(&git, &changes).await.is_some_and(|changes| !changes.is_empty()))
    };
    let (branch, dirty) = tokio::time::timeout(PATIENCE, state).await.unwrap_or_default();
    Some(Revision { branch, dirty, ..told })
}

/// A filter is a command that the folder's settings name, and git would run it on changed files.
async fn leave_filters_out(git: &mut Git<'_>) {
    let names = text(git, &["config", "-z", "--name-only", "--get-regexp", r"^filter\."]).await.unwrap_or_default();
    for name in names.split('\0').filter(|name| !name.is_empty()) {
        git.set(name, if name.ends_with(".required") { "false" } else { "" });
    }
}

/// The merge base with the main branch; `None` on that branch itself.
async fn merge_base(git: &Git<'_>, sha: &str) -> Option<CommitSha> {
    const USUAL: [&str; 5] = [
        "refs/remotes/origin/HEAD",
        "refs/remotes/origin/main",
        "refs/remotes/origin/master",
        "refs/heads/main",
        "refs/heads/master",
    ];
    for name in USUAL {
        if let Some(base) = line(git, &["rev-parse", "--verify", "--quiet", &peeled(name)]).await {
            let found = line(git, &["merge-base", sha, &base]).await?;
            return if found == sha { None } else { found.parse().ok() };
        }
    }
    None
}

fn peeled(name: &str) -> String {
    format!("{name}^{{commit}}")
}

async fn line(git: &Git<'_>, words: &[&str]) -> Option<String> {
    let text = text(git, words).await?;
    let line = text.lines().next()?.trim();
    (!line.is_empty()).then(|| line.to_owned())
}

async fn text(git: &Git<'_>, words: &[&str]) -> Option<String> {
    let words: Vec<OsString> = words.iter().map(OsString::from).collect();
    git.ask(&words, PATIENCE).await.ok()
}

//! A revision's files: fetched into a repository of the agent's own, checked out into a folder of the run's own.
//!
//! Git is given fixed arguments, names of revisions only where no option can stand, no terminal to ask at, no hooks and
//! no submodules.

use std::ffi::OsString;
use std::path::{Path, PathBuf};
use std::time::Duration;

use plimsoll_domain::ids::CommitSha;
use plimsoll_domain::job::{Wanted, check_ref};

use super::shell::{Ill, Surroundings};

const FETCH: Duration = Duration::from_secs(15 * 60);
const LOCAL: Duration = Duration::from_secs(5 * 60);

/// A repository of one project.
#[derive(Debug)]
pub(super) struct Repository<'r> {
    /// Where it comes from.
    pub(super) address: &'r str,
    /// Where it is kept.
    pub(super) folder: PathBuf,
    /// Where git runs, and what it sees.
    pub(super) around: Surroundings,
}

/// Why there is no checkout.
#[derive(Debug, thiserror::Error)]
pub(super) enum NoCheckout {
    /// Another try may help: the network, the disk.
    #[error("{0}")]
    Git(String),
    #[error("{0}")]
    NoSuchRevision(String),
}

impl Repository<'_> {
    /// Fetches what there is now, and the commit that is wanted.
    pub(super) async fn fetch(&self, wanted: &Wanted) -> Result<CommitSha, NoCheckout> {
        if !self.folder.join("HEAD").exists() {
            let folder = self.folder.clone().into_os_string();
            self.plain(&["init".into(), "--bare".into(), "--quiet".into(), "--".into(), folder], LOCAL).await?;
        }
        self.fetch_refs(&["+refs/heads/*:refs/heads/*", "+refs/tags/*:refs/tags/*"], true).await?;
        if let Some(number) = wanted.pull_request {
            // Where a host has no such names, the commit is asked for by itself.
            let head = format!("+refs/pull/{number}/head:refs/pull/{number}/head");
            let _ = self.fetch_refs(&[&head], false).await;
        }
        self.resolve(wanted).await
    }

    /// Checks a commit out into a new folder.
    pub(super) async fn check_out(&self, commit: &CommitSha, folder: &Path) -> Result<(), NoCheckout> {
        let arguments: [OsString; 7] = [
            "worktree".into(),
            "add".into(),
            "--detach".into(),
            "--force".into(),
            "--quiet".into(),
            folder.into(),
            commit.as_str().into(),
        ];
        self.git(&arguments, LOCAL).await.map(drop)
    }

    /// The commit of a short or whole name, fetched by itself when no branch or tag leads to it.
    pub(super) async fn commit(&self, sha: &CommitSha) -> Result<CommitSha, NoCheckout> {
        if let Some(found) = self.find(sha.as_str()).await {
            return if found.as_str().starts_with(sha.as_str()) { Ok(found) } else { Err(no_commit(sha)) };
        }
        if matches!(sha.as_str().len(), 40 | 64) {
            let _ = self.fetch_refs(&[sha.as_str()], false).await;
        }
        self.find(sha.as_str())
            .await
            .filter(|found| found.as_str().starts_with(sha.as_str()))
            .ok_or_else(|| no_commit(sha))
    }

    /// Forgets the checkouts whose folders are gone.
    pub(super) async fn forget(&self) {
        let _ = self.git(&["worktree".into(), "prune".into()], LOCAL).await;
    }

    /// Whether it can be asked at all.
    pub(super) async fn answers(&self) -> Result<(), NoCheckout> {
        let arguments: Vec<OsString> =
            vec!["ls-remote".into(), "--quiet".into(), "--".into(), self.address.into(), "HEAD".into()];
        self.plain(&arguments, Duration::from_secs(60)).await.map(drop)
    }

    async fn resolve(&self, wanted: &Wanted) -> Result<CommitSha, NoCheckout> {
        if let Some(sha) = &wanted.commit {
            return self.commit(sha).await;
        }
        for (space, what, name) in [("tags", "tag", &wanted.tag), ("heads", "branch", &wanted.branch)] {
            let Some(name) = name else { continue };
            check_ref(name).map_err(NoCheckout::NoSuchRevision)?;
            let found = self.find(&format!("refs/{space}/{name}")).await;
            return found.ok_or_else(|| NoCheckout::NoSuchRevision(format!("the repository has no {what} {name:?}")));
        }
        Err(NoCheckout::NoSuchRevision("the job names no commit, tag or branch".to_owned()))
    }

    /// The commit that a name stands for.
    async fn find(&self, name: &str) -> Option<CommitSha> {
        let arguments: [OsString; 5] = [
            "rev-parse".into(),
            "--verify".into(),
            "--quiet".into(),
            "--end-of-options".into(),
            format!("{name}^{{commit}}").into(),
        ];
        self.git(&arguments, LOCAL).await.ok()?.trim().parse().ok()
    }

    async fn fetch_refs(&self, refs: &[&str], prune: bool) -> Result<(), NoCheckout> {
        let mut arguments: Vec<OsString> =
            ["fetch", "--quiet", "--no-tags", "--no-recurse-submodules", "--force", "--no-write-fetch-head"]
                .map(OsString::from)
                .to_vec();
        if prune {
            arguments.push("--prune".into());
        }
        arguments.extend(["--".into(), self.address.into()]);
        arguments.extend(refs.iter().map(OsString::from));
        self.git(&arguments, FETCH).await.map(drop)
    }

    async fn git(&self, arguments: &[OsString], timeout: Duration) -> Result<String, NoCheckout> {
        let mut all = vec![OsString::from("--git-dir"), self.folder.clone().into_os_string()];
        all.extend(arguments.iter().cloned());
        self.plain(&all, timeout).await
    }

    async fn plain(&self, arguments: &[OsString], timeout: Duration) -> Result<String, NoCheckout> {
        let mut all: Vec<OsString> = FIXED.iter().flat_map(|setting| ["-c".into(), setting.into()]).collect();
        all.extend(arguments.iter().cloned());
        let mut around = self.around.clone();
        around.environment.extend(ENVIRONMENT.map(|(name, value)| (name.to_owned(), value.to_owned())));
        let command = arguments
            .iter()
            .find(|word| !word.to_string_lossy().starts_with('-') && !word.to_string_lossy().contains('/'));
        let command = command.map_or_else(String::new, |word| word.to_string_lossy().into_owned());
        around.run("git", &all, timeout).await.map_err(|ill: Ill| NoCheckout::Git(format!("`git {command}` {ill}")))
    }
}

fn no_commit(sha: &CommitSha) -> NoCheckout {
    NoCheckout::NoSuchRevision(format!("the repository has no commit {sha}"))
}

/// Whatever else is configured.
const FIXED: [&str; 7] = [
    "core.hooksPath=/dev/null",
    "core.fsmonitor=false",
    "protocol.ext.allow=never",
    "submodule.recurse=false",
    // What git tidies up of itself is done before the service starts.
    "gc.autoDetach=false",
    "maintenance.autoDetach=false",
    "advice.detachedHead=false",
];

const ENVIRONMENT: [(&str, &str); 3] = [("GIT_TERMINAL_PROMPT", "0"), ("LC_ALL", "C"), ("GIT_ADVICE", "0")];

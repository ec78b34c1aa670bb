//! A revision's files: fetched into a repository of the agent's own, checked out into a folder of the run's own.
//!
//! Git is given fixed arguments, and names of revisions only where no option can stand.

use std::ffi::OsString;
use std::path::{Path, PathBuf};
use std::time::Duration;

use plimsoll_domain::ids::CommitSha;
use plimsoll_domain::job::{Wanted, check_ref};

use super::git::Git;
use super::shell::{Ill, Surroundings};
use super::state::remove_folder;

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
        self.make().await?;
        self.fetch_refs(&["+refs/heads/*:refs/heads/*", "+refs/tags/*:refs/tags/*"], true).await?;
        if let Some(number) = wanted.pull_request {
            // Where a host has no such names, the commit is asked for by itself.
            let head = format!("+refs/pull/{number}/head:refs/pull/{number}/head");
            let _ = self.fetch_refs(&[&head], false).await;
        }
        self.resolve(wanted).await
    }

    /// Away with it: the next fetch begins anew.
    pub(super) async fn remove(&self) {
        remove_folder(self.folder.clone()).await;
    }

    /// Makes what is missing, and the settings anew: a service that ran as this user may have written there what git is
    /// to run.
    async fn make(&self) -> Result<(), NoCheckout> {
        if !self.folder.join("HEAD").is_file() {
            self.remove().await;
        }
        for name in ["config", "info/attributes"] {
            let _ = std::fs::remove_file(self.folder.join(name));
        }
        let folder = self.folder.clone().into_os_string();
        let words = ["init".into(), "--bare".into(), "--quiet".into(), "--".into(), folder];
        asked(&Git::nowhere(&self.around), &words, LOCAL).await.map(drop)
    }

    /// Settings that are no file would be waited for.
    fn is_there(&self) -> bool {
        ["HEAD", "config"].iter().all(|name| self.folder.join(name).is_file())
    }

    pub(super) fn git(&self) -> Git<'_> {
        Git::bare(&self.around, &self.folder)
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
        asked(&self.git(), &arguments, LOCAL).await.map(drop)
    }

    /// The commit of a short or whole name, fetched by itself when no branch or tag leads to it.
    pub(super) async fn commit(&self, sha: &CommitSha) -> Result<CommitSha, NoCheckout> {
        if let Some(found) = self.find(sha.as_str()).await? {
            return if found.as_str().starts_with(sha.as_str()) { Ok(found) } else { Err(no_commit(sha)) };
        }
        if matches!(sha.as_str().len(), 40 | 64) && self.fetch_refs(&[sha.as_str()], false).await.is_err() {
            // Git says the same of a commit that is not there and of a network that is not.
            self.answers().await?;
        }
        let found = self.find(sha.as_str()).await?.filter(|found| found.as_str().starts_with(sha.as_str()));
        found.ok_or_else(|| no_commit(sha))
    }

    /// Forgets the checkouts whose folders are gone.
    pub(super) async fn forget(&self) {
        const SHORT: Duration = Duration::from_secs(30);
        if self.is_there() {
            let _ = asked(&self.git(), &["worktree".into(), "prune".into()], SHORT).await;
        }
    }

    /// Whether it can be asked at all.
    pub(super) async fn answers(&self) -> Result<(), NoCheckout> {
        let arguments: Vec<OsString> =
            vec!["ls-remote".into(), "--quiet".into(), "--".into(), self.address.into(), "HEAD".into()];
        asked(&Git::nowhere(&self.around), &arguments, Duration::from_secs(60)).await.map(drop)
    }

    async fn resolve(&self, wanted: &Wanted) -> Result<CommitSha, NoCheckout> {
        if let Some(sha) = &wanted.commit {
            return self.commit(sha).await;
        }
        for (space, what, name) in [("tags", "tag", &wanted.tag), ("heads", "branch", &wanted.branch)] {
            let Some(name) = name else { continue };
            check_ref(name).map_err(NoCheckout::NoSuchRevision)?;
            let found = self.find(&format!("refs/{space}/{name}")).await?;
            return found.ok_or_else(|| NoCheckout::NoSuchRevision(format!("the repository has no {what} {name:?}")));
        }
        Err(NoCheckout::NoSuchRevision("the job names no commit, tag or branch".to_owned()))
    }

    /// The commit that a name stands for, if it stands for one.
    async fn find(&self, name: &str) -> Result<Option<CommitSha>, NoCheckout> {
        let arguments: [OsString; 5] = [
            "rev-parse".into(),
            "--verify".into(),
            "--quiet".into(),
            "--end-of-options".into(),
            format!("{name}^{{commit}}").into(),
        ];
        match self.git().ask(&arguments, LOCAL).await {
            Ok(text) => Ok(text.trim().parse().ok()),
            Err(Ill::Ended(_)) => Ok(None),
            Err(ill) => Err(NoCheckout::Git(format!("`git rev-parse` {ill}"))),
        }
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
        asked(&self.git(), &arguments, FETCH).await.map(drop)
    }
}

async fn asked(git: &Git<'_>, words: &[OsString], timeout: Duration) -> Result<String, NoCheckout> {
    let command = words.first().map_or_else(String::new, |word| word.to_string_lossy().into_owned());
    git.ask(words, timeout).await.map_err(|ill| NoCheckout::Git(format!("`git {command}` {ill}")))
}

fn no_commit(sha: &CommitSha) -> NoCheckout {
    NoCheckout::NoSuchRevision(format!("the repository has no commit {sha}"))
}

//! As whom Postgres runs: as we do, unless we are root, which it refuses.

use std::fs;
use std::os::unix::fs::{MetadataExt as _, lchown};
use std::os::unix::process::CommandExt as _;
use std::path::Path;
use std::process::Command;

use super::{PostgresError, at};

/// The user to drop to; `None` inside means to stay who we are.
#[derive(Debug, Clone)]
pub(super) struct Account(Option<User>);

#[derive(Debug, Clone)]
struct User {
    name: &'static str,
    uid: u32,
    gid: u32,
}

impl Account {
    pub(super) fn find() -> Result<Self, PostgresError> {
        if !rustix::process::geteuid().is_root() {
            return Ok(Self(None));
        }
        let user = ["postgres", "nobody"].into_iter().find_map(User::named).ok_or(PostgresError::NoAccount)?;
        Ok(Self(Some(user)))
    }

    /// Makes `command` run as this account, without our other groups.
    pub(super) fn apply(&self, command: &mut Command) {
        if let Some(user) = &self.0 {
            command.uid(user.uid).gid(user.gid);
        }
    }

    /// Gives a file or folder to this account.
    pub(super) fn give(&self, path: &Path) -> Result<(), PostgresError> {
        match &self.0 {
            // Never what a link leads to.
            Some(user) => lchown(path, Some(user.uid), Some(user.gid)).map_err(at(path)),
            None => Ok(()),
        }
    }

    /// Checks, as root, that nobody else made this folder: root is about to write into it and to give it away.
    pub(super) fn check_owner(&self, dir: &Path) -> Result<(), PostgresError> {
        let Some(user) = &self.0 else { return Ok(()) };
        let facts = fs::symlink_metadata(dir).map_err(at(dir))?;
        let why = if facts.is_symlink() {
            "is a symbolic link"
        } else if !facts.is_dir() {
            "is no folder"
        } else if facts.uid() != 0 && facts.uid() != user.uid {
            "belongs to somebody else"
        } else {
            return Ok(());
        };
        Err(PostgresError::Foreign { path: dir.to_owned(), why, user: user.name.to_owned() })
    }

    /// Checks that the account may enter every folder above `dir`, which is absolute.
    pub(super) fn check_way(&self, dir: &Path) -> Result<(), PostgresError> {
        let Some(user) = &self.0 else { return Ok(()) };
        match dir.ancestors().skip(1).find(|above| !user.may_enter(above)) {
            Some(blocked) => {
                Err(PostgresError::NotReachable { user: user.name.to_owned(), blocked: blocked.to_owned() })
            }
            None => Ok(()),
        }
    }
}

impl User {
    fn named(name: &'static str) -> Option<Self> {
        Some(Self { name, uid: id("-u", name)?, gid: id("-g", name)? })
    }

    fn may_enter(&self, dir: &Path) -> bool {
        let Ok(facts) = fs::metadata(dir) else { return false };
        let bit = match (facts.uid() == self.uid, facts.gid() == self.gid) {
            (true, _) => 0o100,
            (_, true) => 0o010,
            _ => 0o001,
        };
        facts.mode() & bit != 0
    }
}

fn id(which: &str, name: &str) -> Option<u32> {
    let output = Command::new("id").args([which, name]).output().ok()?;
    String::from_utf8(output.stdout).ok()?.trim().parse().ok()
}

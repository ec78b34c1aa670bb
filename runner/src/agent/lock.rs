//! One run at a time for each GPU of the host, whoever's agent it is, and one agent for each folder of state: a lock on a
//! file that the kernel lets go of when the agent ends, however it does.

use std::fs::{self, File, OpenOptions};
use std::io::{self, Read as _, Write as _};
use std::os::unix::fs::{OpenOptionsExt as _, PermissionsExt as _};
use std::path::{Path, PathBuf};

use rustix::fs::{FlockOperation, flock};

use crate::exit::{Exit, Failure};

/// The locks of an agent, held as long as this lives.
#[derive(Debug)]
pub(super) struct Locks {
    _files: Vec<File>,
}

impl Locks {
    /// The whole host for an agent without GPUs of its own; else each of them, and the host together with others. Nobody
    /// waits. The error says who has it.
    pub(super) fn take(folder: Option<&Path>, gpus: &[String], holder: &str) -> Result<Self, Failure> {
        let folder = match folder {
            Some(folder) => {
                made(folder).map_err(|error| Failure::usage(format!("cannot make {}: {error}", folder.display())))?
            }
            None => usual(),
        };
        let taken = |name: &str, what: &str, how: FlockOperation, holder: Option<&str>| {
            let path = folder.join(format!("{name}.lock"));
            lock(&path, how, holder).map_err(|why| {
                why.failure(
                    what,
                    &path,
                    "one agent at a time measures on a GPU: give each agent of this host `gpus` and a `state` of its own in \
                     its runner.toml",
                    "`locks` in runner.toml names another folder, the same for all agents of this host",
                )
            })
        };
        let (host, shared) = match gpus {
            [] => (FlockOperation::NonBlockingLockExclusive, false),
            _ => (FlockOperation::NonBlockingLockShared, true),
        };
        let mut files = vec![taken("host", "this host", host, (!shared).then_some(holder))?];
        let mut names: Vec<&String> = gpus.iter().collect();
        names.sort();
        names.dedup();
        for gpu in names {
            let exclusive = FlockOperation::NonBlockingLockExclusive;
            files.push(taken(&format!("gpu-{}", plain(gpu)), &format!("GPU {gpu}"), exclusive, Some(holder))?);
        }
        Ok(Self { _files: files })
    }
}

/// An agent's hold on its folder of state: what lies there of a run is its own, or of an agent that is no more.
#[derive(Debug)]
pub(super) struct StateLock {
    _file: File,
}

impl StateLock {
    /// Nobody waits. The error says who has it.
    pub(super) fn take(folder: &Path, holder: &str) -> Result<Self, Failure> {
        let path = folder.join("agent.lock");
        let file = lock(&path, FlockOperation::NonBlockingLockExclusive, Some(holder)).map_err(|why| {
            why.failure(
                &format!("`state` {}", folder.display()),
                &path,
                "each agent of this host needs a folder of its own: name another as `state` in this one's runner.toml",
                "`state` in runner.toml names another folder",
            )
        })?;
        Ok(Self { _file: file })
    }
}

/// Where all agents of a host look, whoever they are.
fn usual() -> PathBuf {
    made(Path::new("/run/lock/plimsoll")).unwrap_or_else(|_| {
        let temporary = std::env::temp_dir().join("plimsoll-locks");
        made(&temporary).unwrap_or(temporary)
    })
}

fn made(folder: &Path) -> io::Result<PathBuf> {
    if !folder.is_dir() {
        fs::create_dir_all(folder)?;
        // Like /tmp: everybody may lock, and remove only what is theirs.
        fs::set_permissions(folder, fs::Permissions::from_mode(0o1777))?;
    }
    Ok(folder.to_owned())
}

enum NotLocked {
    Held { by: String },
    Failed(io::Error),
}

impl NotLocked {
    /// `alone` says what to do when somebody else has it, `elsewhere` what when there can be no lock.
    fn failure(self, what: &str, path: &Path, alone: &str, elsewhere: &str) -> Failure {
        match self {
            Self::Held { by } => Failure::new("locked", Exit::Usage, format!("{what} is held by {by}")).hint(alone),
            Self::Failed(error) => Failure::usage(format!("cannot lock {}: {error}", path.display())).hint(elsewhere),
        }
    }
}

/// `holder` is written down for those who come later.
fn lock(path: &Path, how: FlockOperation, holder: Option<&str>) -> Result<File, NotLocked> {
    let (mut file, own) = open(path).map_err(NotLocked::Failed)?;
    match flock(&file, how) {
        Ok(()) => {}
        Err(rustix::io::Errno::WOULDBLOCK) => {
            let mut said = String::new();
            let _ = (&mut file).take(200).read_to_string(&mut said);
            let said: String = said.chars().filter(|c| !c.is_control()).collect();
            let by = if said.is_empty() { "another agent".to_owned() } else { said };
            return Err(NotLocked::Held { by });
        }
        Err(error) => return Err(NotLocked::Failed(error.into())),
    }
    if let (true, Some(holder)) = (own, holder) {
        let said = format!("{holder}, process {}\n", std::process::id());
        let _ = file.set_len(0).and_then(|()| file.write_all(said.as_bytes()));
    }
    Ok(file)
}

/// The file, and whether it may be written. In a folder that is everybody's the kernel lets nobody write another's.
fn open(path: &Path) -> io::Result<(File, bool)> {
    let mut options = OpenOptions::new();
    options.read(true).custom_flags(rustix::fs::OFlags::NOFOLLOW.bits() as i32);
    if let Ok(file) = options.clone().write(true).open(path) {
        return Ok((file, true));
    }
    if let Ok(file) = options.open(path) {
        return Ok((file, false));
    }
    Ok((options.write(true).create_new(true).mode(0o644).open(path)?, true))
}

fn plain(name: &str) -> String {
    name.chars().map(|c| if c.is_ascii_alphanumeric() || c == '-' { c } else { '_' }).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_gpu_has_one_agent_and_a_host_of_one_agent_no_other() {
        let folder = tempfile::tempdir().unwrap();
        let take = |gpus: &[&str]| {
            let gpus: Vec<String> = gpus.iter().map(|gpu| (*gpu).to_owned()).collect();
            Locks::take(Some(folder.path()), &gpus, "agent of a test")
        };
        let first = take(&["0", "1"]).unwrap();
        let second = take(&["2"]).unwrap();
        let said = take(&["1", "3"]).unwrap_err().message;
        assert!(said.starts_with("GPU 1 is held by agent of a test, process"), "{said}");
        assert!(take(&[]).unwrap_err().message.starts_with("this host is held by"));
        drop((first, second));
        // A program that another test is just starting shares the files that were open, until it is started.
        let started = std::time::Instant::now();
        let _whole = loop {
            match take(&[]) {
                Ok(whole) => break whole,
                Err(error) => assert!(started.elapsed().as_secs() < 10, "{}", error.message),
            }
            std::thread::yield_now();
        };
        assert!(take(&["0"]).is_err());
    }

    #[test]
    fn a_folder_of_state_has_one_agent() {
        let folder = tempfile::tempdir().unwrap();
        let _first = StateLock::take(folder.path(), "agent of a test").unwrap();
        let failure = StateLock::take(folder.path(), "another").unwrap_err();
        let said = format!("`state` {} is held by agent of a test, process", folder.path().display());
        assert!(failure.message.starts_with(&said), "{failure}");
        assert_eq!(failure.exit, Exit::Usage);
    }
}

//! One run at a time for each GPU of the host, whoever's agent it is: a lock on a file that the kernel lets go of when
//! the agent ends, however it does.

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
        let path = |name: &str| folder.join(format!("{name}.lock"));
        let (host, shared) = match gpus {
            [] => (FlockOperation::NonBlockingLockExclusive, false),
            _ => (FlockOperation::NonBlockingLockShared, true),
        };
        let mut files = vec![lock(&path("host"), "this host", host, (!shared).then_some(holder))?];
        let mut names: Vec<&String> = gpus.iter().collect();
        names.sort();
        names.dedup();
        for gpu in names {
            let exclusive = FlockOperation::NonBlockingLockExclusive;
            files.push(lock(&path(&format!("gpu-{}", plain(gpu))), &format!("GPU {gpu}"), exclusive, Some(holder))?);
        }
        Ok(Self { _files: files })
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

/// `holder` is written down for those who come later.
fn lock(path: &Path, what: &str, how: FlockOperation, holder: Option<&str>) -> Result<File, Failure> {
    let failed = |error: io::Error| {
        Failure::usage(format!("cannot lock {}: {error}", path.display()))
            .hint("`locks` in runner.toml names another folder, the same for all agents of this host")
    };
    let (mut file, own) = open(path).map_err(failed)?;
    match flock(&file, how) {
        Ok(()) => {}
        Err(rustix::io::Errno::WOULDBLOCK) => {
            let mut said = String::new();
            let _ = (&mut file).take(200).read_to_string(&mut said);
            let said: String = said.chars().filter(|c| !c.is_control()).collect();
            let by = if said.is_empty() { "another agent".to_owned() } else { said };
            return Err(Failure::new("locked", Exit::Failed, format!("{what} is held by {by}"))
                .hint("one agent at a time measures on a GPU: `gpus` in runner.toml gives each its own"));
        }
        Err(error) => return Err(failed(error.into())),
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
}

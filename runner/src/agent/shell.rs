//! Commands that the agent runs itself: bounded in time, their output in the run's log, their whole group ended when
//! they take too long.

use std::ffi::OsString;
use std::path::{Path, PathBuf};
use std::process::{ExitStatus, Stdio};
use std::time::Duration;

use rustix::process::{Pid, Signal, kill_process_group};
use tokio::io::AsyncReadExt as _;
use tokio::process::Command;

use super::record::Record;

/// Where commands run, and what they see.
#[derive(Clone)]
pub(super) struct Surroundings {
    pub(super) folder: PathBuf,
    /// The whole environment.
    pub(super) environment: Vec<(String, String)>,
    pub(super) log: PathBuf,
}

/// Why a command did not end well. Says nothing of what it wrote.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub(super) enum Ill {
    #[error("could not be started: {0}")]
    NotStarted(String),
    #[error("ended with {0}")]
    Ended(String),
    #[error("did not end within {}", humantime::format_duration(*.0))]
    TooLong(Duration),
}

impl std::fmt::Debug for Surroundings {
    /// The environment may hold secrets.
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Surroundings").field("folder", &self.folder).finish_non_exhaustive()
    }
}

impl Surroundings {
    /// A line of `runner.toml`, by the shell.
    pub(super) async fn line(&self, line: &str, timeout: Duration) -> Result<(), Ill> {
        self.run("/bin/sh", &["-c".into(), line.into()], timeout).await.map(drop)
    }

    /// A program with arguments of its own; returns the beginning of what it wrote on stdout.
    pub(super) async fn run(&self, program: &str, arguments: &[OsString], timeout: Duration) -> Result<String, Ill> {
        let mut record = Record::open(&self.log).map_err(|error| Ill::NotStarted(error.to_string()))?;
        let mut child = Command::new(program)
            .args(arguments)
            .current_dir(&self.folder)
            .env_clear()
            .envs(self.environment.iter().map(|(name, value)| (name, value)))
            .process_group(0)
            .stdin(Stdio::null())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .kill_on_drop(true)
            .spawn()
            .map_err(|error| Ill::NotStarted(format!("{program}: {error}")))?;
        let group = Group(child.id());
        let (mut out, mut err) = (child.stdout.take(), child.stderr.take());
        let mut kept = Vec::new();
        let reading = async {
            let (mut left, mut right) = ([0; 4096], [0; 4096]);
            while out.is_some() || err.is_some() {
                tokio::select! {
                    read = some(&mut out, &mut left) => match read {
                        0 => out = None,
                        length => {
                            kept.extend_from_slice(&left[..length.min(MOST.saturating_sub(kept.len()))]);
                            record.write(&left[..length]);
                        }
                    },
                    read = some(&mut err, &mut right) => match read {
                        0 => err = None,
                        length => record.write(&right[..length]),
                    },
                }
            }
        };
        let waiting = async {
            tokio::pin!(reading);
            tokio::select! {
                () = &mut reading => child.wait().await,
                status = child.wait() => {
                    // What it left behind may hold its output open for ever.
                    let _ = tokio::time::timeout(Duration::from_millis(500), reading).await;
                    status
                }
            }
        };
        let ended = tokio::time::timeout(timeout, waiting).await;
        if ended.is_ok() {
            group.leave();
        }
        match ended {
            Err(_) => Err(Ill::TooLong(timeout)),
            Ok(Err(error)) => Err(Ill::NotStarted(error.to_string())),
            Ok(Ok(status)) if status.success() => Ok(String::from_utf8_lossy(&kept).into_owned()),
            Ok(Ok(status)) => Err(Ill::Ended(ending(status))),
        }
    }
}

/// Of the output that is returned.
const MOST: usize = 64 << 10;

async fn some(from: &mut Option<impl tokio::io::AsyncRead + Unpin>, buffer: &mut [u8]) -> usize {
    match from {
        Some(from) => from.read(buffer).await.unwrap_or(0),
        None => std::future::pending().await,
    }
}

fn ending(status: ExitStatus) -> String {
    use std::os::unix::process::ExitStatusExt as _;
    super::supervisor::how(status.code(), status.signal())
}

/// Ends the group when it goes out of scope: by a timeout, or because nobody waits any more.
struct Group(Option<u32>);

impl Group {
    /// What a command leaves behind on purpose goes on until the end of the run.
    fn leave(mut self) {
        self.0 = None;
    }
}

impl Drop for Group {
    fn drop(&mut self) {
        let pid = self.0.and_then(|pid| Pid::from_raw(i32::try_from(pid).ok()?));
        if let Some(pid) = pid {
            let _ = kill_process_group(pid, Signal::KILL);
        }
    }
}

/// A folder and a log for what belongs to no run.
pub(super) fn plain(folder: &Path, log: PathBuf, environment: Vec<(String, String)>) -> Surroundings {
    Surroundings { folder: folder.to_owned(), environment, log }
}

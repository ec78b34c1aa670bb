//! Commands that the agent runs itself: bounded in time, their output in the run's log. Their whole group is ended when
//! they take too long or nobody waits any more, and asked to first: a git that is killed leaves its locks behind.

use std::ffi::OsString;
use std::io;
use std::path::{Path, PathBuf};
use std::process::{ExitStatus, Stdio};
use std::time::Duration;

use rustix::process::{Pid, Signal, kill_process_group};
use tokio::io::AsyncReadExt as _;
use tokio::process::{Child, ChildStderr, ChildStdout, Command};
use tokio::runtime::Handle;

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
        self.run("/bin/sh", &["-c".into(), line.into()], timeout).await
    }

    /// A program with arguments of its own.
    pub(super) async fn run(&self, program: &str, arguments: &[OsString], timeout: Duration) -> Result<(), Ill> {
        self.carry_out(program, arguments, timeout, true).await.map(drop)
    }

    /// Returns the beginning of what it wrote on stdout, which the log has no use for.
    pub(super) async fn ask(&self, program: &str, arguments: &[OsString], timeout: Duration) -> Result<String, Ill> {
        self.carry_out(program, arguments, timeout, false).await
    }

    async fn carry_out(
        &self,
        program: &str,
        arguments: &[OsString],
        timeout: Duration,
        is_logged: bool,
    ) -> Result<String, Ill> {
        let mut record = Record::open(&self.log).map_err(|error| Ill::NotStarted(error.to_string()))?;
        let child = Command::new(program)
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
        let mut group = Group::of(child);
        let leader = group.leader;
        let Group { child, out, err, .. } = &mut group;
        let mut kept = Vec::new();
        let reading = async {
            let (mut left, mut right) = ([0; 4096], [0; 4096]);
            while out.is_some() || err.is_some() {
                tokio::select! {
                    read = some(out, &mut left) => match read {
                        0 => *out = None,
                        length => {
                            kept.extend_from_slice(&left[..length.min(MOST.saturating_sub(kept.len()))]);
                            if is_logged {
                                record.write(&left[..length]);
                            }
                        }
                    },
                    read = some(err, &mut right) => match read {
                        0 => *err = None,
                        length => record.write(&right[..length]),
                    },
                }
            }
        };
        let waiting = async {
            tokio::pin!(reading);
            tokio::select! {
                () = &mut reading => wait(child).await,
                status = wait(child) => {
                    // What it left behind may hold its output open for ever.
                    let _ = tokio::time::timeout(Duration::from_millis(500), reading).await;
                    status
                }
            }
        };
        let ended = {
            tokio::pin!(waiting);
            let ended = tokio::time::timeout(timeout, &mut waiting).await;
            if ended.is_err() {
                signal(leader, Signal::TERM);
                let _ = tokio::time::timeout(GRACE, waiting).await;
                signal(leader, Signal::KILL);
            }
            ended
        };
        group.leave();
        match ended {
            Err(_) => Err(Ill::TooLong(timeout)),
            Ok(Err(error)) => Err(Ill::NotStarted(error.to_string())),
            Ok(Ok(status)) if status.success() => Ok(String::from_utf8_lossy(&kept).into_owned()),
            Ok(Ok(status)) => Err(Ill::Ended(ending(status))),
        }
    }
}

/// Between asking a command to end and ending it.
const GRACE: Duration = Duration::from_secs(5);
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

/// Ends the group when it goes out of scope because nobody waits any more.
struct Group {
    leader: Option<Pid>,
    child: Option<Child>,
    out: Option<ChildStdout>,
    err: Option<ChildStderr>,
}

impl Group {
    fn of(mut child: Child) -> Self {
        let leader = child.id().and_then(|pid| Pid::from_raw(i32::try_from(pid).ok()?));
        Self { leader, out: child.stdout.take(), err: child.stderr.take(), child: Some(child) }
    }

    /// What a command leaves behind on purpose goes on until the end of the run.
    fn leave(mut self) {
        self.child = None;
    }
}

async fn wait(child: &mut Option<Child>) -> io::Result<ExitStatus> {
    match child {
        Some(child) => child.wait().await,
        None => Err(io::Error::other("nobody waits for it any more")),
    }
}

impl Drop for Group {
    fn drop(&mut self) {
        let Some(mut child) = self.child.take() else { return };
        let leader = self.leader;
        let Ok(runtime) = Handle::try_current() else { return signal(leader, Signal::KILL) };
        let (out, err) = (self.out.take(), self.err.take());
        signal(leader, Signal::TERM);
        runtime.spawn(async move {
            let ended = async {
                tokio::select! {
                    _ = child.wait() => {}
                    // Somebody must read: a command that is told to end and cannot write dies of that first.
                    () = async { tokio::join!(drain(out), drain(err)); std::future::pending().await } => {}
                }
            };
            let _ = tokio::time::timeout(GRACE, ended).await;
            signal(leader, Signal::KILL);
        });
    }
}

async fn drain(from: Option<impl tokio::io::AsyncRead + Unpin>) {
    if let Some(mut from) = from {
        let _ = tokio::io::copy(&mut from, &mut tokio::io::sink()).await;
    }
}

fn signal(leader: Option<Pid>, signal: Signal) {
    if let Some(leader) = leader {
        let _ = kill_process_group(leader, signal);
    }
}

/// A folder and a log for what belongs to no run.
pub(super) fn plain(folder: &Path, log: PathBuf, environment: Vec<(String, String)>) -> Surroundings {
    Surroundings { folder: folder.to_owned(), environment, log }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Holds a lock that it takes away when it is asked to end.
    const HOLDER: &str = "trap 'rm lock; exit 1' TERM; : > lock; while :; do sleep 0.02; done";

    async fn until(is_so: impl Fn() -> bool) {
        let waiting = async {
            while !is_so() {
                tokio::time::sleep(Duration::from_millis(10)).await;
            }
        };
        tokio::time::timeout(Duration::from_secs(60), waiting).await.unwrap();
    }

    #[tokio::test]
    async fn what_takes_too_long_or_is_dropped_may_tidy_up() {
        let folder = tempfile::tempdir().unwrap();
        let lock = folder.path().join("lock");
        let around = plain(folder.path(), folder.path().join("log"), vec![("PATH".into(), "/usr/bin:/bin".into())]);
        let ill = around.line(HOLDER, Duration::from_millis(700)).await.unwrap_err();
        assert_eq!(ill, Ill::TooLong(Duration::from_millis(700)));
        assert!(!lock.exists());

        let dropped = {
            let (around, lock) = (around.clone(), lock.clone());
            async move {
                tokio::select! {
                    ended = around.line(HOLDER, Duration::from_secs(60)) => panic!("{ended:?}"),
                    () = until(|| lock.exists()) => {}
                }
            }
        };
        dropped.await;
        until(|| !lock.exists()).await;
    }

    #[tokio::test]
    async fn what_will_not_end_is_killed() {
        let folder = tempfile::tempdir().unwrap();
        let around = plain(folder.path(), folder.path().join("log"), vec![("PATH".into(), "/usr/bin:/bin".into())]);
        let line = "trap '' TERM; echo $$ > pid; while :; do sleep 0.1; done";
        around.line(line, Duration::from_millis(300)).await.unwrap_err();
        let pid = std::fs::read_to_string(folder.path().join("pid")).unwrap();
        until(|| !Path::new("/proc").join(pid.trim()).exists()).await;
    }
}

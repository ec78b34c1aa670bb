//! The postmaster as a child that ends with us.

use std::fs;
use std::io::{Read as _, Seek as _, SeekFrom};
use std::os::unix::process::CommandExt as _;
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, OnceLock, PoisonError, mpsc};
use std::thread;
use std::time::{Duration, Instant};

use rustix::process::{Pid, Signal, WaitId, WaitIdOptions, kill_process, test_kill_process, waitid};

use super::PostgresError;
use super::account::Account;
use super::binaries::Binaries;
use super::directory::Directory;

/// A running postmaster and the thread that started it. The thread lives as long as the postmaster does: the kernel
/// takes the death of the *thread* that forked for the death of the parent.
#[derive(Debug)]
pub(super) struct Postmaster {
    life: Arc<Life>,
}

#[derive(Debug, Default)]
struct Life {
    state: Mutex<State>,
    ended: Condvar,
}

#[derive(Debug, Default)]
struct State {
    /// Until it has ended; a signal is sent only under the lock, so that it never meets another process.
    pid: Option<Pid>,
    stopping: bool,
}

pub(super) enum Failed {
    PortTaken,
    Other(PostgresError),
}

/// Recovery after a crash may take its time.
const READY_WITHIN: Duration = Duration::from_secs(120);
/// An orphan that was told to end has this long.
const ORPHAN_ENDS_WITHIN: Duration = Duration::from_secs(20);
const POLL: Duration = Duration::from_millis(20);
/// Longer folder names do not fit into a socket's address.
const MAX_SOCKET_DIR: usize = 80;

impl Postmaster {
    pub(super) fn start(
        binaries: &Binaries,
        account: &Account,
        directory: &Directory,
        port: u16,
        durable: bool,
        given_up: &dyn Fn() -> bool,
    ) -> Result<Self, Failed> {
        let failed = |why: String| Failed::Other(PostgresError::Command { what: "postgres", why });
        let mut log = directory.log().map_err(Failed::Other)?;
        let said_before = log.seek(SeekFrom::End(0)).map_err(|e| failed(e.to_string()))?;
        let output = log.try_clone().map_err(|e| failed(e.to_string()))?;

        let mut command = tied(&binaries.program("postgres"));
        command.arg("-D").arg(directory.data()).arg("-p").arg(port.to_string());
        for setting in settings(directory, durable) {
            command.arg("-c").arg(setting);
        }
        command.current_dir(directory.path()).stdin(Stdio::null()).stdout(Stdio::null()).stderr(output);
        account.apply(&mut command);

        let postmaster = Self { life: Arc::default() };
        let pid = postmaster.spawn(command).map_err(|e| failed(e.to_string()))?;
        let deadline = Instant::now() + READY_WITHIN;
        while !is_ready(directory, pid) {
            if postmaster.pid().is_none() {
                let mut said = String::new();
                let _ = log.seek(SeekFrom::Start(said_before)).and_then(|_| log.read_to_string(&mut said));
                let taken = said.contains("could not bind") || said.contains("Address already in use");
                return Err(if taken { Failed::PortTaken } else { failed(said.trim().to_owned()) });
            }
            if Instant::now() > deadline {
                return Err(failed(format!("not ready after {READY_WITHIN:?}")));
            }
            if given_up() {
                return Err(failed("told to stop while it started".to_owned()));
            }
            thread::sleep(POLL);
        }
        Ok(postmaster)
    }

    pub(super) fn pid(&self) -> Option<u32> {
        self.life.lock().pid.map(|pid| pid.as_raw_nonzero().get().unsigned_abs())
    }

    /// Returns when it has ended.
    pub(super) fn wait(&self) {
        let ended = self.life.ended.wait_while(self.life.lock(), |state| state.pid.is_some());
        drop(ended.unwrap_or_else(PoisonError::into_inner));
    }

    /// Asks it to end, then more firmly; returns when it has ended, at the latest after about twice `patience`.
    pub(super) fn stop(&self, patience: Duration) {
        self.life.lock().stopping = true;
        for (signal, patience) in [(Signal::INT, patience), (Signal::QUIT, patience / 2), (Signal::KILL, patience / 2)]
        {
            let state = self.life.lock();
            let Some(pid) = state.pid else { return };
            let _ = kill_process(pid, signal);
            let wait = self.life.ended.wait_timeout_while(state, patience, |state| state.pid.is_some());
            drop(wait);
        }
    }

    fn spawn(&self, mut command: Command) -> std::io::Result<Pid> {
        let (started, start) = mpsc::sync_channel(1);
        let life = Arc::clone(&self.life);
        thread::Builder::new().name("postgres".to_owned()).spawn(move || {
            let child = command.spawn().and_then(|child| {
                let pid = pid_of(child.id()).ok_or_else(|| std::io::Error::other("a process id out of range"))?;
                Ok((child, pid))
            });
            match child {
                Ok((child, pid)) => {
                    life.lock().pid = Some(pid);
                    let _ = started.send(Ok(pid));
                    life.watch(child, pid);
                }
                Err(error) => drop(started.send(Err(error))),
            }
        })?;
        start.recv().map_err(std::io::Error::other)?
    }
}

impl Drop for Postmaster {
    fn drop(&mut self) {
        self.stop(Duration::from_secs(5));
    }
}

impl Life {
    fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Waits for the end without reaping, so that the pid stays its own until nobody signals it any more.
    fn watch(&self, mut child: Child, pid: Pid) {
        let ended = WaitIdOptions::EXITED | WaitIdOptions::NOWAIT;
        while matches!(waitid(WaitId::Pid(pid), ended), Err(rustix::io::Errno::INTR)) {}
        let mut state = self.lock();
        state.pid = None;
        let status = child.wait();
        if !state.stopping {
            tracing::error!(
                ?status,
                "Postgres has ended by itself and is started again; its log is in the data directory"
            );
        }
        self.ended.notify_all();
    }
}

/// A command that gets SIGINT (to Postgres: end at once, in order) when the thread that spawns it dies, where the
/// platform can; in a process group of its own, so that Ctrl-C in a terminal reaches us alone.
pub(super) fn tied(program: &Path) -> Command {
    let mut command = if has_setpriv() {
        let mut command = Command::new("setpriv");
        command.arg("--pdeathsig=INT").arg(program);
        command
    } else {
        Command::new(program)
    };
    // Neither settings of another Postgres nor anybody's secrets.
    command.env_clear().env("LC_ALL", "C");
    for name in ["PATH", "TZ"] {
        if let Some(value) = std::env::var_os(name) {
            command.env(name, value);
        }
    }
    command.process_group(0);
    command
}

/// The command line of a process, or `None` when there is no such process.
pub(super) fn command_line(pid: u32) -> Option<String> {
    test_kill_process(pid_of(pid)?).ok()?;
    if let Ok(text) = fs::read(format!("/proc/{pid}/cmdline")) {
        return Some(String::from_utf8_lossy(&text).replace('\0', " "));
    }
    let output = Command::new("ps").args(["-o", "command=", "-p", &pid.to_string()]).output().ok()?;
    output.status.success().then(|| String::from_utf8_lossy(&output.stdout).into_owned())
}

/// Ends a postmaster that is not our child.
pub(super) fn end(pid: u32) -> Result<(), PostgresError> {
    let Some(target) = pid_of(pid) else { return Ok(()) };
    let _ = kill_process(target, Signal::INT);
    let deadline = Instant::now() + ORPHAN_ENDS_WITHIN;
    while test_kill_process(target).is_ok() {
        if Instant::now() > deadline {
            let why = format!("process {pid} of an earlier owner does not end: end it by hand");
            return Err(PostgresError::Command { what: "postgres", why });
        }
        thread::sleep(POLL);
    }
    Ok(())
}

fn pid_of(pid: u32) -> Option<Pid> {
    Pid::from_raw(i32::try_from(pid).ok()?)
}

fn settings(directory: &Directory, durable: bool) -> Vec<String> {
    let socket = directory.socket();
    let socket = socket.to_str().filter(|path| path.len() <= MAX_SOCKET_DIR && !path.contains('"'));
    let mut settings = vec![
        "listen_addresses=127.0.0.1".to_owned(),
        // Quoted: a comma would be a second folder.
        format!("unix_socket_directories={}", socket.map(|path| format!("\"{path}\"")).unwrap_or_default()),
        "unix_socket_permissions=0700".to_owned(),
        "logging_collector=off".to_owned(),
        "log_destination=stderr".to_owned(),
        "max_connections=100".to_owned(),
    ];
    if !durable {
        settings.extend(["fsync=off", "synchronous_commit=off", "full_page_writes=off"].map(str::to_owned));
    }
    settings
}

/// The postmaster writes its state into the eighth line of its pid file.
fn is_ready(directory: &Directory, pid: Pid) -> bool {
    let Ok(text) = fs::read_to_string(directory.data().join("postmaster.pid")) else { return false };
    let mut lines = text.lines();
    lines.next().is_some_and(|line| line.trim() == pid.as_raw_nonzero().to_string())
        && lines.nth(6).is_some_and(|line| line.trim() == "ready")
}

/// Whether `setpriv` is there and knows the option (BusyBox' does not).
fn has_setpriv() -> bool {
    static KNOWN: OnceLock<bool> = OnceLock::new();
    *KNOWN.get_or_init(|| {
        let mut probe = Command::new("setpriv");
        probe.args(["--pdeathsig=INT", "true"]).stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null());
        probe.status().is_ok_and(|status| status.success())
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn nothing_of_our_environment_is_passed_on_but_what_it_needs() {
        // Under `cargo test` there is at least CARGO_MANIFEST_DIR.
        let output = tied(Path::new("env")).output().unwrap();
        let text = String::from_utf8_lossy(&output.stdout);
        let names: Vec<&str> = text.lines().filter_map(|line| Some(line.split_once('=')?.0)).collect();
        assert!(names.contains(&"LC_ALL"), "{text}");
        assert!(names.iter().all(|name| ["PATH", "LC_ALL", "TZ"].contains(name)), "{names:?}");
    }
}

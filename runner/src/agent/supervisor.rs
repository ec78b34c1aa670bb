//! The supervisor, seen from the agent.

use std::ffi::OsString;
use std::io;
use std::process::Stdio;
use std::time::Duration;

use plimsoll_domain::ids::RunId;
use tokio::io::{AsyncBufReadExt as _, AsyncWriteExt as _, BufReader, Lines};
use tokio::process::{Child, ChildStdin, ChildStdout, Command};

use super::supervise::{Order, Start, Told};
use super::tree::{Members, Process, reap_orphans};

/// The name of the hidden command.
pub(crate) const COMMAND: &str = "supervise";

/// Guards one run. When it is dropped, everything that belongs to the run ends.
#[derive(Debug)]
pub(super) struct Supervisor {
    run: RunId,
    grace: Duration,
    child: Child,
    orders: Option<ChildStdin>,
    told: Lines<BufReader<ChildStdout>>,
    /// How the line that starts the service ended, once it has.
    exit: Option<Exit>,
}

/// How a process ended.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Exit {
    pub(super) success: bool,
    pub(super) how: String,
}

impl Supervisor {
    pub(super) async fn begin(run: RunId, grace: Duration) -> io::Result<Self> {
        // Also right when the program's file has been replaced meanwhile.
        let mut child = Command::new("/proc/self/exe")
            .arg0("plimsoll")
            .args(leading())
            .arg(COMMAND)
            .env_clear()
            .current_dir("/")
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(Stdio::null())
            .spawn()?;
        let (Some(orders), Some(told)) = (child.stdin.take(), child.stdout.take()) else {
            return Err(io::Error::other("it has no pipes"));
        };
        let told = BufReader::new(told).lines();
        let mut supervisor = Self { run, grace, child, orders: Some(orders), told, exit: None };
        let grace_ms = u64::try_from(grace.as_millis()).unwrap_or(u64::MAX);
        supervisor.order(&Order::Guard { run, grace_ms }).await?;
        Ok(supervisor)
    }

    pub(super) fn process(&self) -> Option<Process> {
        Process::of(i32::try_from(self.child.id()?).ok()?)
    }

    /// Starts the service's line; returns the leader of its group.
    pub(super) async fn start(&mut self, start: Start) -> io::Result<Process> {
        self.order(&Order::Start(start)).await?;
        loop {
            match self.next().await? {
                Told::Started(process) => return Ok(process),
                Told::NotStarted(why) => return Err(io::Error::other(why)),
                Told::Exited { code, signal } => self.exit = Some(exit(code, signal)),
                Told::Killed { .. } => {}
            }
        }
    }

    /// Waits until the service's line has ended. One that ended with success has left the service behind.
    pub(super) async fn exited(&mut self) -> io::Result<Exit> {
        loop {
            if let Some(exit) = &self.exit {
                return Ok(exit.clone());
            }
            if let Told::Exited { code, signal } = self.next().await? {
                self.exit = Some(exit(code, signal));
            }
        }
    }

    /// Ends every process of the run; returns how many would not end. Whatever became of the supervisor, it is looked
    /// for what is left.
    pub(super) async fn kill(&mut self) -> usize {
        let patience = self.grace + Duration::from_secs(15);
        let asked = async {
            self.order(&Order::Kill).await?;
            loop {
                if let Told::Killed { left } = self.next().await? {
                    return io::Result::Ok(left);
                }
            }
        };
        match tokio::time::timeout(patience, asked).await {
            Ok(Ok(left)) => left,
            _ => self.sweep().await,
        }
    }

    /// Lets the supervisor go, which ends what is left; returns how many would not end.
    pub(super) async fn end(mut self) -> usize {
        self.orders = None;
        let patience = self.grace + Duration::from_secs(15);
        if tokio::time::timeout(patience, self.child.wait()).await.is_err() {
            let _ = self.child.kill().await;
        }
        self.sweep().await
    }

    async fn sweep(&self) -> usize {
        let (run, grace) = (self.run, self.grace);
        let supervisor = self.process();
        // Without its supervisor a run's orphans fall to the agent.
        let parents: Vec<Process> = match supervisor {
            Some(supervisor) if supervisor.lives() => vec![supervisor],
            _ => Process::own().into_iter().collect(),
        };
        let ended = move || {
            let left = Members { run, parents: &parents, groups: &[] }.end(grace).len();
            reap_orphans(supervisor.map(|process| process.pid));
            left
        };
        tokio::task::spawn_blocking(ended).await.unwrap_or(0)
    }

    async fn order(&mut self, order: &Order) -> io::Result<()> {
        let gone = || io::Error::other("the supervisor is gone");
        let mut line = serde_json::to_vec(order)?;
        line.push(b'\n');
        self.orders.as_mut().ok_or_else(gone)?.write_all(&line).await
    }

    async fn next(&mut self) -> io::Result<Told> {
        let line = self.told.next_line().await?.ok_or_else(|| io::Error::other("the supervisor is gone"))?;
        serde_json::from_str(&line).map_err(io::Error::other)
    }
}

/// The words before `agent` on the command line: the program may be a part of a larger one.
fn leading() -> impl Iterator<Item = OsString> {
    let words = std::env::args_os().skip(1).take_while(|word| word != "agent");
    words.filter(|word| !word.to_string_lossy().starts_with('-'))
}

fn exit(code: Option<i32>, signal: Option<i32>) -> Exit {
    Exit { success: code == Some(0), how: how(code, signal) }
}

pub(super) fn how(code: Option<i32>, signal: Option<i32>) -> String {
    match (code, signal) {
        (Some(code), _) => format!("exit code {code}"),
        (None, Some(signal)) => format!("signal {signal}"),
        (None, None) => "no exit code".to_owned(),
    }
}

//! The process between the agent and a service: starts the service, and ends everything that belongs to the run when
//! it is told to or when the agent is gone, however that ended.
//!
//! It is the program itself with a hidden command. What descends from the service falls to it when its parents end, so
//! nothing gets away unseen. It is told by lines of JSON on stdin, answers by lines on stdout, and the end of stdin is
//! the end of the agent.

use std::io::{BufRead as _, PipeReader, Read as _, Write as _};
use std::os::unix::process::CommandExt as _;
use std::path::PathBuf;
use std::process::{Command, Stdio};
use std::sync::mpsc;
use std::time::Duration;

use plimsoll_domain::ids::RunId;
use rustix::process::{Pid, WaitOptions, set_child_subreaper, setsid};
use serde::{Deserialize, Serialize};

use super::record::Record;
use super::tree::{Members, Process};

/// What the agent says.
#[derive(Debug, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(super) enum Order {
    /// The first one.
    Guard {
        run: RunId,
        grace_ms: u64,
    },
    Start(Start),
    /// End what there is now.
    Kill,
}

/// A line for the shell and all it needs; on the pipe rather than among arguments, which everybody can read.
#[derive(Serialize, Deserialize)]
pub(super) struct Start {
    pub(super) line: String,
    pub(super) folder: PathBuf,
    /// The whole environment.
    pub(super) environment: Vec<(String, String)>,
    /// Where the output goes.
    pub(super) log: PathBuf,
}

/// What the supervisor says.
#[derive(Debug, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(super) enum Told {
    Started(Process),
    NotStarted(String),
    /// The process that the line became has ended; what it left behind may go on.
    Exited {
        code: Option<i32>,
        signal: Option<i32>,
    },
    /// So many were left that would not end.
    Killed {
        left: usize,
    },
}

impl std::fmt::Debug for Start {
    /// The environment may hold secrets.
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Start").field("folder", &self.folder).finish_non_exhaustive()
    }
}

/// The hidden command. Returns when the agent is gone and nothing is left.
pub(crate) fn main() {
    // A session of its own: what a terminal or a group is sent does not reach it.
    let _ = setsid();
    let _ = set_child_subreaper(Some(rustix::process::getpid()));
    let mut orders =
        std::io::stdin().lock().lines().map_while(Result::ok).map_while(|line| serde_json::from_str(&line).ok());
    let Some(Order::Guard { run, grace_ms }) = orders.next() else { return };
    let grace = Duration::from_millis(grace_ms);
    let own: Vec<Process> = Process::own().into_iter().collect();
    let members = Members { run, parents: &own, groups: &[] };
    let (to_say, said) = mpsc::channel::<Told>();
    let speaker = std::thread::spawn(move || {
        for told in said {
            // Nobody listens once the agent is gone.
            let _ = say(&told);
        }
    });
    for order in orders {
        match order {
            Order::Guard { .. } => {}
            Order::Start(start) => match begin(&start, &to_say) {
                Ok(process) => drop(to_say.send(Told::Started(process))),
                Err(error) => drop(to_say.send(Told::NotStarted(error.to_string()))),
            },
            Order::Kill => drop(to_say.send(Told::Killed { left: members.end(grace).len() })),
        }
    }
    members.end(grace);
    drop(to_say);
    drop(speaker);
}

fn say(told: &Told) -> std::io::Result<()> {
    let mut out = std::io::stdout().lock();
    serde_json::to_writer(&mut out, told)?;
    out.write_all(b"\n")?;
    out.flush()
}

fn begin(start: &Start, to_say: &mpsc::Sender<Told>) -> std::io::Result<Process> {
    let (output, input) = std::io::pipe()?;
    let record = Record::open(&start.log)?;
    let child = Command::new("/bin/sh")
        .arg("-c")
        .arg(&start.line)
        .current_dir(&start.folder)
        .env_clear()
        .envs(start.environment.iter().map(|(name, value)| (name, value)))
        .process_group(0)
        .stdin(Stdio::null())
        .stdout(input.try_clone()?)
        .stderr(input)
        .spawn()?;
    std::thread::spawn(move || copy(output, record));
    let pid = i32::try_from(child.id()).map_err(std::io::Error::other)?;
    let process = Process::of(pid).ok_or_else(|| std::io::Error::other("it ended before it was seen"));
    let to_say = to_say.clone();
    std::thread::spawn(move || fetch(pid, &to_say));
    process
}

fn copy(mut output: PipeReader, mut record: Record) {
    let mut buffer = [0; 16 << 10];
    while let Ok(length @ 1..) = output.read(&mut buffer) {
        record.write(&buffer[..length]);
    }
}

/// Fetches every child that ends, those too that fell to this process, and says when it is `pid`.
fn fetch(pid: i32, to_say: &mpsc::Sender<Told>) {
    loop {
        match rustix::process::wait(WaitOptions::empty()) {
            Ok(Some((ended, status))) if Pid::from_raw(pid) == Some(ended) => {
                let told = Told::Exited { code: status.exit_status(), signal: status.terminating_signal() };
                if to_say.send(told).is_err() {
                    return;
                }
            }
            Ok(_) => {}
            // Nobody to wait for until the next one falls to us.
            Err(_) => std::thread::sleep(Duration::from_millis(20)),
        }
    }
}

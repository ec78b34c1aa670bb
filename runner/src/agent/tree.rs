//! The processes of a run: found by what they descend from and by the run's id in their environment, since a daemon
//! leaves its parent, its group and its session, but keeps its environment.

use std::collections::{HashMap, HashSet};
use std::fs;
use std::time::{Duration, Instant};

use plimsoll_domain::ids::RunId;
use rustix::process::{Pid, PidfdFlags, Signal, WaitOptions, pidfd_open, pidfd_send_signal, waitpid};
use serde::{Deserialize, Serialize};

/// The variable by which a process says to which run it belongs.
pub(crate) const RUN_ID: &str = "PLIMSOLL_RUN_ID";

/// A process, told apart from a later one with its number by when it started (clock ticks since the boot).
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub(crate) struct Process {
    pub(crate) pid: i32,
    pub(crate) started: u64,
}

impl Process {
    pub(crate) fn of(pid: i32) -> Option<Self> {
        Some(Self { pid, started: Stat::read(pid)?.started })
    }

    pub(crate) fn own() -> Option<Self> {
        Self::of(own_pid())
    }

    pub(crate) fn lives(self) -> bool {
        Stat::read(self.pid).is_some_and(|stat| stat.started == self.started && !stat.is_over)
    }

    /// Signals this very process, and no other that has its number by now.
    pub(crate) fn signal(self, signal: Signal) {
        let Some(pid) = Pid::from_raw(self.pid) else { return };
        let Ok(handle) = pidfd_open(pid, PidfdFlags::empty()) else { return };
        // The handle stands for whoever has the number now; it is ours if that one started when ours did.
        if self.lives() {
            let _ = pidfd_send_signal(&handle, signal);
        }
    }
}

/// Which processes belong to a run.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Members<'m> {
    pub(crate) run: RunId,
    /// What descends from these belongs to it, these themselves do not.
    pub(crate) parents: &'m [Process],
    /// So does what is in the process groups of these.
    pub(crate) groups: &'m [Process],
}

impl Members<'_> {
    /// Those that live now. What another user owns is not seen.
    pub(crate) fn find(&self) -> Vec<Process> {
        let all = all();
        let mut children: HashMap<i32, Vec<i32>> = HashMap::new();
        for (pid, stat) in &all {
            children.entry(stat.parent).or_default().push(*pid);
        }
        let mut below: HashSet<i32> = HashSet::new();
        let started = |pid: &i32| all.get(pid).map(|stat| stat.started);
        let roots = self.parents.iter().filter(|root| started(&root.pid) == Some(root.started));
        let mut open: Vec<i32> = roots.map(|root| root.pid).collect();
        while let Some(parent) = open.pop() {
            open.extend(children.get(&parent).into_iter().flatten().filter(|child| below.insert(**child)));
        }
        let groups: Vec<&Process> = self.groups.iter().filter(|leader| leader.leads_still(&all)).collect();
        let in_group =
            |stat: &Stat| groups.iter().any(|leader| leader.pid == stat.group && stat.started >= leader.started);
        let apart: HashSet<i32> = self.parents.iter().map(|root| root.pid).chain([own_pid()]).collect();
        let mark = format!("{RUN_ID}={}", self.run).into_bytes();
        all.iter()
            .filter(|(pid, stat)| !stat.is_over && !apart.contains(pid))
            .filter(|(pid, stat)| below.contains(pid) || in_group(stat) || carries(**pid, &mark))
            .map(|(pid, stat)| Process { pid: *pid, started: stat.started })
            .collect()
    }

    /// Asks all of them to end, ends those that have not within `grace`, and returns those that are left all the same.
    pub(crate) fn end(&self, grace: Duration) -> Vec<Process> {
        const ROUND: Duration = Duration::from_millis(20);
        const PATIENCE: Duration = Duration::from_secs(10);
        let begun = Instant::now();
        let mut asked = HashSet::new();
        loop {
            let members = self.find();
            if members.is_empty() || begun.elapsed() > grace + PATIENCE {
                return members;
            }
            for member in members {
                if begun.elapsed() >= grace {
                    member.signal(Signal::KILL);
                } else if asked.insert(member) {
                    member.signal(Signal::TERM);
                }
            }
            std::thread::sleep(ROUND);
        }
    }
}

impl Process {
    /// Whether the group that this process led is still that one: a number is not given again while its group lives.
    fn leads_still(&self, all: &HashMap<i32, Stat>) -> bool {
        all.get(&self.pid).is_none_or(|stat| stat.started == self.started)
    }
}

/// Fetches the orphans that fell to this process and are over; `but` is a child that is waited for elsewhere.
pub(crate) fn reap_orphans(but: Option<i32>) {
    let own = own_pid();
    for (pid, stat) in all() {
        if stat.is_over && stat.parent == own && Some(pid) != but {
            let _ = waitpid(Pid::from_raw(pid), WaitOptions::NOHANG);
        }
    }
}

fn own_pid() -> i32 {
    rustix::process::getpid().as_raw_nonzero().get()
}

/// Whether a process was started with this in its environment.
fn carries(pid: i32, mark: &[u8]) -> bool {
    fs::read(format!("/proc/{pid}/environ")).is_ok_and(|text| text.split(|byte| *byte == 0).any(|entry| entry == mark))
}

#[derive(Debug, Clone, Copy)]
struct Stat {
    parent: i32,
    group: i32,
    started: u64,
    /// A zombie: it only waits to be fetched.
    is_over: bool,
}

impl Stat {
    fn read(pid: i32) -> Option<Self> {
        let text = fs::read_to_string(format!("/proc/{pid}/stat")).ok()?;
        // The name, in parentheses, may hold anything; the fields after it are numbered from 3 (proc(5)).
        let fields: Vec<&str> = text.get(text.rfind(')')? + 2..)?.split(' ').collect();
        let field = |number: usize| fields.get(number - 3).copied();
        Some(Self {
            parent: field(4)?.parse().ok()?,
            group: field(5)?.parse().ok()?,
            started: field(22)?.parse().ok()?,
            is_over: matches!(field(3)?, "Z" | "X" | "x"),
        })
    }
}

fn all() -> HashMap<i32, Stat> {
    let Ok(entries) = fs::read_dir("/proc") else { return HashMap::new() };
    let pids = entries.flatten().filter_map(|entry| entry.file_name().to_str()?.parse().ok());
    pids.filter_map(|pid| Some((pid, Stat::read(pid)?))).collect()
}

//! What runs on this host, by /proc.

use std::fs;

use rustix::process::{Pid, Signal, kill_process};
use uuid::Uuid;

/// The processes that have this run's id in their environment, with their command lines.
pub(crate) fn of_run(run: Uuid) -> Vec<String> {
    let wanted = format!("PLIMSOLL_RUN_ID={run}");
    let has = |pid: &u32| {
        let environment = fs::read(format!("/proc/{pid}/environ")).unwrap_or_default();
        environment.split(|byte| *byte == 0).any(|entry| entry == wanted.as_bytes())
    };
    processes().into_iter().filter(has).map(|pid| format!("process {pid}: {}", command_line(pid))).collect()
}

/// Kills a process and its children.
pub(crate) fn kill_all(parent: u32) {
    let children = children(parent);
    std::iter::once(parent).chain(children).for_each(kill);
}

fn children(parent: u32) -> Vec<u32> {
    let of = |pid: &u32| {
        let stat = fs::read_to_string(format!("/proc/{pid}/stat")).unwrap_or_default();
        // After the name, which may hold anything: state, parent.
        let parent_of = stat.rsplit(')').next().and_then(|rest| rest.split_whitespace().nth(1)?.parse::<u32>().ok());
        parent_of == Some(parent)
    };
    processes().into_iter().filter(of).collect()
}

fn kill(pid: u32) {
    if let Some(pid) = i32::try_from(pid).ok().and_then(Pid::from_raw) {
        let _ = kill_process(pid, Signal::KILL);
    }
}

fn processes() -> Vec<u32> {
    let Ok(entries) = fs::read_dir("/proc") else { return Vec::new() };
    entries.flatten().filter_map(|entry| entry.file_name().to_str()?.parse().ok()).collect()
}

/// Empty when there is no such process.
pub(crate) fn command_line(pid: u32) -> String {
    let text = fs::read(format!("/proc/{pid}/cmdline")).unwrap_or_default();
    String::from_utf8_lossy(&text).replace('\0', " ").trim().to_owned()
}

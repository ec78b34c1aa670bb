//! Nothing outlives the demo, however it ends.

use std::io::{BufRead as _, BufReader};
use std::process::Stdio;
use std::time::{Duration, Instant};

use crate::support::{is_busy, program};

#[test]
fn every_part_ends_with_a_killed_demo() {
    let _turn = is_busy();
    let folder = tempfile::tempdir().expect("a temporary directory");
    let mut demo = program()
        .arg("--short")
        // What a killed demo leaves behind lies in here.
        .env("TMPDIR", reachable(folder.path()))
        .stdin(Stdio::null())
        .stderr(Stdio::piped())
        .spawn()
        .expect("the program starts");
    let stderr = demo.stderr.take().expect("stderr is a pipe");
    // Once the runner has said what it does, server, database and service run too.
    let running = BufReader::new(stderr).lines().map_while(Result::ok).any(|line| line.starts_with("sample v1.0.0 on"));
    assert!(running, "the demo did not start to measure");
    let parts = descendants(demo.id());
    assert!(parts.len() >= 4, "server, Postgres, service and runner, not {parts:?}");
    demo.kill().expect("it is killed");
    demo.wait().expect("it has ended");
    let until = Instant::now() + Duration::from_secs(30);
    loop {
        let left: Vec<&str> = parts.iter().filter(|part| part.runs()).map(|part| &*part.name).collect();
        if left.is_empty() {
            break;
        }
        assert!(Instant::now() < until, "still there: {left:?}");
        std::thread::sleep(Duration::from_millis(50));
    }
}

fn reachable(folder: &std::path::Path) -> &std::path::Path {
    let everyone = std::os::unix::fs::PermissionsExt::from_mode(0o755);
    std::fs::set_permissions(folder, everyone).expect("our own directory");
    folder
}

#[derive(Debug, Clone)]
struct Process {
    pid: u32,
    parent: u32,
    name: String,
    /// Start time in clock ticks: tells a process from a later one of the same number.
    started: u64,
}

impl Process {
    fn of(pid: u32) -> Option<Self> {
        let stat = std::fs::read_to_string(format!("/proc/{pid}/stat")).ok()?;
        // `pid (name) state parent …`, and the name may hold anything.
        let (head, tail) = stat.rsplit_once(')')?;
        let fields: Vec<&str> = tail.split_whitespace().collect();
        // A zombie has ended; its new parent has only not asked for it yet.
        if fields.first() == Some(&"Z") {
            return None;
        }
        let name = head.split_once('(')?.1.to_owned();
        Some(Self { pid, parent: fields.get(1)?.parse().ok()?, name, started: fields.get(19)?.parse().ok()? })
    }

    fn runs(&self) -> bool {
        Self::of(self.pid).is_some_and(|now| now.started == self.started)
    }
}

fn descendants(of: u32) -> Vec<Process> {
    let pids = std::fs::read_dir("/proc").expect("a Linux machine").flatten();
    let all: Vec<Process> =
        pids.filter_map(|entry| entry.file_name().to_str()?.parse().ok()).filter_map(Process::of).collect();
    let mut found: Vec<Process> = Vec::new();
    let mut parents = vec![of];
    while let Some(parent) = parents.pop() {
        let children = all.iter().filter(|process| process.parent == parent);
        for child in children {
            parents.push(child.pid);
            found.push(child.clone());
        }
    }
    found
}

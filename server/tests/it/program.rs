//! The program: starts, says where it listens, stops in order, and takes its Postgres along however it ends.

use std::fs;
use std::io::{BufRead as _, BufReader, Read as _, Write as _};
use std::os::unix::fs::PermissionsExt as _;
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::thread;
use std::time::{Duration, Instant};

use rustix::process::{Pid, Signal, kill_process, test_kill_process};

use crate::embedded::folder;

/// A server that is killed when the test fails.
struct Program {
    child: Child,
    address: String,
}

impl Drop for Program {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// The program without settings of the shell's.
pub(crate) fn program() -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_plimsoll-server"));
    for (name, _) in std::env::vars_os() {
        let set = name.to_string_lossy();
        if set.starts_with("PLIMSOLL_") || ["DATABASE_URL", "RUST_LOG"].contains(&&*set) {
            command.env_remove(name);
        }
    }
    command
}

pub(crate) fn command(dir: &Path) -> Command {
    let mut command = program();
    command.arg("serve").args(["--listen", "127.0.0.1:0", "--data-dir"]).arg(dir);
    command.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::piped());
    command
}

fn start(dir: &Path) -> Program {
    let mut child = command(dir).stderr(Stdio::inherit()).spawn().unwrap();
    let mut line = String::new();
    BufReader::new(child.stdout.take().unwrap()).read_line(&mut line).unwrap();
    let address = line.trim().strip_prefix("listening on http://").expect("the line that programs read").to_owned();
    Program { child, address }
}

fn postgres(dir: &Path) -> Pid {
    let text = fs::read_to_string(dir.join("postgres/data/postmaster.pid")).unwrap();
    Pid::from_raw(text.lines().next().unwrap().trim().parse().unwrap()).unwrap()
}

/// Polls, because the end of somebody else's child cannot be waited for.
fn ends(pid: Pid) -> bool {
    let deadline = Instant::now() + Duration::from_secs(30);
    while test_kill_process(pid).is_ok() {
        if Instant::now() > deadline {
            return false;
        }
        thread::sleep(Duration::from_millis(20));
    }
    true
}

pub(crate) fn get(address: &str, path: &str) -> String {
    ask(address, &format!("GET {path} HTTP/1.1\r\nHost: {address}\r\nConnection: close\r\n\r\n"))
}

/// The whole answer to a whole request, which asks to close the connection.
pub(crate) fn ask(address: &str, request: &str) -> String {
    let mut stream = std::net::TcpStream::connect(address).unwrap();
    // Who answers early may not read to the end.
    let _ = stream.write_all(request.as_bytes());
    let mut answer = Vec::new();
    let _ = stream.read_to_end(&mut answer);
    String::from_utf8_lossy(&answer).into_owned()
}

#[test]
fn it_serves_until_it_is_told_to_stop_and_starts_again() {
    let folder = folder();
    let mut first = start(folder.path());
    assert!(get(&first.address, "/readyz").starts_with("HTTP/1.1 200"), "ready");
    let token = fs::read_to_string(folder.path().join("token")).unwrap();
    assert_eq!(token.trim().len(), 64);
    let mode = fs::metadata(folder.path().join("token")).unwrap().permissions().mode();
    assert_eq!(mode & 0o777, 0o600);
    // For the commands beside it.
    assert_eq!(fs::read_to_string(folder.path().join("new-projects")).unwrap(), "public\n");

    let output = command(folder.path()).output().unwrap();
    let said = String::from_utf8_lossy(&output.stderr);
    assert!(!output.status.success() && said.contains("in use by another plimsoll"), "{said}");

    let database = postgres(folder.path());
    let pid = Pid::from_child(&first.child);
    kill_process(pid, Signal::TERM).unwrap();
    assert!(first.child.wait().unwrap().success());
    // It waited for its Postgres.
    assert!(test_kill_process(database).is_err());

    let second = start(folder.path());
    assert!(get(&second.address, "/readyz").starts_with("HTTP/1.1 200"), "ready again");
    assert_eq!(fs::read_to_string(folder.path().join("token")).unwrap(), token);
}

#[test]
#[cfg_attr(not(target_os = "linux"), ignore = "elsewhere an orphan is ended by the next start")]
fn postgres_ends_with_an_owner_that_is_killed() {
    let folder = folder();
    let mut first = start(folder.path());
    let database = postgres(folder.path());
    first.child.kill().unwrap();
    first.child.wait().unwrap();
    // No pause: the next owner comes while the old Postgres is still ending.
    let second = start(folder.path());
    assert!(get(&second.address, "/readyz").starts_with("HTTP/1.1 200"), "ready again");
    assert!(ends(database));
    let database = postgres(folder.path());
    drop(second);
    assert!(ends(database));
}

#[test]
fn a_wrong_pg_bin_is_named() {
    let folder = folder();
    let output = command(folder.path()).env("PG_BIN", "/nowhere").output().unwrap();
    let said = String::from_utf8_lossy(&output.stderr);
    assert_eq!(output.status.code(), Some(70));
    assert!(said.contains("PG_BIN is /nowhere"), "{said}");
}

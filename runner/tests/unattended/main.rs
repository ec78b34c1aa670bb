//! What happens when nobody watches: servers and networks that go away, programs that are killed, disks that are full.

#[path = "../support/mod.rs"]
mod support;

mod cuts;
mod disk;
mod follow;
mod kept;
mod killed;
mod receiver;

use std::path::Path;
use std::process::{Command, Stdio};

/// The program in a folder of its own, without the caller's environment.
fn plimsoll(folder: &Path, arguments: &[&str]) -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_plimsoll"));
    command.args(arguments).current_dir(folder).env_clear().env("HOME", folder).stdin(Stdio::null());
    command
}

/// A folder with a plan for `url` whose staircase never ends by itself.
fn folder_with_plan(url: &str) -> tempfile::TempDir {
    let folder = tempfile::tempdir().unwrap();
    let plan = format!(
        "project = \"test\"\n[service]\nurl = \"{url}/predict\"\n[workload]\nbody = \"a\"\n[smoke]\nduration = \"1s\"\n\
         [warm_up]\nmin_requests = 2\nmax_duration = \"100ms\"\ntop = \"100ms\"\n\
         [staircase]\nworkers = [2]\nstep = \"5m\"\nsearch = false\n[stability]\nduration = \"5m\"\n"
    );
    std::fs::write(folder.path().join("plimsoll.toml"), plan).unwrap();
    folder
}

/// Waits for something that happens soon, by looking.
fn wait_for<T>(what: &str, mut look: impl FnMut() -> Option<T>) -> T {
    let until = std::time::Instant::now() + std::time::Duration::from_secs(60);
    loop {
        if let Some(found) = look() {
            return found;
        }
        assert!(std::time::Instant::now() < until, "{what} did not come");
        std::thread::sleep(std::time::Duration::from_millis(10));
    }
}

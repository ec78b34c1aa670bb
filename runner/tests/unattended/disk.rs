//! Full disks: found before the run, and survived when they fill up meanwhile. On a small file system of its own, which
//! only a system that lets this process mount one can have.

use std::path::Path;
use std::process::{Command, Output, Stdio};
use std::time::Duration;

use plimsoll_runner::spool;

use crate::folder_with_plan;
use crate::support::{self, Server};

/// Runs a script in a name space of its own where `small` is a file system of so many MiB; `None` where that cannot be.
fn on_a_disk_of(mib: u32, files: u32, folder: &Path, script: &str) -> Option<Output> {
    let mount = format!("mount -t tmpfs -o size={mib}m,nr_inodes={files} none small");
    let unshare = |script: &str| {
        let mut command = Command::new("unshare");
        command.args(["--mount", "--map-root-user", "sh", "-c", script]).current_dir(folder).stdin(Stdio::null());
        command.env("PLIMSOLL", env!("CARGO_BIN_EXE_plimsoll")).env("XDG_STATE_HOME", folder.join("state"));
        command.output()
    };
    std::fs::create_dir_all(folder.join("small")).unwrap();
    if !unshare(&mount).is_ok_and(|output| output.status.success()) {
        eprintln!("not tested: this system does not let the test mount a file system");
        return None;
    }
    Some(unshare(&format!("{mount} && {script}")).unwrap())
}

#[test]
fn a_full_disk_is_an_error_before_the_run() {
    let model = Server::start(64, Duration::from_millis(2), |_| support::ok("{}"));
    let folder = folder_with_plan(&format!("http://{}", model.address));
    for (mib, files, said) in [(20, 1_000, "20 MiB are free, 256 MiB are needed"), (300, 10, "more files")] {
        let script = "exec \"$PLIMSOLL\" run --output small/a.json";
        let Some(output) = on_a_disk_of(mib, files, folder.path(), script) else { return };
        let told = String::from_utf8_lossy(&output.stderr);
        assert_eq!(output.status.code(), Some(2), "{told}");
        assert!(told.contains(said) && told.contains("--output"), "{told}");
    }
    assert_eq!(model.requests.load(std::sync::atomic::Ordering::Relaxed), 0, "nothing was sent");
}

#[test]
fn a_disk_that_fills_up_during_the_run_loses_no_report() {
    let model = Server::start(64, Duration::from_millis(2), |_| support::ok("{}"));
    let folder = folder_with_plan(&format!("http://{}", model.address));
    // Once two phases are on disk it is filled to the last byte; then the run is stopped.
    let script = "\"$PLIMSOLL\" run --output small/a.json & pid=$!
        tries=0
        until grep -q '\"kind\":\"warm_up' small/a.partial.json 2>/dev/null; do
            tries=$((tries + 1)); [ $tries -lt 600 ] || exit 99
            sleep 0.1
        done
        cp small/a.partial.json before.json
        dd if=/dev/zero of=small/full bs=64k 2>/dev/null
        kill -INT $pid
        wait $pid; code=$?
        cp small/a.partial.json after.json; ls small > left
        exit $code";
    let Some(output) = on_a_disk_of(300, 1_000, folder.path(), script) else { return };
    let told = String::from_utf8_lossy(&output.stderr);
    assert_eq!(output.status.code(), Some(3), "an interrupted run: {told}");
    assert!(told.contains("could not be written to small/a.json") && told.contains("No space left"), "{told}");
    let kept: Vec<_> = std::fs::read_dir(folder.path().join("state/plimsoll")).unwrap().flatten().collect();
    let [kept] = &kept[..] else { panic!("{kept:?}") };
    assert!(told.replace('\n', " ").contains("It is kept at"), "{told}");
    let report = spool::read(&kept.path()).unwrap();
    assert!(report.phases.len() >= 3, "the staircase too");
    let partial = |name: &str| spool::read(&folder.path().join(name)).unwrap();
    assert_eq!(partial("after.json"), partial("before.json"), "what was on the disk before is still there");
    assert_eq!(std::fs::read_to_string(folder.path().join("left")).unwrap(), "a.partial.json\nfull\n");
}

//! A run that is killed leaves the phases that were finished, and they can be sent.

use std::io::{BufRead as _, BufReader};
use std::process::Stdio;
use std::time::Duration;

use plimsoll_domain::report::{PhaseKind, Report, Status};
use plimsoll_runner::spool;
use serde_json::{Value, json};

use crate::receiver::{Receiver, State};
use crate::support::{self, Server};
use crate::{folder_with_plan, plimsoll, wait_for};

#[test]
fn killed_in_the_staircase_it_leaves_smoke_and_warm_up_and_they_can_be_sent() {
    let model = Server::start(64, Duration::from_millis(2), |_| support::ok("{}"));
    let folder = folder_with_plan(&format!("http://{}", model.address));
    let mut run = plimsoll(folder.path(), &["run", "--revision", "v1", "--output", "out/a.json"])
        .stdout(Stdio::null())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    let mut lines = BufReader::new(run.stderr.take().unwrap()).lines().map_while(Result::ok);
    assert!(lines.any(|line| line.trim_start().starts_with("staircase 2 workers")), "the staircase begins");
    let path = folder.path().join("out/a.partial.json");
    let report: Report = wait_for("the phases so far", || spool::read(&path).ok().filter(|r| r.phases.len() == 2));
    run.kill().unwrap();
    run.wait().unwrap();

    assert_eq!(spool::read(&path).unwrap(), report, "nothing came after, nothing is half written");
    assert_eq!(report.status, Status::Interrupted);
    let kinds: Vec<PhaseKind> = report.phases.iter().map(|phase| phase.kind).collect();
    assert_eq!(kinds, [PhaseKind::Smoke, PhaseKind::WarmUp]);
    assert!(!report.smoke().unwrap().latency.is_empty(), "with its histogram");
    assert!(!folder.path().join("out/a.json").exists());

    let receiver = Receiver::start(State::default());
    let sent = plimsoll(folder.path(), &["upload", "out/a.partial.json", "--server", &receiver.address, "--json"]);
    let sent = { sent }.output().unwrap();
    let document: Value = serde_json::from_slice(&sent.stdout).unwrap();
    assert_eq!((sent.status.code(), &document["run_id"]), (Some(0), &json!(report.run_id)), "{document:#}");
    assert_eq!(receiver.times(&report.run_id.to_string()), 1);
}

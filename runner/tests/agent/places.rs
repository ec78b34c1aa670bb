//! Where the commands of the clean-up are run.

use plimsoll_domain::job::{Ending, Stage};
use rustix::process::{Pid, Signal, kill_process};
use serde_json::json;

use super::server::{Claimed, Server};
use super::setup::{Bench, running, wait_for};

const TELLING: &str = r#"working_directory = "service"
start = 'exec "$SERVICE" service --exact --ignored'
stop = '(pwd; ls -A) > "$ROOT/stopped.part"; mv "$ROOT/stopped.part" "$ROOT/stopped"'
clean_up = '(pwd; ls -A) > "$ROOT/cleaned.part"; mv "$ROOT/cleaned.part" "$ROOT/cleaned"'
"#;

#[test]
fn after_a_checkout_that_failed_there_is_nothing_around_them() {
    let server = Server::start();
    let bench = Bench::new(&server, TELLING);
    let mut job = bench.job();
    job["revision"] = json!({ "tag": "v9" });
    server.give(Claimed::Job(job));
    assert_eq!(bench.agent(&["--once"]).wait().0, Some(0));
    assert_eq!(server.wait_for_end().how, Ending::Failed);
    let empty = format!("{}\n", bench.at("state/empty").display());
    assert_eq!((bench.read("stopped"), bench.read("cleaned")), (empty.clone(), empty));
}

#[test]
fn after_a_crash_they_are_where_they_would_have_been() {
    let server = Server::start();
    let bench = Bench::new(&server, TELLING);
    bench.commit("service/file", "");
    bench.take("2m");
    server.give(Claimed::Job(bench.job()));
    let agent = bench.agent(&[]);
    server.wait_for_stage(Stage::Smoke);
    agent.kill();
    assert!(!bench.at("stopped").exists());
    let agent = bench.agent(&[]);
    let checkout = bench.at("state/checkouts").join(&bench.run);
    let there = format!("{}\nfile\n", checkout.join("service").display());
    assert_eq!((bench.read("stopped"), bench.read("cleaned")), (there.clone(), there));
    wait_for("the end of the checkout", || (!checkout.exists()).then_some(()));
    drop(agent);
}

#[test]
fn after_a_crash_they_are_run_when_nobody_ends_them_any_more() {
    let server = Server::start();
    let bench = Bench::new(&server, TELLING);
    bench.commit("service/file", "");
    bench.take("2m");
    server.give(Claimed::Job(bench.job()));
    let agent = bench.agent(&[]);
    server.wait_for_stage(Stage::Smoke);
    let supervisor = running(&bench)["supervisor"]["pid"].as_i64().unwrap();
    let supervisor = Pid::from_raw(i32::try_from(supervisor).unwrap()).unwrap();
    // It comes late to what it does at the end of its agent.
    kill_process(supervisor, Signal::STOP).unwrap();
    agent.kill();
    let agent = bench.agent(&[]);
    wait_for("the agent's patience", || bench.log().contains("its supervisor is still at work").then_some(()));
    assert!(!bench.at("stopped").exists());
    kill_process(supervisor, Signal::CONT).unwrap();
    bench.read("stopped");
    bench.read("cleaned");
    drop(agent);
}

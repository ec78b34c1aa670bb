//! How an agent begins, and what it says when it should not.

use std::process::Command;

use plimsoll_domain::job::Stage;
use serde_json::json;

use super::server::{Claimed, Server};
use super::setup::Bench;

#[test]
fn two_agents_do_not_share_a_state_and_the_first_one_s_run_goes_on() {
    let server = Server::start();
    let bench = Bench::new(&server, "");
    let library = bench.nvml("-DALL");
    let with = |command: &mut Command| {
        command.env("PLIMSOLL_NVML", &library);
    };
    bench.configure_further("gpus = [\"0\"]");
    bench.take("3s");
    server.give(Claimed::Job(bench.job()));
    let first = bench.agent_with(&["--once"], with);
    server.wait_for_stage(Stage::Staircase);

    bench.configure(&server, "");
    bench.configure_further("gpus = [\"1\"]");
    let second = bench.agent_with(&["--once"], |command| {
        with(command);
        command.stderr(std::process::Stdio::null());
    });
    let (code, said) = second.wait();
    assert_eq!((code, &said["error"]["kind"]), (Some(2), &json!("locked")), "{said}");
    let message = said["error"]["message"].as_str().unwrap();
    let holder =
        format!("`state` {} is held by agent \"test runner\", process {}", bench.at("state").display(), first.id());
    assert_eq!(message, holder);

    assert_eq!(server.wait_for_report().run_id.to_string(), bench.run);
    assert_eq!(first.wait().0, Some(0));
    assert!(server.ended().is_empty());
}

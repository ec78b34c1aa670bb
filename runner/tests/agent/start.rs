//! How an agent begins, and what it says when it should not.

use std::process::Command;

use plimsoll_domain::job::Stage;
use serde_json::{Value, json};

use super::server::{Claimed, Server};
use super::setup::{Bench, wait_for};

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

#[test]
fn a_check_asks_whether_the_token_may_take_jobs_and_takes_none() {
    let server = Server::start();
    let bench = Bench::new(&server, "");
    server.give(Claimed::Job(bench.job()));
    assert_eq!(wrong(&bench, |_| {}), json!({}));
    assert!(server.asked().is_empty());

    server.refuse(403, json!({ "title": "Forbidden", "detail": "it needs the scope `agent`" }));
    let found = wrong(&bench, |_| {});
    let said = found[format!("server {}", server.address)].as_str().unwrap();
    for part in ["it needs the scope `agent`", "token_file"] {
        assert!(said.contains(part), "{part} in {said}");
    }
    assert!(!said.contains("--token"), "{said}");
}

#[test]
fn a_check_says_which_projects_the_token_does_not_reach() {
    let server = Server::start();
    let bench = Bench::new(&server, "");
    assert_eq!(wrong(&bench, |_| {}), json!({}), "a server that does not say");
    server.reach(json!({ "everywhere": true, "projects": [] }));
    assert_eq!(wrong(&bench, |_| {}), json!({}));
    server.reach(json!({ "everywhere": false, "projects": ["test", "other"] }));
    assert_eq!(wrong(&bench, |_| {}), json!({}));
    server.reach(json!({ "everywhere": false, "projects": ["other"] }));
    let found = wrong(&bench, |_| {});
    let said = found["token for test"].as_str().unwrap_or_else(|| panic!("{found}"));
    assert!(said.contains("--scope agent") && said.contains("--project test"), "{said}");
}

#[test]
fn a_check_finds_no_gpu_where_there_is_no_driver() {
    let server = Server::start();
    let bench = Bench::new(&server, "");
    let library = bench.nvml("-DNO_DRIVER");
    let with = |command: &mut Command| {
        command.env("PLIMSOLL_NVML", &library);
    };
    assert_eq!(wrong(&bench, with), json!({}), "none is named");
    bench.configure_further("gpus = [\"0\"]");
    let found = wrong(&bench, with);
    assert!(found["GPUs"].as_str().unwrap().contains("there is no GPU here"), "{found}");
}

#[test]
fn a_token_that_is_refused_is_named_at_the_start_whatever_else_is_in_the_way() {
    let server = Server::start();
    let bench = Bench::new(&server, "");
    let _other = std::net::TcpListener::bind(("127.0.0.1", bench.port)).unwrap();
    server.refuse(401, json!({ "title": "Unauthorized", "detail": "this token is not known here" }));
    let agent = bench.agent(&[]);
    wait_for("the agent's word", || bench.log().contains("no job is taken: port").then_some(()));
    let log = bench.log();
    for part in ["this token is not known here", "token_file"] {
        assert!(log.contains(part), "{part} in {log}");
    }
    assert!(!log.contains("works for") && !log.contains("--token"), "{log}");
    drop(agent);
}

/// What a check finds wrong.
fn wrong(bench: &Bench, change: impl FnOnce(&mut Command)) -> Value {
    let (_, checked) = bench.agent_with(&["--check"], change).wait();
    let list = checked["checks"].as_array().unwrap_or_else(|| panic!("{checked}"));
    let wrong = list.iter().filter(|one| !one["wrong"].is_null());
    wrong.map(|one| (one["what"].as_str().unwrap().to_owned(), one["wrong"].clone())).collect()
}

//! A job from its claim to its report, and how the agent ends.

use plimsoll_domain::ids::RunId;
use plimsoll_domain::job::{Ending, Stage};
use plimsoll_domain::report::{Report, Status};
use plimsoll_domain::synthetic::Synthetic;
use plimsoll_runner::outbox::Outbox;
use rustix::process::Signal;
use serde_json::json;

use super::server::{Claimed, Server};
use super::setup::{Bench, wait_for};

#[test]
fn a_job_is_measured_and_its_report_arrives() {
    let server = Server::start();
    let recipe = "start = 'env > \"$ROOT/seen\"; echo done > \"$ROOT/started\"; exec \"$SERVICE\" service --exact --ignored'\n\
                  clean_up = 'echo \"$PLIMSOLL_TAG\" > \"$ROOT/cleaned\"'\nimage = \"registry.example/test\"\n";
    let bench = Bench::new(&server, recipe);
    server.give(Claimed::Job(bench.job()));
    let (code, done) = bench.agent(&["--once"]).wait();
    assert_eq!((code, &done["jobs"]), (Some(0), &json!(1)), "{}", bench.log());

    let report = server.wait_for_report();
    assert_eq!((report.run_id.to_string(), report.project.as_str()), (bench.run.clone(), "test"));
    let head = bench.git(&["rev-parse", "HEAD"]);
    assert_eq!(report.revision.commit.as_ref().unwrap().as_str(), head.trim());
    assert_eq!((report.revision.tag.as_deref(), report.revision.dirty), (Some("v1.0.0"), false));
    assert_eq!(report.status, Status::Complete);
    assert!(server.ended().is_empty(), "the report is the end");
    let stages: Vec<Stage> =
        server.beats().iter().flat_map(|beat| &beat.progress).map(|progress| progress.stage).collect();
    for stage in [Stage::Checkout, Stage::Start, Stage::Smoke, Stage::Staircase, Stage::Stability] {
        assert!(stages.contains(&stage), "{stage:?} in {stages:?}");
    }
    let claim = &server.asked()[0];
    assert_eq!((&claim["runner"]["labels"]["gpu"], &claim["runner"]["projects"]), (&json!("none"), &json!(["test"])));

    let seen = bench.read("seen");
    for fact in [
        format!("PLIMSOLL_RUN_ID={}", bench.run),
        "PLIMSOLL_PROJECT=test".to_owned(),
        format!("PLIMSOLL_COMMIT={}", head.trim()),
        "PLIMSOLL_TAG=v1.0.0".to_owned(),
        "PLIMSOLL_PLAN=plimsoll.toml".to_owned(),
        "PLIMSOLL_IMAGE=registry.example/test:v1.0.0".to_owned(),
    ] {
        assert!(seen.lines().any(|line| line == fact), "{fact} in {seen}");
    }
    for secret in ["s3cret", "t0ken", "from-the-environment"] {
        assert!(!seen.contains(secret) && !bench.log().contains(secret), "{secret}");
    }
    assert_eq!(bench.read("cleaned"), "v1.0.0\n");
    assert_eq!(std::fs::read_dir(bench.at("state/checkouts")).unwrap().count(), 0);
    assert!(!bench.at("state/running.json").exists());
    let logs: Vec<_> =
        std::fs::read_dir(bench.at("state/logs")).unwrap().map(|entry| entry.unwrap().file_name()).collect();
    assert_eq!(logs, [format!("{}.log", bench.run).as_str()], "what was measured so far has given way to the report");
}

#[test]
fn an_image_is_pulled_by_the_revision_s_tag() {
    let server = Server::start();
    let engine = "#!/bin/sh\nfor word; do echo \"<$word>\"; done > \"$ROOT/pulled\"\n";
    let bench = Bench::new(&server, "");
    let path = bench.at("engine");
    std::fs::write(&path, engine).unwrap();
    std::fs::set_permissions(&path, std::os::unix::fs::PermissionsExt::from_mode(0o700)).unwrap();
    bench.configure(&server, &format!("image = \"registry.example/test\"\nengine = {path:?}\npull = true\n"));
    server.give(Claimed::Job(bench.job()));
    assert_eq!(bench.agent(&["--once"]).wait().0, Some(0));
    server.wait_for_report();
    assert_eq!(bench.read("pulled"), "<pull>\n<-->\n<registry.example/test:v1.0.0>\n");
}

#[test]
fn no_job_is_taken_while_somebody_else_has_the_port() {
    let server = Server::start();
    let bench = Bench::new(&server, "");
    let other = std::net::TcpListener::bind(("127.0.0.1", bench.port)).unwrap();
    let agent = bench.agent(&[]);
    let said = format!("no job is taken: port {} taken by another program", bench.port);
    wait_for("the agent's word", || bench.log().contains(&said).then_some(()));
    assert!(server.asked().is_empty());
    drop(other);
    server.wait_for_claims(1);
    drop(agent);
}

#[test]
fn after_a_run_that_left_the_port_taken_no_job_is_taken() {
    let server = Server::start();
    let wait = "clean_up = 'echo > \"$ROOT/cleaning\"; while [ ! -e \"$ROOT/bound\" ]; do sleep 0.05; done'\n";
    let bench = Bench::new(&server, wait);
    server.give(Claimed::Job(bench.job()));
    let agent = bench.agent(&[]);
    bench.read("cleaning");
    let other = std::net::TcpListener::bind(("127.0.0.1", bench.port)).unwrap();
    std::fs::write(bench.at("bound"), "").unwrap();
    let report = server.wait_for_report();
    let finding = report.findings.iter().find(|finding| finding.code == "host_not_free").unwrap();
    assert!(finding.message.contains(&format!("port {} still taken", bench.port)), "{finding:?}");
    wait_for("the agent's word", || bench.log().contains("no job is taken").then_some(()));
    assert_eq!(server.asked().len(), 1);
    drop(other);
    server.wait_for_claims(2);
    drop(agent);
}

#[test]
fn a_check_says_what_is_wrong_before_the_agent_is_left_alone() {
    let server = Server::start();
    let bench = Bench::new(&server, "");
    let (code, checked) = bench.agent(&["--check"]).wait();
    assert_eq!((code, &checked["ok"]), (Some(0), &json!(true)), "{checked:#}");
    std::fs::set_permissions(bench.at("token"), std::os::unix::fs::PermissionsExt::from_mode(0o644)).unwrap();
    bench.configure(&server, "repository = \"/nowhere\"\n");
    let (code, checked) = bench.agent(&["--check"]).wait();
    assert_eq!(code, Some(2));
    let text = checked.to_string();
    for said in ["chmod 600", "`git ls-remote` ended with exit code 128"] {
        assert!(text.contains(said), "{said} in {checked:#}");
    }
}

#[test]
fn a_pull_request_is_measured_by_the_plan_of_another_commit() {
    let server = Server::start();
    let bench = Bench::new(&server, "");
    let trusted = bench.git(&["rev-parse", "HEAD"]).trim().to_owned();
    bench.git(&["checkout", "--quiet", "-b", "topic"]);
    let head = bench.commit("plimsoll.toml", "project = \"nonsense\"\n");
    // As a host of repositories keeps it: no branch leads to it.
    bench.git(&["update-ref", "refs/pull/7/head", &head]);
    bench.git(&["checkout", "--quiet", "main"]);
    bench.git(&["branch", "--quiet", "-D", "topic"]);
    let mut job = bench.job();
    job["revision"] = json!({ "commit": head, "branch": "topic", "pull_request": 7 });
    job["plan_commit"] = json!(trusted);
    server.give(Claimed::Job(job));
    assert_eq!(bench.agent(&["--once"]).wait().0, Some(0));
    let report = server.wait_for_report();
    assert_eq!(report.revision.commit.unwrap().as_str(), head);
    assert_eq!(
        (report.revision.pull_request, report.revision.merge_base.unwrap().as_str()),
        (Some(7), trusted.as_str())
    );
}

#[test]
fn a_cancelled_job_is_stopped_and_said_to_be() {
    let server = Server::start();
    let bench = Bench::new(&server, "");
    bench.take("2m");
    server.give(Claimed::Job(bench.job()));
    let agent = bench.agent(&["--once"]);
    server.wait_for_stage(Stage::Smoke);
    server.answer_beats(200, json!({ "lease_s": 60, "cancel": "a newer commit was pushed" }));
    let ended = server.wait_for_end();
    assert_eq!((ended.how, ended.reason.as_str()), (Ending::Cancelled, "a newer commit was pushed"));
    assert_eq!(agent.wait().0, Some(0));
    assert!(server.reports().is_empty());
}

#[test]
fn a_job_that_is_another_s_by_now_is_given_up_without_a_word() {
    let server = Server::start();
    let bench = Bench::new(&server, "");
    bench.take("2m");
    server.give(Claimed::Job(bench.job()));
    let agent = bench.agent(&["--once"]);
    server.wait_for_stage(Stage::Smoke);
    server.answer_beats(409, json!({ "title": "the lease is over" }));
    let (code, done) = agent.wait();
    assert_eq!(code, Some(0));
    assert!(done["last"].as_str().unwrap().contains("the lease is over"), "{done}");
    assert!(server.reports().is_empty() && server.ended().is_empty());
}

#[test]
fn a_proxy_without_its_server_ends_no_run() {
    let server = Server::start();
    let bench = Bench::new(&server, "");
    server.give(Claimed::Job(bench.job()));
    let agent = bench.agent(&["--once"]);
    server.wait_for_stage(Stage::Smoke);
    server.answer_beats(404, json!("<html><body><h1>404 Not Found</h1></body></html>"));
    server.wait_for_beats(server.beats().len() + 3);
    server.answer_beats(200, json!({ "lease_s": 60 }));
    assert_eq!(server.wait_for_report().run_id.to_string(), bench.run);
    assert_eq!(agent.wait().0, Some(0));
    assert!(server.ended().is_empty() && bench.log().contains("does not hear the heartbeat (status 404"));
}

#[test]
fn a_report_that_the_server_does_not_take_holds_up_its_own_project_only() {
    let server = Server::start();
    let bench = Bench::new(&server, "");
    let of = |project: &str| {
        let run_id = RunId(uuid::Uuid::now_v7());
        Report { run_id, ..Synthetic { project: project.to_owned(), ..Synthetic::default() }.report() }
    };
    let outbox = Outbox::open(&bench.at("state/outbox")).unwrap();
    let lost = outbox.keep(&of("lost")).unwrap();
    server.forbid(Some("lost"));
    server.give(Claimed::Job(bench.job()));
    assert_eq!(bench.agent(&["--once"]).wait().0, Some(0));
    assert_eq!(server.wait_for_report().run_id.to_string(), bench.run);
    assert_eq!(outbox.pending().unwrap(), [lost]);

    let asked = server.asked().len();
    let own = of("test");
    outbox.keep(&own).unwrap();
    server.forbid(Some("test"));
    let agent = bench.agent(&[]);
    let said = "reports of all projects that could be measured wait to be sent";
    wait_for("the agent's word", || bench.log().contains(said).then_some(()));
    assert_eq!(server.asked().len(), asked, "the same run might be given out again");
    server.forbid(None);
    server.wait_for_claims(asked + 1);
    assert!(server.reports().iter().any(|report| report.run_id == own.run_id), "the report goes first");
    drop(agent);
}

#[test]
fn asked_to_end_while_it_waits_for_a_job_it_gives_back_what_may_be_on_its_way() {
    let server = Server::start();
    let bench = Bench::new(&server, "");
    server.give(Claimed::Stall(String::new()));
    let agent = bench.agent(&[]);
    server.wait_for_claims(1);
    agent.signal(Signal::TERM);
    assert_eq!(agent.wait().0, Some(0));
    let asked = server.asked();
    let last = asked.last().unwrap();
    assert_eq!((asked.len(), &last["runner"]["projects"], &last["wait_s"]), (2, &json!([]), &json!(0)), "{asked:?}");
}

#[test]
fn a_lease_that_cannot_be_renewed_stops_the_run() {
    let server = Server::start();
    let bench = Bench::new(&server, "");
    let mut job = bench.job();
    job["lease_s"] = json!(2);
    server.answer_beats(503, json!({ "title": "away" }));
    // Long enough to be under way when the lease is over.
    bench.commit(
        "plimsoll.toml",
        &bench.plan().replace("[stability]\nduration = \"1s\"", "[stability]\nduration = \"2m\""),
    );
    bench.git(&["tag", "--force", "v1.0.0"]);
    server.give(Claimed::Job(job));
    let (_, done) = bench.agent(&["--once"]).wait();
    assert!(done["last"].as_str().unwrap().contains("could not be renewed"), "{done}");
}

#[test]
fn asked_to_end_it_finishes_its_job_and_asked_again_it_gives_the_job_back() {
    let server = Server::start();
    let bench = Bench::new(&server, "");
    server.give(Claimed::Job(bench.job()));
    let agent = bench.agent(&[]);
    server.wait_for_stage(Stage::Smoke);
    agent.signal(Signal::TERM);
    server.wait_for_report();
    assert_eq!(agent.wait().0, Some(0));
    assert_eq!(server.asked().len(), 1, "no further job is asked for");
    let beats = server.beats();
    assert!(!beats[0].draining && beats.last().unwrap().draining, "the server is told that it is the last one");

    bench.take("2m");
    server.give(Claimed::Job(bench.job()));
    let agent = bench.agent(&[]);
    let beats = server.beats().len();
    wait_for("the second run", || {
        server.beats()[beats..].iter().flat_map(|beat| &beat.progress).any(|p| p.stage == Stage::Smoke).then_some(())
    });
    agent.signal(Signal::TERM);
    wait_for("the first signal", || bench.log().contains("no new job").then_some(()));
    agent.signal(Signal::TERM);
    let ended = server.wait_for_end();
    assert_eq!(ended.how, Ending::Released);
    assert_eq!(agent.wait().0, Some(0));
}

#[test]
fn a_server_that_does_not_know_of_draining_hears_the_heartbeats_all_the_same() {
    let server = Server::start();
    let bench = Bench::new(&server, "");
    server.be_old();
    server.give(Claimed::Job(bench.job()));
    let agent = bench.agent(&[]);
    server.wait_for_stage(Stage::Smoke);
    agent.signal(Signal::TERM);
    server.wait_for_stage(Stage::CleanUp);
    server.wait_for_report();
    assert_eq!(agent.wait().0, Some(0));
    assert_eq!(server.not_understood(), 1, "it is said once");
}

#[test]
fn a_report_that_cannot_be_sent_is_sent_by_the_next_agent() {
    let server = Server::start();
    let bench = Bench::new(&server, "");
    server.give(Claimed::Job(bench.job()));
    let agent = bench.agent(&[]);
    server.wait_for_stage(Stage::Stability);
    server.go_away(true);
    let kept = bench.at(&format!("state/outbox/{}.json.zst", bench.run));
    wait_for("the report on disk", || kept.exists().then_some(()));
    agent.kill();
    assert!(server.reports().is_empty());
    server.go_away(false);
    let agent = bench.agent(&[]);
    assert_eq!(server.wait_for_report().run_id.to_string(), bench.run);
    agent.signal(Signal::TERM);
    assert_eq!(agent.wait().0, Some(0));
}

#[test]
fn a_gpu_has_one_lock_however_it_is_named() {
    let server = Server::start();
    let bench = Bench::new(&server, "");
    let library = bench.nvml("-DALL");
    let with = |command: &mut std::process::Command| {
        command.env("PLIMSOLL_NVML", &library);
    };
    bench.configure_further("gpus = [\"0\"]");
    let _agent = bench.agent_with(&[], with);
    server.wait_for_claims(1);
    bench.configure(&server, "");
    bench.configure_further("gpus = [\"GPU-aaaa-1\"]");
    let (code, said) = bench.agent_with(&[], with).wait();
    assert_eq!(code, Some(2), "{said}");
    assert!(said.to_string().contains("GPU GPU-aaaa-1 is held by agent"), "{said}");
}

#[test]
fn two_agents_of_a_host_do_not_measure_at_once() {
    let server = Server::start();
    let bench = Bench::new(&server, "");
    let _agent = bench.agent(&[]);
    server.wait_for_claims(1);
    let other = std::process::Command::new(env!("CARGO_BIN_EXE_plimsoll"))
        .args(["agent", "--config"])
        .arg(bench.at("runner.toml"))
        .output()
        .unwrap();
    let said = String::from_utf8_lossy(&other.stderr).into_owned();
    assert_eq!(other.status.code(), Some(2), "{said}");
    assert!(said.contains("this host is held by agent \"test runner\", process"), "{said}");
}

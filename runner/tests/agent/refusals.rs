//! What cannot be measured ends with a reason that says why, without what the service wrote.

use plimsoll_domain::job::{Ended, Ending};
use serde_json::{Value, json};

use super::server::{Claimed, Server};
use super::setup::Bench;

fn ended(server: &Server, bench: &Bench, job: Value) -> Ended {
    server.give(Claimed::Job(job));
    let (code, _) = bench.agent(&["--once"]).wait();
    assert_eq!(code, Some(0), "{}", bench.log());
    assert!(server.reports().is_empty());
    server.wait_for_end()
}

#[test]
fn a_start_that_dies_is_told_by_its_exit_code_and_its_output_stays_here() {
    let server = Server::start();
    let bench = Bench::new(&server, "start = 'printf \"\\033[31mno such model\\n\" >&2; exit 7'\n");
    let ended = ended(&server, &bench, bench.job());
    assert_eq!(ended.how, Ending::Failed);
    assert!(ended.reason.contains("exit code 7"), "{}", ended.reason);
    let root = bench.root.path().display().to_string();
    assert!(!ended.reason.contains(&root) && bench.log().contains(&format!("{root}/state/logs/")), "{}", ended.reason);
    assert!(!ended.reason.contains("no such model"), "{}", ended.reason);
    assert!(bench.log().contains("[31mno such model") && !bench.log().contains('\u{1b}'), "{}", bench.log());
}

#[test]
fn a_service_that_never_gets_ready_is_given_up() {
    let server = Server::start();
    let bench =
        Bench::new(&server, "start = 'exec sleep 1000'\nready = { timeout = \"300ms\", interval = \"50ms\" }\n");
    let ended = ended(&server, &bench, bench.job());
    assert_eq!(ended.how, Ending::Failed);
    assert!(ended.reason.contains("not ready within 300ms: nobody listens on port"), "{}", ended.reason);
}

#[test]
fn a_plan_may_name_only_what_the_runner_lists() {
    let server = Server::start();
    let bench = Bench::new(&server, "");
    let plan = bench.plan().replace(&format!("127.0.0.1:{}", bench.port), "169.254.169.254");
    let commit = bench.commit("elsewhere.toml", &plan);
    let mut job = bench.job();
    job["revision"] = json!({ "commit": commit });
    job["plan"] = json!("elsewhere.toml");
    let ended = ended(&server, &bench, job);
    assert_eq!(ended.how, Ending::Failed);
    let allow = "add \"http://169.254.169.254\" to `origins` in [project.test] of the runner's runner.toml to allow it";
    assert!(ended.reason.contains(allow), "{}", ended.reason);
}

#[test]
fn a_plan_that_is_a_link_and_a_file_behind_a_link_are_not_read() {
    let server = Server::start();
    let bench = Bench::new(&server, "start = 'echo > \"$ROOT/started\"'\n");
    std::fs::write(bench.at("secret"), "\"s3cret\"\n").unwrap();
    let repository = bench.at("repository");
    std::os::unix::fs::symlink(bench.at("secret"), repository.join("linked.toml")).unwrap();
    std::os::unix::fs::symlink(bench.at("secret"), repository.join("link")).unwrap();
    bench.commit("file.toml", &bench.plan().replace("body = \"a\"", "file = \"link\""));
    for plan in ["linked.toml", "file.toml"] {
        let server = Server::start();
        bench.configure(&server, "start = 'echo > \"$ROOT/started\"'\n");
        let mut job = bench.job();
        job["revision"] = json!({ "branch": "main" });
        job["plan"] = json!(plan);
        let ended = ended(&server, &bench, job);
        assert!(ended.reason.contains("links are not followed"), "{}", ended.reason);
        assert!(!ended.reason.contains("s3cret"), "{}", ended.reason);
    }
    assert!(!bench.at("started").exists());
}

#[test]
fn a_revision_that_is_not_there_is_named() {
    for (revision, said) in [
        (json!({ "tag": "v9" }), "no tag \"v9\""),
        (json!({ "branch": "gone" }), "no branch \"gone\""),
        (json!({ "commit": "0123456789abcdef0123456789abcdef01234567" }), "no commit 0123456789"),
    ] {
        let server = Server::start();
        let bench = Bench::new(&server, "");
        let mut job = bench.job();
        job["revision"] = revision;
        let ended = ended(&server, &bench, job);
        assert_eq!(ended.how, Ending::Failed);
        assert!(ended.reason.contains(said), "{}", ended.reason);
    }
}

#[test]
fn what_the_service_answers_is_not_told_to_the_server() {
    let server = Server::start();
    let bench = Bench::new(&server, "");
    let plan = bench.plan() + "[workload.expect]\n\"/label\" = \"positive\"\n";
    let commit = bench.commit("strict.toml", &plan);
    let mut job = bench.job();
    job["revision"] = json!({ "commit": commit });
    job["plan"] = json!("strict.toml");
    let ended = ended(&server, &bench, job);
    assert!(ended.reason.contains("does not answer as the plan expects"), "{}", ended.reason);
    assert!(!ended.reason.contains("{}"), "{}", ended.reason);
}

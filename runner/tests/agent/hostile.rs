//! A server that means harm, or is broken: nothing of what it says is run, and the agent goes on.

use rustix::process::Signal;
use serde_json::{Value, json};

use super::server::{Claimed, Server};
use super::setup::Bench;

/// A recipe that tells when it was started.
const TELLTALE: &str = "start = 'echo > \"$ROOT/started\"'\n";

fn with(bench: &Bench, change: impl FnOnce(&mut Value)) -> Value {
    let mut job = bench.job();
    change(&mut job);
    job
}

#[test]
fn jobs_that_reach_beyond_their_revision_are_refused() {
    let bench = Bench::new(&Server::start(), TELLTALE);
    let odd_refs = ["--upload-pack=touch started", "-v", "a..b", "a:b", "@{u}", "a b", "$(touch started)~1", "a\nb"];
    let mut jobs: Vec<Value> =
        odd_refs.iter().map(|name| with(&bench, |job| job["revision"] = json!({ "tag": name }))).collect();
    jobs.extend(odd_refs.iter().map(|name| with(&bench, |job| job["revision"] = json!({ "branch": name }))));
    for plan in ["../plimsoll.toml", "/etc/passwd", "a/../../b", ".git/config", "", "a\u{0}b"] {
        jobs.push(with(&bench, |job| job["plan"] = json!(plan)));
    }
    jobs.push(with(&bench, |job| job["revision"] = json!({})));
    jobs.push(with(&bench, |job| job["revision"] = json!({ "tag": "v1.0.0", "pull_request": u64::MAX })));
    jobs.push(with(&bench, |job| job["lease_s"] = json!(u32::MAX)));
    jobs.push(with(&bench, |job| job["lease_s"] = json!(0)));
    jobs.push(with(&bench, |job| job["project"] = json!("unknown")));
    for job in jobs {
        let server = Server::start();
        bench.configure(&server, TELLTALE);
        server.give(Claimed::Job(job.clone()));
        let (code, _) = bench.agent(&["--once"]).wait();
        assert_eq!(code, Some(0), "{job}");
        let ended = server.wait_for_end();
        assert!(ended.reason.contains("this runner"), "{job}: {}", ended.reason);
    }
    assert!(!bench.at("started").exists());
}

#[test]
fn answers_that_are_none_are_outlived() {
    let json = "HTTP/1.1 200 X\r\ncontent-type: application/json\r\n";
    let server = Server::start();
    let bench = Bench::new(&server, TELLTALE);
    let text = |body: &str| Claimed::Raw(format!("{json}content-length: {}\r\n\r\n{body}", body.len()));
    let bad = [
        text("{"),
        text("{\"run_id\": 1e400}"),
        text(&"[".repeat(50_000)),
        text(&with(&bench, |job| job["project"] = json!("../../etc")).to_string()),
        text(&with(&bench, |job| job["run_id"] = json!("../../../etc")).to_string()),
        text(&with(&bench, |job| job["revision"] = json!({ "commit": "--upload-pack=x" })).to_string()),
        Claimed::Raw("HTTP/1.1 302 X\r\nlocation: http://169.254.169.254/\r\ncontent-length: 0\r\n\r\n".to_owned()),
        Claimed::Raw("nonsense\r\n\r\n".to_owned()),
        Claimed::Endless(format!("{json}content-length: 10737418240\r\n\r\n")),
    ];
    let claims = 2 * bad.len();
    for bad in bad {
        server.give(bad);
        // A good answer between them, so that the pauses stay short.
        server.give(Claimed::Raw("HTTP/1.1 204 X\r\n\r\n".to_owned()));
    }
    let agent = bench.agent(&[]);
    server.wait_for_claims(claims + 1);
    agent.signal(Signal::TERM);
    assert_eq!(agent.wait().0, Some(0), "{}", bench.log());
    assert!(!bench.at("started").exists() && server.ended().is_empty());
    let log = bench.log();
    for said in ["more than 65536 bytes", "redirects to", "EOF while parsing"] {
        assert!(log.contains(said), "{said} in {log}");
    }
}

#[test]
fn an_answer_that_stops_half_way_does_not_keep_the_agent_from_ending() {
    let server = Server::start();
    let bench = Bench::new(&server, TELLTALE);
    server.give(Claimed::Stall("HTTP/1.1 200 X\r\ncontent-length: 100\r\n\r\n{".to_owned()));
    let agent = bench.agent(&[]);
    server.wait_for_claims(1);
    agent.signal(Signal::TERM);
    assert_eq!(agent.wait().0, Some(0));
}

#[test]
fn a_pinned_load_beyond_the_limit_is_refused() {
    let server = Server::start();
    let bench = Bench::new(&server, "");
    server.pin(json!({ "workers": 4_000_000_000_u32, "capacity_workers": null, "run_id": null }));
    server.give(Claimed::Job(bench.job()));
    assert_eq!(bench.agent(&["--once"]).wait().0, Some(0));
    let ended = server.wait_for_end();
    assert!(ended.reason.contains("this runner allows 50"), "{}", ended.reason);
    assert!(server.requests().iter().all(|line| !line.contains("snapshots")), "nothing is sent");
}

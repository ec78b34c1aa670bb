//! The real program against a server: what it asks, what it sends, how it takes the answers.

mod support;

use std::io::{BufRead as _, BufReader, Read as _, Write as _};
use std::net::{TcpListener, TcpStream};
use std::path::Path;
use std::process::{Command, Stdio};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use plimsoll_domain::comparison::Comparison;
use plimsoll_domain::noise::Noise;
use plimsoll_domain::policy::Policy;
use plimsoll_domain::report::Report;
use plimsoll_domain::synthetic::Synthetic;
use plimsoll_domain::verdict::{Baseline, judge};
use serde_json::{Value, json};

/// A request as a server sees it, its body unpacked.
#[derive(Debug, Clone)]
struct Seen {
    line: String,
    headers: String,
    body: Vec<u8>,
}

/// A server of status and JSON, decided by a function of the request and its number.
struct Fake {
    address: String,
    seen: Arc<Mutex<Vec<Seen>>>,
}

impl Fake {
    fn start(answer: impl Fn(&Seen, usize) -> (u16, Value) + Send + Sync + 'static) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let address = format!("http://{}", listener.local_addr().unwrap());
        let seen = Arc::new(Mutex::new(Vec::new()));
        let (kept, answer) = (seen.clone(), Arc::new(answer));
        std::thread::spawn(move || {
            for stream in listener.incoming().flatten() {
                let (kept, answer) = (kept.clone(), answer.clone());
                std::thread::spawn(move || serve(stream, &kept, &*answer));
            }
        });
        Self { address, seen }
    }

    fn seen(&self) -> Vec<Seen> {
        self.seen.lock().unwrap().clone()
    }
}

/// Answers one request, then closes.
fn serve(stream: TcpStream, seen: &Mutex<Vec<Seen>>, answer: &dyn Fn(&Seen, usize) -> (u16, Value)) -> Option<()> {
    let mut reader = BufReader::new(stream.try_clone().ok()?);
    let mut head = String::new();
    while !head.ends_with("\r\n\r\n") {
        if reader.read_line(&mut head).ok()? == 0 {
            return None;
        }
    }
    let head = head.to_ascii_lowercase();
    let length = head.lines().find_map(|line| line.strip_prefix("content-length: ")?.parse().ok()).unwrap_or(0);
    let mut body = vec![0; length];
    reader.read_exact(&mut body).ok()?;
    if head.contains("content-encoding: gzip") {
        let mut plain = Vec::new();
        flate2::read::GzDecoder::new(&body[..]).read_to_end(&mut plain).ok()?;
        body = plain;
    }
    if head.contains("content-encoding: zstd") {
        body = zstd::decode_all(&body[..]).ok()?;
    }
    let (line, headers) = head.split_once("\r\n")?;
    let request = Seen { line: line.to_owned(), headers: headers.to_owned(), body };
    let number = {
        let mut seen = seen.lock().unwrap();
        seen.push(request.clone());
        seen.len() - 1
    };
    let (status, json) = answer(&request, number);
    let body = json.to_string();
    let head = format!("HTTP/1.1 {status} X\r\nconnection: close\r\ncontent-length: {}\r\n\r\n", body.len());
    (&stream).write_all((head + &body).as_bytes()).ok()
}

fn plimsoll(folder: &Path, arguments: &[&str]) -> (i32, Value) {
    let output = Command::new(env!("CARGO_BIN_EXE_plimsoll"))
        .args(arguments)
        .arg("--json")
        .current_dir(folder)
        .env_clear()
        .env("PLIMSOLL_TOKEN", "t0ken")
        .stdin(Stdio::null())
        .output()
        .unwrap();
    let document = serde_json::from_slice(&output.stdout).unwrap_or_else(|error| panic!("{error}: {output:?}"));
    (output.status.code().unwrap(), document)
}

fn release(tag: &str, service_ms: f64) -> Report {
    Synthetic { tag: Some(tag.to_owned()), service_ms, ..Synthetic::default() }.report()
}

fn regressed() -> Comparison {
    let (old, new) = (release("v1", 40.0), release("v2", 70.0));
    let baseline = Baseline { runs: vec![&old], chosen_because: Some("the previous release".to_owned()) };
    judge(Some(&baseline), &new, &Policy::default(), &Noise::default())
}

fn uploaded(comparison: &Comparison, created: bool) -> Value {
    let run_id = comparison.candidate.run_ids[0];
    json!({ "run_id": run_id, "url": "http://server/compare/1", "comparison": comparison, "created": created })
}

fn folder_with_report() -> tempfile::TempDir {
    let folder = tempfile::tempdir().unwrap();
    std::fs::write(folder.path().join("a.json"), release("v1", 40.0).to_json()).unwrap();
    folder
}

/// A plan of about four seconds for a service at `url`; nothing in it pins the load.
fn folder_with_plan(url: &str) -> tempfile::TempDir {
    let folder = tempfile::tempdir().unwrap();
    let plan = format!(
        "project = \"test\"\n[service]\nurl = \"{url}/predict\"\n[workload]\nbody = \"a\"\n[smoke]\nduration = \"1s\"\n\
         [warm_up]\nmin_requests = 2\nmax_duration = \"100ms\"\ntop = \"100ms\"\n\
         [staircase]\nworkers = [2]\nstep = \"1s\"\nsearch = false\n[stability]\nduration = \"1s\"\n\
         [gate]\np99 = {{ max_increase = \"20%\" }}\n"
    );
    std::fs::write(folder.path().join("plimsoll.toml"), plan).unwrap();
    folder
}

fn model() -> support::Server {
    support::Server::start(64, Duration::from_millis(2), |_| support::ok("{}"))
}

#[test]
fn gate_runs_at_the_pinned_load_and_ends_by_the_server_s_verdict() {
    let model = model();
    let folder = folder_with_plan(&format!("http://{}", model.address));
    let server = Fake::start(|seen, _| match seen.line.starts_with("get ") {
        true => (200, json!({ "workers": 4, "capacity_workers": 9, "run_id": null })),
        false => (201, uploaded(&regressed(), true)),
    });
    let arguments = ["gate", "--server", &server.address, "--output", "r.json", "--revision", "v2"];
    let (code, document) = plimsoll(folder.path(), &arguments);
    assert_eq!((code, &document["exit_code"], &document["verdict"]), (1, &json!(1), &json!("regressed")));
    assert_eq!(document["url"], "http://server/compare/1");
    assert_eq!(document["comparison"]["verdict"], "regressed");
    let stability = &document["stability"];
    assert_eq!((&stability["workers"], &stability["load_choice"]), (&json!(4), &json!("pinned")));

    let [token, asked, sent] = &server.seen()[..] else { panic!("{:?}", server.seen()) };
    assert!(token.line.starts_with("post /api/v1/snapshots ") && token.body.is_empty(), "{token:?}");
    let report = Report::from_json(&sent.body).unwrap();
    let query = format!("?plan={}&testbed={} ", report.plan_digest, report.testbed.fingerprint());
    assert!(asked.line.starts_with(&format!("get /api/v1/projects/test/pinned-load{query}")), "{}", asked.line);
    assert!(sent.line.starts_with("post /api/v1/snapshots "), "{}", sent.line);
    for seen in [asked, sent] {
        assert!(seen.headers.contains("authorization: bearer t0ken\r\n"), "{}", seen.headers);
    }
    assert_eq!(std::fs::read(folder.path().join("r.json")).unwrap(), sent.body);
}

#[test]
fn a_verdict_that_does_not_gate_says_so_and_ends_as_it_would() {
    let model = model();
    let folder = folder_with_plan(&format!("http://{}", model.address));
    let server = Fake::start(|seen, _| match seen.line.starts_with("get ") {
        true => (200, json!({ "workers": 4, "capacity_workers": 9, "run_id": null })),
        false => {
            let mut answer = uploaded(&regressed(), true);
            answer["gates"] = json!(false);
            answer["gates_not_because"] = json!("nobody vouched for it");
            (201, answer)
        }
    });
    let arguments = ["gate", "--server", &server.address, "--output", "r.json", "--summary", "s.md"];
    let (code, document) = plimsoll(folder.path(), &arguments);
    assert_eq!((code, &document["verdict"], &document["gates"]), (1, &json!("regressed"), &json!(false)));
    assert_eq!(document["gates_not_because"], "nobody vouched for it");
    let summary = std::fs::read_to_string(folder.path().join("s.md")).unwrap();
    assert!(summary.contains("**This verdict does not gate:** nobody vouched for it\n"), "{summary}");
}

#[test]
fn gate_keeps_the_report_when_the_server_is_gone() {
    let model = model();
    let folder = folder_with_plan(&format!("http://{}", model.address));
    let server = Fake::start(|_, _| (503, json!({ "title": "Down", "detail": "for maintenance" })));
    let (code, document) =
        plimsoll(folder.path(), &["gate", "--server", &server.address, "--output", "r.json", "--retry-for", "1s"]);
    assert_eq!((code, &document["exit_code"]), (5, &json!(5)), "{document:#}");
    assert!(document["error"]["message"].as_str().unwrap().contains("Down: for maintenance"), "{document:#}");
    assert!(document["error"]["hint"].as_str().unwrap().contains("plimsoll upload r.json"), "{document:#}");
    assert!(document["stability"]["workers"].is_number());
    let report = Report::from_json(&std::fs::read(folder.path().join("r.json")).unwrap()).unwrap();
    assert!(report.findings.iter().any(|finding| finding.code == "pinned_load_unknown"));
}

#[test]
fn gate_measures_nothing_when_its_token_is_refused() {
    let model = model();
    let folder = folder_with_plan(&format!("http://{}", model.address));
    let server = Fake::start(|seen, _| (if seen.line.starts_with("post ") { 401 } else { 404 }, json!({})));
    let (code, document) = plimsoll(folder.path(), &["gate", "--server", &server.address]);
    assert_eq!((code, &document["error"]["kind"]), (2, &json!("refused")), "{document:#}");
    assert_eq!(model.requests.load(std::sync::atomic::Ordering::Relaxed), 0);
}

#[test]
fn pr_without_a_pinned_load_is_no_baseline_and_sends_no_load() {
    let model = model();
    let folder = folder_with_plan(&format!("http://{}", model.address));
    let server = Fake::start(|seen, _| match seen.line.starts_with("post ") {
        true => (400, json!({ "title": "No report" })),
        false => (404, json!({ "title": "No pinned load" })),
    });
    let (code, document) = plimsoll(folder.path(), &["gate", "--server", &server.address, "--profile", "pr"]);
    assert_eq!((code, &document["error"]["kind"]), (6, &json!("no_baseline")), "{document:#}");
    assert_eq!(model.requests.load(std::sync::atomic::Ordering::Relaxed), 0);
}

#[test]
fn what_is_no_plimsoll_server_is_told_before_the_run() {
    let model = model();
    let folder = folder_with_plan(&format!("http://{}", model.address));
    for (command, status) in [("gate", 404), ("gate", 405), ("gate", 302), ("run", 404), ("run", 405), ("run", 301)] {
        let server = Fake::start(move |_, _| (status, json!({ "hello": "world" })));
        let (code, document) = plimsoll(folder.path(), &[command, "--server", &server.address]);
        assert_eq!((code, &document["error"]["kind"]), (2, &json!("refused")), "{command} {status}: {document:#}");
        let hint = document["error"]["hint"].as_str().unwrap();
        assert!(hint.contains("is --server the address of a Plimsoll server?"), "{hint}");
        assert_eq!(model.requests.load(std::sync::atomic::Ordering::Relaxed), 0);
    }
}

#[test]
fn an_answer_that_breaks_off_is_asked_for_again() {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let address = format!("http://{}", listener.local_addr().unwrap());
    let answer = uploaded(&regressed(), false).to_string();
    let server = std::thread::spawn(move || {
        for (number, mut stream) in listener.incoming().flatten().take(2).enumerate() {
            let seen = Mutex::new(Vec::new());
            let kept = stream.try_clone().unwrap();
            if number == 1 {
                let whole: Value = serde_json::from_str(&answer).unwrap();
                serve(stream, &seen, &move |_, _| (200, whole.clone()));
                continue;
            }
            // Half of an answer, once the whole request is there: what was not read would reset the connection.
            let mut reader = BufReader::new(kept);
            let mut line = String::new();
            let mut length = 0;
            while reader.read_line(&mut line).unwrap() > 2 {
                let value = line.to_ascii_lowercase();
                length = value.strip_prefix("content-length: ").map_or(length, |value| value.trim().parse().unwrap());
                line.clear();
            }
            reader.read_exact(&mut vec![0; length]).unwrap();
            let head = format!("HTTP/1.1 200 X\r\nconnection: close\r\ncontent-length: {}\r\n\r\n", answer.len());
            stream.write_all((head + &answer[..answer.len() / 2]).as_bytes()).unwrap();
        }
    });
    let folder = folder_with_report();
    let (code, document) = plimsoll(folder.path(), &["upload", "a.json", "--server", &address]);
    assert_eq!((code, &document["created"]), (0, &json!(false)), "{document:#}");
    server.join().unwrap();
}

#[test]
fn an_upload_outlives_a_restart_of_the_server() {
    let folder = folder_with_report();
    let server = Fake::start(|_, number| match number {
        0 => (503, json!({})),
        1 => (429, json!({})),
        _ => (200, uploaded(&regressed(), false)),
    });
    let (code, document) = plimsoll(folder.path(), &["upload", "a.json", "--server", &server.address]);
    assert_eq!((code, &document["created"], &document["verdict"]), (0, &json!(false), &json!("regressed")));
    let seen = server.seen();
    assert_eq!(seen.len(), 3);
    assert!(seen.iter().all(|seen| seen.body == seen_first(&server)), "the same report each time");
}

#[test]
fn a_server_that_does_not_know_zstd_gets_gzip() {
    let server = Fake::start(|seen, _| match seen.headers.contains("content-encoding: gzip") {
        true => (201, uploaded(&regressed(), true)),
        false => (415, json!({ "title": "Unsupported Media Type", "detail": "send the report plain or with gzip" })),
    });
    let folder = folder_with_report();
    let (code, document) = plimsoll(folder.path(), &["upload", "a.json", "--server", &server.address]);
    assert_eq!((code, &document["created"]), (0, &json!(true)), "{document}");
    let seen = server.seen();
    assert_eq!(seen.len(), 2);
    assert!(seen[0].headers.contains("content-encoding: zstd"), "{}", seen[0].headers);
    assert_eq!(seen[0].body, seen[1].body, "the same report");
}

#[test]
fn a_wait_for_the_server_says_what_for_and_for_how_long() {
    let folder = folder_with_report();
    let server = Fake::start(|_, _| (503, json!({ "title": "Down" })));
    let output = Command::new(env!("CARGO_BIN_EXE_plimsoll"))
        .args(["upload", "a.json", "--server", &server.address, "--retry-for", "1500ms"])
        .current_dir(folder.path())
        .env_clear()
        .output()
        .unwrap();
    let told = String::from_utf8_lossy(&output.stderr);
    assert_eq!(output.status.code(), Some(5), "{told}");
    assert!(told.contains(&format!("waiting for {}: Down; 1 try so far, the next in", server.address)), "{told}");
    assert!(told.contains("giving up in"), "{told}");
}

fn seen_first(server: &Fake) -> Vec<u8> {
    server.seen()[0].body.clone()
}

#[test]
fn a_refusal_is_shown_in_the_server_s_words_and_not_repeated() {
    let folder = folder_with_report();
    for (status, ends) in [(400, 3), (401, 2), (403, 2), (404, 2), (409, 3), (413, 3), (422, 3), (301, 2)] {
        let server = Fake::start(move |_, _| (status, json!({ "title": "No", "detail": "because\u{1b}[31m of it" })));
        let (code, document) = plimsoll(folder.path(), &["upload", "a.json", "--server", &server.address]);
        let message = document["error"]["message"].as_str().unwrap();
        assert_eq!((code, server.seen().len()), (ends, 1), "{status}: {document:#}");
        assert!(status == 301 || message.contains("No: because[31m of it"), "{status}: {message}");
        // What is refused for good is not worth sending later.
        let later = document["error"]["hint"].as_str().unwrap().contains("send it later");
        assert_eq!(later, !matches!(status, 400 | 409 | 413 | 422), "{status}: {document:#}");
    }
}

#[test]
fn an_answer_that_is_none_is_no_success() {
    let folder = folder_with_report();
    let server = Fake::start(|_, _| (200, json!({ "hello": "world" })));
    let (code, document) = plimsoll(folder.path(), &["upload", "a.json", "--server", &server.address]);
    assert_eq!((code, &document["error"]["kind"]), (5, &json!("strange_answer")), "{document:#}");
}

#[test]
fn policy_push_sends_the_plan_s_thresholds() {
    let folder = folder_with_plan("http://h");
    let server = Fake::start(|_, _| (200, json!({})));
    let (code, document) = plimsoll(folder.path(), &["policy", "push", "--server", &server.address]);
    assert_eq!((code, &document["policy"]["p99_increase"]), (0, &json!(0.2)), "{document:#}");
    let [sent] = &server.seen()[..] else { panic!("{:?}", server.seen()) };
    assert!(sent.line.starts_with("put /api/v1/projects/test/policy "), "{}", sent.line);
    let policy: Policy = serde_json::from_slice(&sent.body).unwrap();
    assert_eq!(policy, Policy { p99_increase: 0.2, ..Policy::default() });
}

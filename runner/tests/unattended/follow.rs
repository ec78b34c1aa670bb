//! Runs that the server has others carry out: asked for, followed over broken streams, ended.

use std::io::{BufRead as _, BufReader, Read as _, Write as _};
use std::net::{TcpListener, TcpStream};
use std::sync::{Arc, Mutex};

use serde_json::{Value, json};

use crate::plimsoll;

const RUN: &str = "01890a5d-ac96-774b-bcce-b302099a8057";

/// A server that answers by a script: the request's head and body go in, the whole answer comes out.
struct Scripted {
    address: String,
    seen: Arc<Mutex<Vec<(String, Value)>>>,
}

impl Scripted {
    fn start(answer: impl Fn(&str, usize) -> String + Send + Sync + 'static) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let address = format!("http://{}", listener.local_addr().unwrap());
        let seen = Arc::new(Mutex::new(Vec::new()));
        let kept = seen.clone();
        std::thread::spawn(move || {
            for stream in listener.incoming().flatten() {
                let _ = serve(stream, &kept, &answer);
            }
        });
        Self { address, seen }
    }

    fn heads(&self, of: &str) -> Vec<String> {
        self.seen.lock().unwrap().iter().map(|(head, _)| head.clone()).filter(|head| head.starts_with(of)).collect()
    }
}

/// One request, one answer; `answer` hears how many requests to the same path came before.
fn serve(
    mut stream: TcpStream,
    seen: &Mutex<Vec<(String, Value)>>,
    answer: &impl Fn(&str, usize) -> String,
) -> std::io::Result<()> {
    let mut reader = BufReader::new(stream.try_clone()?);
    let mut head = String::new();
    while !head.ends_with("\r\n\r\n") {
        if reader.read_line(&mut head)? == 0 {
            return Ok(());
        }
    }
    let head = head.to_ascii_lowercase();
    let length = head.lines().find_map(|line| line.strip_prefix("content-length: ")?.parse().ok()).unwrap_or(0);
    let mut body = vec![0; length];
    reader.read_exact(&mut body)?;
    let before = {
        let mut seen = seen.lock().unwrap();
        let line = head.lines().next().unwrap_or_default().to_owned();
        let before = seen.iter().filter(|(head, _)| head.starts_with(&line)).count();
        seen.push((head.clone(), serde_json::from_slice(&body).unwrap_or_default()));
        before
    };
    stream.write_all(answer(&head, before).as_bytes())
}

fn answer(status: u16, body: &Value) -> String {
    let body = body.to_string();
    format!("HTTP/1.1 {status} X\r\nconnection: close\r\ncontent-length: {}\r\n\r\n{body}", body.len())
}

/// A stream that ends with its connection.
fn stream(events: &str) -> String {
    format!("HTTP/1.1 200 X\r\nconnection: close\r\ncontent-type: text/event-stream\r\n\r\n{events}")
}

fn event(seq: u64, mut what: Value) -> String {
    what["seq"] = json!(seq);
    what["at"] = json!("2025-11-25T14:06:08Z");
    format!("event: {}\nid: {seq}\ndata: {what}\n\n", what["type"].as_str().unwrap())
}

fn state(seq: u64, state: &str) -> String {
    event(seq, json!({ "type": "state", "state": state, "attempt": 1, "runner": "a10-1" }))
}

fn progress(seq: u64, workers: u32) -> String {
    event(seq, json!({ "type": "progress", "elapsed_ms": 1, "stage": "staircase", "workers": workers }))
}

fn run(state: &str, more: Value) -> Value {
    let mut run = json!({
        "run_id": RUN, "project": "test", "kind": "measure", "state": state, "label": "v2", "revision": { "tag": "v2" },
        "attempt": 1, "max_attempts": 3, "labels": {}, "requested_by": "token", "created_at": "2025-11-25T14:06:08Z",
        "last_seq": 0, "path": "/test/runs/1",
    });
    run.as_object_mut().unwrap().extend(more.as_object().unwrap().clone());
    run
}

fn done() -> Value {
    run("done", json!({ "verdict": "regressed", "sentence": "P99 rose." }))
}

fn json_of(server: &Scripted, arguments: &[&str]) -> (i32, Value, String) {
    let folder = tempfile::tempdir().unwrap();
    let output = plimsoll(folder.path(), arguments).args(["--json", "--server", &server.address]).output().unwrap();
    let told = String::from_utf8_lossy(&output.stderr).into_owned();
    let document = serde_json::from_slice(&output.stdout).unwrap_or_else(|error| panic!("{error}: {output:?}"));
    (output.status.code().unwrap(), document, told)
}

#[test]
fn a_broken_stream_goes_on_after_the_last_event_and_the_verdict_ends_it() {
    let server = Scripted::start(|head, before| match (head.contains("/events "), before) {
        (false, 0..=2) => answer(200, &run("running", json!({}))),
        (false, _) => answer(200, &done()),
        // The third event breaks off in its middle.
        (true, 0) => stream(&(state(1, "leased") + &state(2, "running") + &progress(3, 5)[..30])),
        (true, 1) => answer(503, &json!({})),
        // A server that sends one again does no harm.
        (true, _) => {
            let verdict = json!({ "type": "verdict", "verdict": "regressed", "sentence": "P99 rose.", "path": "/x" });
            stream(&(": hello\n\n".to_owned() + &state(2, "running") + &progress(3, 5) + &event(4, verdict)))
        }
    });
    let (code, document, told) = json_of(&server, &["watch", RUN]);
    assert_eq!((code, &document["verdict"], &document["exit_code"]), (1, &json!("regressed"), &json!(1)), "{told}");
    assert_eq!(document["url"], json!(format!("{}/test/runs/1", server.address)));
    let page = told.find(&format!("Page        {}/test/runs/1\n", server.address)).expect("the page's address");
    assert!(page < told.find("preparing on").unwrap(), "it is there at once: {told}");
    let lines = |part: &str| told.lines().filter(|line| line.contains(part)).count();
    assert_eq!((lines("preparing on a10-1"), lines("running on"), lines("staircase, 5 workers")), (1, 1, 1));
    let asked = server.heads(&format!("get /api/v1/runs/{RUN}/events "));
    let last: Vec<bool> = asked.iter().map(|head| head.contains("last-event-id: 2\r\n")).collect();
    assert_eq!(last, [false, true, true], "{asked:?}");
    assert!(asked[0].contains("accept: text/event-stream\r\n"), "{}", asked[0]);
}

#[test]
fn a_run_that_comes_to_no_verdict_ends_with_3_and_says_why() {
    for (state, reason) in
        [("failed", "the service did not start"), ("cancelled", "by hand"), ("expired", "runner lost")]
    {
        let server = Scripted::start(move |_, _| answer(200, &run(state, json!({ "reason": reason }))));
        let (code, document, _) = json_of(&server, &["watch", RUN]);
        assert_eq!((code, &document["state"], &document["reason"]), (3, &json!(state), &json!(reason)));
    }
}

#[test]
fn a_run_that_nobody_knows_or_a_server_that_is_gone_is_an_error() {
    let server = Scripted::start(|_, _| answer(404, &json!({ "title": "No such run" })));
    for arguments in [&["watch", RUN][..], &["cancel", RUN, "--reason", "wrong tag"]] {
        let (code, document, _) = json_of(&server, arguments);
        assert_eq!((code, &document["error"]["kind"]), (2, &json!("refused")));
        let hint = document["error"]["hint"].as_str().unwrap();
        assert!(hint.contains("a run of this server") && !hint.contains("address"), "{hint}");
    }
    let server = Scripted::start(|_, _| answer(503, &json!({ "title": "Away" })));
    let (code, document, told) = json_of(&server, &["watch", RUN, "--retry-for", "1s"]);
    assert_eq!((code, &document["error"]["kind"]), (5, &json!("unreachable")));
    assert!(told.contains("waiting for") && told.contains("Away") && told.contains("giving up in"), "{told}");
}

#[test]
fn submit_asks_for_what_was_named_and_waits_when_told() {
    let server = Scripted::start(|head, _| match head.starts_with("post ") {
        true => answer(201, &run("queued", json!({}))),
        false => answer(200, &done()),
    });
    let asked = ["submit", "--project", "test", "--tag", "v2", "--plan", "ci/plimsoll.toml", "--profile", "quick"];
    let more = ["--label", "gpu=A10", "--pull-request", "7"];
    let arguments: Vec<&str> = asked.into_iter().chain(more).collect();
    let (code, document, _) = json_of(&server, &arguments);
    assert_eq!((code, &document["run_id"], &document["state"]), (0, &json!(RUN), &json!("queued")));
    let sent = server.seen.lock().unwrap()[0].1.clone();
    assert!(sent["run_id"].is_string());
    assert_eq!((&sent["revision"], &sent["profile"]), (&json!({ "tag": "v2", "pull_request": 7 }), &json!("quick")));
    assert_eq!((&sent["labels"], &sent["plan"]), (&json!({ "gpu": "A10" }), &json!("ci/plimsoll.toml")));

    let (code, document, _) = json_of(&server, &["submit", "--project", "test", "--tag", "v2", "--wait"]);
    assert_eq!((code, &document["verdict"]), (1, &json!("regressed")));
    for wrong in [&["--tag", "-x"][..], &[], &["--branch", "a..b"], &["--tag", "v1", "--plan", "../p.toml"]] {
        let arguments: Vec<&str> = ["submit", "--project", "test"].into_iter().chain(wrong.iter().copied()).collect();
        assert_eq!(json_of(&server, &arguments).0, 2, "{wrong:?}");
    }
}

#[test]
fn cancel_tells_the_reason() {
    let server = Scripted::start(|_, _| answer(200, &run("cancelled", json!({ "reason": "wrong tag" }))));
    let (code, document, _) = json_of(&server, &["cancel", RUN, "--reason", "wrong tag"]);
    assert_eq!((code, &document["state"]), (0, &json!("cancelled")));
    let (head, body) = server.seen.lock().unwrap()[0].clone();
    assert!(head.starts_with(&format!("post /api/v1/runs/{RUN}/cancel ")), "{head}");
    assert_eq!(body, json!({ "reason": "wrong tag" }));
}

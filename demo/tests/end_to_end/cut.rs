//! Runner and server over a network that breaks, and runs that are asked for, followed and ended.

use std::io::{BufRead as _, BufReader, Read as _, Write as _};
use std::net::{Shutdown, TcpListener, TcpStream};
use std::path::Path;
use std::process::Stdio;

use plimsoll_domain::report::{Report, Status, Window};
use plimsoll_domain::synthetic::Synthetic;
use serde_json::{Value, json};

use crate::support::{Serving, is_busy, program};

/// A server, and what it takes to talk to it.
struct Host {
    server: Serving,
    folder: tempfile::TempDir,
    token: String,
}

impl Host {
    fn start() -> Self {
        // As root, Postgres runs as another user, who must pass through.
        let everyone = std::os::unix::fs::PermissionsExt::from_mode(0o755);
        let folder = tempfile::Builder::new().permissions(everyone).tempdir().expect("a temporary directory");
        let server = Serving::server(folder.path());
        let token = std::fs::read_to_string(folder.path().join("token")).expect("the server's token");
        Self { server, token: token.trim().to_owned(), folder }
    }

    fn plimsoll(&self, server: &str, args: &[&str]) -> std::process::Command {
        let mut command = program();
        command.arg("runner").args(args).args(["--json", "--server", server]).env("PLIMSOLL_TOKEN", &self.token);
        command.current_dir(self.folder.path()).stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::piped());
        command
    }

    fn json(&self, server: &str, args: &[&str]) -> (Option<i32>, Value) {
        let output = self.plimsoll(server, args).output().expect("the program starts");
        let document = serde_json::from_slice(&output.stdout);
        (output.status.code(), document.unwrap_or_else(|error| panic!("{error}: {output:?}")))
    }
}

/// A report that needs parts, since nothing in it repeats.
fn large() -> Report {
    let mut report = Synthetic::default().report();
    let mut chance: u64 = 1;
    let mut next = || {
        chance = chance.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1);
        chance >> 34
    };
    let step = &mut report.phases.last_mut().expect("phases").steps[0];
    let window = |_| Window { ok: next(), latency_sum_us: next(), latency_max_us: next(), ..Window::default() };
    step.windows = (0..90_000).map(window).collect();
    report
}

#[test]
fn a_large_report_arrives_over_connections_that_break() {
    let _turn = is_busy();
    let host = Host::start();
    let report = large();
    std::fs::write(host.folder.path().join("large.json"), report.to_json()).expect("the report is written");
    let cuts = [0, 90, 500, 100_000, 700_000, 1_100_000, 20_000];
    let between = breaking(host.server.address.trim_start_matches("http://"), &cuts);
    let (code, document) = host.json(&between, &["upload", "large.json"]);
    assert_eq!((code, &document["created"]), (Some(0), &json!(true)), "{document:#}");
    let (code, again) = host.json(&host.server.address, &["upload", "large.json"]);
    assert_eq!((code, &again["created"]), (Some(0), &json!(false)), "{again:#}");

    let path = format!("{}/api/v1/snapshots/{}/report", host.server.address, report.run_id);
    let stored = get(&path, &host.token);
    assert_eq!(Report::from_json(&stored).expect("a report"), report);

    // What a killed run leaves is taken as what it is.
    let run_id = "01890a5d-ac96-774b-bcce-b302099a8099".parse().expect("a run id");
    let mut partial = Report { run_id, status: Status::Interrupted, ..Synthetic::default().report() };
    partial.phases.truncate(2);
    std::fs::write(host.folder.path().join("a.partial.json"), partial.to_json()).expect("it is written");
    let (code, document) = host.json(&host.server.address, &["upload", "a.partial.json"]);
    assert_eq!((code, &document["verdict"]), (Some(0), &json!("invalid")), "{document:#}");
}

fn get(url: &str, token: &str) -> Vec<u8> {
    let _ = rustls::crypto::ring::default_provider().install_default();
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().expect("a runtime");
    runtime.block_on(async {
        let answer = reqwest::Client::new().get(url).bearer_auth(token).send().await.expect("an answer");
        assert!(answer.status().is_success(), "{}", answer.status());
        answer.bytes().await.expect("its body").to_vec()
    })
}

/// The address of something between runner and server whose first connections break after so many bytes sent.
fn breaking(server: &str, cuts: &[usize]) -> String {
    let listener = TcpListener::bind("127.0.0.1:0").expect("a port");
    let address = format!("http://{}", listener.local_addr().expect("its address"));
    let (server, cuts) = (server.to_owned(), cuts.to_vec());
    std::thread::spawn(move || {
        let mut cuts = cuts.into_iter();
        for client in listener.incoming().flatten() {
            let left = cuts.next().unwrap_or(usize::MAX);
            let Ok(server) = TcpStream::connect(&server) else { continue };
            let (Ok(from), Ok(to)) = (server.try_clone(), client.try_clone()) else { continue };
            std::thread::spawn(move || carry(from, to, usize::MAX));
            std::thread::spawn(move || carry(client, server, left));
        }
    });
    address
}

/// Carries bytes until either end, or so many, and then ends both.
fn carry(mut from: TcpStream, mut to: TcpStream, mut left: usize) {
    let mut buffer = [0; 16 << 10];
    while left > 0 {
        let most = buffer.len().min(left);
        match from.read(&mut buffer[..most]) {
            Ok(read) if read > 0 && to.write_all(&buffer[..read]).is_ok() => left -= read,
            _ => break,
        }
    }
    let _ = from.shutdown(Shutdown::Both);
    let _ = to.shutdown(Shutdown::Both);
}

#[test]
fn a_run_is_asked_for_followed_and_cancelled() {
    let _turn = is_busy();
    let host = Host::start();
    seed(&host);
    let server = host.server.address.as_str();
    let (code, run) =
        host.json(server, &["submit", "--project", "sentiment", "--tag", "v9.9.9", "--label", "gpu=none"]);
    assert_eq!((code, &run["state"]), (Some(0), &json!("queued")), "{run:#}");
    let id = run["run_id"].as_str().expect("an id");

    let mut watch = host.plimsoll(server, &["watch", id]).spawn().expect("the program starts");
    let mut told = BufReader::new(watch.stderr.take().expect("stderr is a pipe")).lines().map_while(Result::ok);
    // The event, and not only the heading, which says the state too.
    assert!(told.any(|line| line.trim() == "waiting"), "the stream begins");
    let (code, cancelled) = host.json(server, &["cancel", id, "--reason", "the wrong tag"]);
    assert_eq!((code, &cancelled["state"]), (Some(0), &json!("cancelled")), "{cancelled:#}");
    let rest = std::thread::spawn(move || told.collect::<Vec<_>>());
    let output = watch.wait_with_output().expect("it ends");
    let document: Value = serde_json::from_slice(&output.stdout).expect("a document");
    assert_eq!((output.status.code(), &document["state"]), (Some(3), &json!("cancelled")), "{document:#}");
    assert!(document["reason"].as_str().is_some_and(|why| why.contains("the wrong tag")), "{document:#}");
    rest.join().expect("its last lines");
}

/// The project is there once it has a report.
fn seed(host: &Host) {
    let report = Synthetic { project: "sentiment".to_owned(), ..Synthetic::default() }.report();
    write(host.folder.path(), &report);
    let (code, document) = host.json(&host.server.address, &["upload", "first.json"]);
    assert_eq!(code, Some(0), "{document:#}");
}

fn write(folder: &Path, report: &Report) {
    std::fs::write(folder.join("first.json"), report.to_json()).expect("the report is written");
}

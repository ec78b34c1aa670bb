//! The real program: exit codes, one JSON document on stdout whatever happens, and files that are whole or absent.

mod support;

use std::path::Path;
use std::process::{Command, Output, Stdio};
use std::time::Duration;

use plimsoll_domain::finding::Finding;
use plimsoll_domain::report::{Report, SERVICE_GONE, Status};
use plimsoll_domain::synthetic::Synthetic;
use serde_json::{Value, json};
use support::{Server, ok, status};

/// Nothing listens there.
const NOBODY: &str = "http://127.0.0.1:1";

/// The program in a folder of its own, without the caller's environment of CI and tokens.
fn plimsoll(folder: &Path, arguments: &[&str]) -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_plimsoll"));
    command.args(arguments).current_dir(folder).env_clear().stdin(Stdio::null());
    command
}

/// Runs it, and takes apart how it ended and the one document it printed.
fn run_json(folder: &Path, arguments: &[&str]) -> (i32, Value) {
    let output = plimsoll(folder, arguments).arg("--json").output().unwrap();
    (code(&output), document(&output))
}

fn code(output: &Output) -> i32 {
    output.status.code().unwrap_or_else(|| panic!("ended by a signal: {output:?}"))
}

fn document(output: &Output) -> Value {
    serde_json::from_slice(&output.stdout).unwrap_or_else(|error| panic!("{error}: {output:?}"))
}

/// A folder with a plan for `url` that takes about five seconds.
fn folder_with_plan(url: &str) -> tempfile::TempDir {
    let folder = tempfile::tempdir().unwrap();
    let plan = format!(
        "project = \"test\"\n[service]\nurl = \"{url}/predict\"\nconnect_timeout = \"500ms\"\n\
         [workload]\nbody = {{ text = \"a\" }}\nexpect = {{ \"/label\" = \"good\" }}\n\
         [smoke]\nduration = \"1s\"\n[warm_up]\nmin_requests = 2\nmax_duration = \"100ms\"\ntop = \"100ms\"\n\
         [staircase]\nworkers = [2, 4]\nstep = \"1s\"\nsearch = false\n[stability]\nduration = \"2s\"\nworkers = 3\n"
    );
    std::fs::write(folder.path().join("plimsoll.toml"), plan).unwrap();
    folder
}

fn model() -> Server {
    Server::start(64, Duration::from_millis(2), |_| ok(r#"{"label":"good"}"#))
}

fn write(folder: &Path, name: &str, report: &Report) {
    std::fs::write(folder.join(name), report.to_json()).unwrap();
}

fn release(tag: &str, service_ms: f64, seed: u64) -> Report {
    Synthetic { tag: Some(tag.to_owned()), service_ms, seed, stability_s: 120, ..Synthetic::default() }.report()
}

#[test]
fn usage_errors_exit_with_2_and_say_so_in_json() {
    let folder = folder_with_plan(NOBODY);
    for arguments in [
        &["nonsense"][..],
        &["run", "--stability-workers", "0"],
        &["run", "--staircase", "20,10"],
        &["run", "--step", "fast"],
        &["run", "--plan", "none.toml"],
        &["run", "--baseline", "none.json"],
        &["run", "--profile", "pr", "--plan", "pr.toml"],
        &["compare", "plimsoll.toml", "none.json"],
        &["upload", "none.json", "--server", NOBODY],
        &["upload", "none.json"],
        &["gate"],
        &["init"],
    ] {
        std::fs::write(folder.path().join("pr.toml"), "project = \"p\"\n[service]\nurl = \"http://h/\"\n").unwrap();
        let (code, document) = run_json(folder.path(), arguments);
        assert_eq!((code, &document["error"]["exit_code"]), (2, &json!(2)), "{arguments:?}: {document:#}");
        assert!(document["error"]["message"].as_str().is_some_and(|message| !message.is_empty()));
        assert!(document["error"]["kind"].is_string());
    }
    assert!(!folder.path().join("plimsoll").exists(), "nothing is written before the plan is known to be good");
}

#[test]
fn a_plan_s_mistake_is_shown_where_it_is() {
    let folder = tempfile::tempdir().unwrap();
    std::fs::write(folder.path().join("plimsoll.toml"), "project = \"p\"\n[service]\nulr = \"http://h/\"\n").unwrap();
    let output = plimsoll(folder.path(), &["check"]).output().unwrap();
    let said = String::from_utf8_lossy(&output.stderr);
    assert_eq!(code(&output), 2);
    for part in ["plimsoll.toml:3:1: unknown key `ulr` in [service]", "3 | ulr = ", "^^^", "did you mean `url`?"] {
        assert!(said.contains(part), "{part} in {said}");
    }
    let (code, document) = run_json(folder.path(), &["check"]);
    assert_eq!((code, &document["error"]["hint"]), (2, &json!("did you mean `url`?")));
}

#[test]
fn init_writes_a_plan_that_check_accepts_and_never_overwrites_one() {
    let folder = tempfile::tempdir().unwrap();
    let (first, _) = run_json(folder.path(), &["init", "--project", "mine", "--url", "http://127.0.0.1:9/x"]);
    let (checked, document) = run_json(folder.path(), &["check"]);
    assert_eq!((first, checked), (0, 0), "{document:#}");
    assert_eq!((&document["project"], &document["url"]), (&json!("mine"), &json!("http://127.0.0.1:9/x")));
    let before = std::fs::read(folder.path().join("plimsoll.toml")).unwrap();
    assert_eq!(run_json(folder.path(), &["init", "--project", "other"]).0, 2);
    assert_eq!(std::fs::read(folder.path().join("plimsoll.toml")).unwrap(), before);
    assert_eq!(run_json(folder.path(), &["init", "--project", "other", "--force"]).0, 0);
}

#[test]
fn check_masks_secrets() {
    let folder = tempfile::tempdir().unwrap();
    let plan = "project = \"p\"\n[service]\nurl = \"http://h/\"\n\
                headers = { authorization = \"Bearer ${TOKEN}\", x-api-key = \"inplain\" }\n";
    std::fs::write(folder.path().join("plimsoll.toml"), plan).unwrap();
    for json in [&["check"][..], &["check", "--json"]] {
        let output = plimsoll(folder.path(), json).env("TOKEN", "fromenv").output().unwrap();
        let said = String::from_utf8_lossy(&output.stdout);
        assert!(code(&output) == 0 && said.contains("***"), "{said}");
        assert!(!said.contains("fromenv") && !said.contains("inplain"), "{said}");
    }
}

#[test]
fn compare_ends_by_the_verdict() {
    let folder = tempfile::tempdir().unwrap();
    let folder = folder.path();
    write(folder, "a.json", &release("v1", 40.0, 1));
    write(folder, "b.json", &release("v2", 40.0, 2));
    write(folder, "c.json", &release("v3", 60.0, 3));
    for (candidate, code, verdict) in [("a.json", 0, "pass"), ("b.json", 0, "pass"), ("c.json", 1, "regressed")] {
        let (ended, document) = run_json(folder, &["compare", "a.json", candidate]);
        assert_eq!((ended, &document["verdict"]), (code, &json!(verdict)), "{document:#}");
        let metrics = document["metrics"].as_array().unwrap();
        let p99 = metrics.iter().find(|metric| metric["name"] == "p99").unwrap();
        for key in ["phase", "baseline", "candidate", "change", "interval", "threshold", "verdict"] {
            assert!(!p99[key].is_null(), "{key}: {p99:#}");
        }
    }
    // A threshold above the change lets it pass.
    let gate = "[gate]\np99 = { max_increase = \"90%\" }\ncapacity = { max_decrease = \"60%\" }\n";
    std::fs::write(folder.join("lax.toml"), gate).unwrap();
    assert_eq!(run_json(folder, &["compare", "a.json", "c.json", "--plan", "lax.toml"]).0, 0);
    // A service that died under load regressed; one that never answered says nothing.
    let mut died = release("v4", 40.0, 4);
    died.status = Status::Failed;
    died.phases.truncate(3);
    write(folder, "d.json", &died);
    assert_eq!(run_json(folder, &["compare", "a.json", "d.json"]).0, 3);
    died.findings.push(Finding::notice(SERVICE_GONE, "the service stopped answering at 50 workers: 9 × reset"));
    write(folder, "d.json", &died);
    let (ended, document) = run_json(folder, &["compare", "a.json", "d.json"]);
    assert_eq!((ended, &document["verdict"]), (1, &json!("regressed")), "{document:#}");
    let sentence = document["sentence"].as_str().unwrap();
    assert!(sentence.starts_with("The service stopped answering at 50 workers"), "{sentence}");
}

#[test]
fn spoiled_reports_are_refused_with_what_and_where() {
    let folder = tempfile::tempdir().unwrap();
    let good = release("v1", 40.0, 1).to_json();
    let newer = good.replacen("\"schema\":1", "\"schema\":2", 1);
    let nan = good.replacen("\"max_error_rate\":0.01", "\"max_error_rate\":NaN", 1);
    assert_ne!(nan, good);
    std::fs::write(folder.path().join("good.json"), &good).unwrap();
    for (text, why) in [
        (&good[..good.len() / 2], "EOF while parsing"),
        (&newer, "written by a newer plimsoll"),
        (&nan, "not a report"),
        ("", "EOF while parsing"),
        ("[]", "not a report"),
    ] {
        std::fs::write(folder.path().join("bad.json"), text).unwrap();
        for arguments in
            [&["compare", "good.json", "bad.json"][..], &["upload", "bad.json", "--server", "http://127.0.0.1:1"]]
        {
            let (code, document) = run_json(folder.path(), arguments);
            let message = document["error"]["message"].as_str().unwrap();
            assert!(code == 2 && message.contains(why) && message.starts_with("bad.json: "), "{code}: {message}");
        }
    }
}

#[test]
fn a_file_too_large_for_a_report_is_not_read() {
    let folder = folder_with_plan(NOBODY);
    let big = std::fs::File::create(folder.path().join("big.json")).unwrap();
    big.set_len(plimsoll_domain::report::MAX_BYTES as u64 + 1).unwrap();
    let (code, document) = run_json(folder.path(), &["upload", "big.json", "--server", NOBODY]);
    assert!(code == 2 && document["error"]["message"].as_str().unwrap().contains("64 MiB"), "{document:#}");
}

#[test]
fn an_unreachable_service_exits_with_3() {
    let folder = folder_with_plan(NOBODY);
    let (code, document) = run_json(folder.path(), &["run"]);
    assert_eq!((code, &document["error"]["exit_code"]), (3, &json!(3)), "{document:#}");
    assert!(document["error"]["message"].as_str().unwrap().contains("refused"), "{document:#}");
    assert!(document["error"]["hint"].is_string());
}

#[test]
fn wrong_answers_exit_with_3_and_say_what_was_wrong() {
    for (server, said) in [
        (Server::start(8, Duration::ZERO, |_| ok(r#"{"label":"bad"}"#)), "/label"),
        (Server::start(8, Duration::ZERO, |_| status(503, "busy")), "503"),
    ] {
        let folder = folder_with_plan(&format!("http://{}", server.address));
        let (code, document) = run_json(folder.path(), &["run"]);
        let message = document["error"]["message"].as_str().unwrap_or_default();
        assert!(code == 3 && message.contains(said), "{code}: {document:#}");
    }
}

#[test]
fn an_unreachable_server_exits_with_5_and_the_report_stays() {
    let folder = tempfile::tempdir().unwrap();
    write(folder.path(), "a.json", &release("v1", 40.0, 1));
    let (code, document) = run_json(folder.path(), &["upload", "a.json", "--server", NOBODY, "--retry-for", "0s"]);
    assert_eq!((code, &document["error"]["kind"]), (5, &json!("unreachable")), "{document:#}");
    assert!(document["error"]["hint"].as_str().unwrap().contains("plimsoll upload a.json"), "{document:#}");
    assert!(folder.path().join("a.json").exists());
}

#[test]
fn a_run_writes_its_report_and_compares_with_a_baseline() {
    let server = model();
    let folder = folder_with_plan(&format!("http://{}", server.address));
    let (code, document) = run_json(folder.path(), &["run", "--revision", "v1.0.0", "--output", "out/a.json"]);
    // A busy machine may spoil the figures: then it is 3, and the document says so.
    let ends = |document: &Value| if document["valid"] == true { 0 } else { 3 };
    assert_eq!((code, &document["exit_code"]), (ends(&document), &json!(code)), "{document:#}");
    assert_eq!((&document["revision"], &document["stability"]["workers"]), (&json!("v1.0.0"), &json!(3)));
    assert_eq!((&document["status"], &document["report"]), (&json!("complete"), &json!("out/a.json")));
    let bytes = std::fs::read(folder.path().join("out/a.json")).unwrap();
    let report = Report::from_json(&bytes).unwrap();
    assert_eq!(json!(report.run_id), document["run_id"]);
    assert_eq!(std::fs::read_dir(folder.path().join("out")).unwrap().count(), 1, "no temporary file is left");

    // The baseline's load goes before the knee; the plan's own goes before the baseline's, so it is taken out here.
    let plan = std::fs::read_to_string(folder.path().join("plimsoll.toml")).unwrap();
    std::fs::write(folder.path().join("plimsoll.toml"), plan.replace("workers = 3\n", "")).unwrap();
    let (code, document) = run_json(folder.path(), &["run", "--baseline", "out/a.json", "--output", "b.json"]);
    assert_eq!((code, &document["stability"]["load_choice"]), (ends(&document), &json!("baseline")), "{document:#}");
    assert_eq!(document["stability"]["workers"], 3);
    assert_eq!(document["comparison"]["verdict"], "invalid", "another plan does not compare");
}

#[cfg(unix)]
#[test]
fn a_run_that_is_stopped_keeps_what_it_measured() {
    let server = model();
    let folder = folder_with_plan(&format!("http://{}", server.address));
    let mut child = plimsoll(folder.path(), &["run", "--json", "--stability", "10m", "--output", "a.json"])
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    // Progress tells when the run is under way; the pipe is read on so that it never fills.
    let mut progress = std::io::BufReader::new(child.stderr.take().unwrap());
    let mut line = String::new();
    while !line.contains("staircase") {
        line.clear();
        assert_ne!(std::io::BufRead::read_line(&mut progress, &mut line).unwrap(), 0, "it ended by itself");
    }
    let pid = rustix::process::Pid::from_child(&child);
    rustix::process::kill_process(pid, rustix::process::Signal::INT).unwrap();
    let rest = std::thread::spawn(move || std::io::copy(&mut progress, &mut std::io::sink()));
    let output = child.wait_with_output().unwrap();
    rest.join().unwrap().unwrap();
    let document = document(&output);
    assert_eq!((code(&output), &document["status"]), (3, &json!("interrupted")), "{document:#}");
    let report = Report::from_json(&std::fs::read(folder.path().join("a.json")).unwrap()).unwrap();
    assert_eq!(report.status, Status::Interrupted);
    assert!(report.smoke().is_some());
}

#[cfg(target_os = "linux")]
#[test]
fn a_result_that_stdout_does_not_take_is_an_error() {
    let folder = tempfile::tempdir().unwrap();
    write(folder.path(), "a.json", &release("v1", 40.0, 1));
    for json in [&["compare", "a.json", "a.json"][..], &["compare", "a.json", "a.json", "--json"]] {
        let full = std::fs::File::options().write(true).open("/dev/full").unwrap();
        let output = plimsoll(folder.path(), json).stdout(full).output().unwrap();
        let told = String::from_utf8_lossy(&output.stderr);
        assert!(code(&output) == 70 && told.contains("could not be written to stdout: No space left"), "{told}");
        assert!(told.contains("it was 0, pass"), "{told}");
    }
}

#[test]
fn help_lists_the_exit_codes() {
    let folder = tempfile::tempdir().unwrap();
    for arguments in [&["--help"][..], &["gate", "--help"], &["policy", "push", "--help"]] {
        let output = plimsoll(folder.path(), arguments).output().unwrap();
        let help = String::from_utf8_lossy(&output.stdout);
        assert!(code(&output) == 0 && help.contains("Exit codes:") && help.contains(" 70  "), "{help}");
    }
}

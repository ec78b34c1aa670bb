//! The composite action and the example of a workflow: their shape, and what the action's scripts do, with the real
//! program and a server that answers as Plimsoll's does.

use std::collections::BTreeMap;
use std::io::{Read as _, Write as _};
use std::net::{TcpListener, TcpStream};
use std::os::unix::fs::PermissionsExt as _;
use std::path::{Path, PathBuf};
use std::process::{Command, Output};
use std::sync::{Arc, Mutex};

use sha2::{Digest as _, Sha256};
use yaml_rust2::{Yaml, YamlLoader};

const ACTION: &str = ".github/actions/plimsoll/action.yml";
const EXAMPLE: &str = ".github/workflows/plimsoll-example.yml";

fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).parent().unwrap().to_owned()
}

fn parsed(path: &str) -> Yaml {
    let text = std::fs::read_to_string(root().join(path)).unwrap();
    let documents = YamlLoader::load_from_str(&text).unwrap_or_else(|error| panic!("{path}: {error}"));
    assert_eq!(documents.len(), 1, "{path}");
    documents.into_iter().next().unwrap()
}

/// Every value under a key, wherever it stands.
fn under<'y>(yaml: &'y Yaml, key: &str, found: &mut Vec<&'y Yaml>) {
    match yaml {
        Yaml::Hash(hash) => {
            for (name, value) in hash {
                if name.as_str() == Some(key) {
                    found.push(value);
                }
                under(value, key, found);
            }
        }
        Yaml::Array(values) => values.iter().for_each(|value| under(value, key, found)),
        _ => {}
    }
}

fn texts(yaml: &Yaml, key: &str) -> Vec<String> {
    let mut found = Vec::new();
    under(yaml, key, &mut found);
    found.into_iter().filter_map(|value| value.as_str().map(str::to_owned)).collect()
}

fn pairs(yaml: &Yaml) -> BTreeMap<String, String> {
    let hash = yaml.as_hash().unwrap_or_else(|| panic!("no map: {yaml:?}"));
    hash.iter().map(|(k, v)| (k.as_str().unwrap().to_owned(), v.as_str().unwrap_or_default().to_owned())).collect()
}

#[test]
fn other_actions_are_pinned_and_no_script_holds_an_expression() {
    for path in [ACTION, EXAMPLE] {
        let yaml = parsed(path);
        let (used, scripts) = (texts(&yaml, "uses"), texts(&yaml, "run"));
        assert!(!used.is_empty() && !scripts.is_empty(), "{path}");
        for action in used.iter().filter(|action| !action.starts_with("./")) {
            let (name, pin) = action.split_once('@').unwrap_or_else(|| panic!("{path}: {action} has no version"));
            assert!(name.starts_with("actions/"), "{path}: {action}");
            assert!(pin.len() == 40 && pin.bytes().all(|b| b.is_ascii_hexdigit()), "{path}: {action}");
        }
        for script in scripts {
            assert!(!script.contains("${{"), "{path}: spliced into a script: {script}");
        }
    }
}

#[test]
fn the_example_may_do_little_and_runs_no_fork() {
    let example = parsed(EXAMPLE);
    let on = &example["on"];
    let events: Vec<&str> = on.as_hash().unwrap().keys().filter_map(Yaml::as_str).collect();
    assert_eq!(events, ["push", "pull_request"]);
    let push: Vec<&str> = on["push"].as_hash().unwrap().keys().filter_map(Yaml::as_str).collect();
    assert_eq!(push, ["tags"]);
    assert_eq!(example["permissions"].as_hash().unwrap().len(), 0, "all rights are given by the job");
    assert!(example["concurrency"]["group"].as_str().unwrap().contains("github.ref"));
    let jobs = example["jobs"].as_hash().unwrap();
    assert_eq!(jobs.len(), 1);
    let job = &example["jobs"]["gate"];
    let rights = pairs(&job["permissions"]);
    let expected = [("contents", "read"), ("id-token", "write")].map(|(k, v)| (k.to_owned(), v.to_owned()));
    assert_eq!(rights, BTreeMap::from(expected));
    assert!(job["timeout-minutes"].as_i64().is_some_and(|minutes| (1..=120).contains(&minutes)));
    let guard = job["if"].as_str().unwrap();
    assert!(guard.contains("github.event.pull_request.head.repo.full_name == github.repository"), "{guard}");
    assert!(guard.contains("vars.PLIMSOLL_SERVER != ''"), "{guard}");
    let labels: Vec<&str> = job["runs-on"].as_vec().unwrap().iter().filter_map(Yaml::as_str).collect();
    assert!(labels.contains(&"self-hosted") && labels.contains(&"gpu"), "{labels:?}");
    let checkout = &job["steps"][0];
    assert!(checkout["uses"].as_str().unwrap().starts_with("actions/checkout@"));
    assert_eq!(checkout["with"]["persist-credentials"].as_bool(), Some(false));
    assert_eq!(checkout["with"]["fetch-depth"].as_i64(), Some(0), "the baseline is found by ancestors");
    let text = std::fs::read_to_string(root().join(EXAMPLE)).unwrap();
    assert!(!text.contains("secrets."), "a pull request reads what its job can read");

    // What it gives the action, the action takes.
    let steps = job["steps"].as_vec().unwrap();
    let gate = steps.iter().find(|step| step["uses"].as_str().is_some_and(|uses| uses.starts_with("./"))).unwrap();
    let inputs = parsed(ACTION);
    for given in gate["with"].as_hash().unwrap().keys() {
        assert!(!inputs["inputs"][given.as_str().unwrap()].is_badvalue(), "{given:?}");
    }
    assert!(root().join(gate["uses"].as_str().unwrap()).join("action.yml").is_file());
}

#[test]
fn every_input_reaches_a_step_and_the_artifact_is_kept_whatever_the_verdict() {
    let action = parsed(ACTION);
    assert_eq!(action["runs"]["using"].as_str(), Some("composite"));
    let text = std::fs::read_to_string(root().join(ACTION)).unwrap();
    for input in action["inputs"].as_hash().unwrap().keys() {
        let name = input.as_str().unwrap();
        assert!(text.contains(&format!("${{{{ inputs.{name} }}}}")), "{name} is not used");
    }
    let steps = action["runs"]["steps"].as_vec().unwrap();
    let keep = steps.iter().find(|step| step["uses"].as_str().is_some()).unwrap();
    assert!(keep["if"].as_str().unwrap().contains("always()"));
    for step in steps.iter().filter(|step| step["run"].as_str().is_some()) {
        assert_eq!(step["shell"].as_str(), Some("bash"));
        let script = step["run"].as_str().unwrap().trim_matches('"').rsplit('/').next().unwrap();
        let script = root().join(".github/actions/plimsoll").join(script);
        assert_ne!(std::fs::metadata(&script).unwrap().permissions().mode() & 0o111, 0, "{script:?} does not run");
    }
}

/// What a runner gives the scripts.
struct Job {
    folder: tempfile::TempDir,
}

impl Job {
    fn new() -> Self {
        Self { folder: tempfile::tempdir().unwrap() }
    }

    fn path(&self, name: &str) -> PathBuf {
        self.folder.path().join(name)
    }

    fn run(&self, script: &str, environment: &[(&str, &str)]) -> Output {
        let mut command = Command::new(root().join(".github/actions/plimsoll").join(script));
        command.current_dir(self.folder.path()).env_clear().env("PATH", std::env::var("PATH").unwrap());
        command.env("RUNNER_TEMP", self.folder.path()).env("GITHUB_OUTPUT", self.path("output"));
        command.env("GITHUB_STEP_SUMMARY", self.path("summary"));
        command.envs(environment.iter().copied()).output().unwrap()
    }

    /// The last value of an output.
    fn output(&self, name: &str) -> Option<String> {
        let text = std::fs::read_to_string(self.path("output")).unwrap_or_default();
        let value = |line: &str| line.strip_prefix(name)?.strip_prefix('=').map(str::to_owned);
        text.lines().filter_map(value).next_back()
    }

    fn summary(&self) -> String {
        std::fs::read_to_string(self.path("summary")).unwrap_or_default()
    }
}

fn said(output: &Output) -> String {
    String::from_utf8_lossy(&output.stdout).into_owned() + &String::from_utf8_lossy(&output.stderr)
}

const PLIMSOLL: &str = env!("CARGO_BIN_EXE_plimsoll");

#[test]
fn plimsoll_is_found_where_the_inputs_say_or_not_at_all() {
    let job = Job::new();
    let found = job.run("find", &[("BINARY", PLIMSOLL), ("VERSION", concat!("v", env!("CARGO_PKG_VERSION")))]);
    assert!(found.status.success(), "{}", said(&found));
    assert_eq!(job.output("plimsoll").as_deref(), Some(PLIMSOLL));
    for (environment, why) in [
        (&[("BINARY", PLIMSOLL), ("VERSION", "0.0.1")][..], "another version"),
        (&[("BINARY", "/nonexistent/plimsoll")], "names no program"),
        (&[("BINARY", PLIMSOLL), ("DOWNLOAD", "https://x.example/a")], "both set"),
        (&[("DOWNLOAD", "https://x.example/a")], "needs sha256"),
        (&[("DOWNLOAD", "https://x.example/a"), ("SHA256", "$(touch owned)")], "needs sha256"),
    ] {
        let refused = job.run("find", environment);
        assert_eq!(refused.status.code(), Some(2), "{environment:?}: {}", said(&refused));
        assert!(said(&refused).contains(why), "{environment:?}: {}", said(&refused));
    }
    assert!(!job.path("owned").exists());
}

#[test]
fn a_release_asset_runs_only_when_its_sum_is_right() {
    let job = Job::new();
    let program = format!("#!/bin/sh\necho ran >> '{}'\necho 'plimsoll 1.2.3'\n", job.path("ran").display());
    let sum: String = Sha256::digest(&program).iter().map(|byte| format!("{byte:02x}")).collect();
    let body = program.clone();
    let server = Answering::start(move |_| (200, body.clone()));
    let asset = format!("{}/plimsoll", server.address);
    let environment = |sha256| [("DOWNLOAD", asset.as_str()), ("SHA256", sha256)];
    let other = "0".repeat(64);
    let refused = job.run("find", &environment(&other));
    assert_eq!(refused.status.code(), Some(2), "{}", said(&refused));
    assert!(said(&refused).contains("another SHA-256"), "{}", said(&refused));
    assert!(!job.path("ran").exists() && job.output("plimsoll").is_none());
    let found = job.run("find", &environment(&sum));
    assert!(found.status.success(), "{}", said(&found));
    assert!(job.path("ran").exists() && said(&found).contains("plimsoll 1.2.3"));
    assert_eq!(std::fs::read_to_string(job.output("plimsoll").unwrap()).unwrap(), program);
}

/// A program in plimsoll's place, that notes what it was given and ends as told.
fn stand_in(job: &Job, code: u8) -> PathBuf {
    let path = job.path("stand-in");
    let script = format!(
        "#!/bin/sh\nprintf '%s\\n' \"$@\" > given\nenv > seen\nfor a in \"$@\"; do case \"$a\" in --summary=*) \
         echo '## Plimsoll: regressed' > \"${{a#--summary=}}\";; esac; done\necho '{{}}'\nexit {code}\n"
    );
    std::fs::write(&path, script).unwrap();
    std::fs::set_permissions(&path, std::fs::Permissions::from_mode(0o755)).unwrap();
    path
}

#[test]
fn arguments_stay_arguments_and_the_step_ends_as_plimsoll_does() {
    let job = Job::new();
    let program = stand_in(&job, 1);
    let (program, hostile) = (program.to_str().unwrap(), "--tag=$(touch owned); `touch owned` \"x' | y");
    let arguments = format!("--retry-for=1s\n\n{hostile}\n");
    let environment = [
        ("PLIMSOLL", program),
        ("PLIMSOLL_SERVER", "https://plimsoll.example/"),
        ("PLIMSOLL_TOKEN", ""),
        ("PLAN", "a plan.toml"),
        ("PROFILE", "pr"),
        ("ARGUMENTS", &arguments),
    ];
    let ended = job.run("gate", &environment);
    assert_eq!(ended.status.code(), Some(1), "{}", said(&ended));
    assert_eq!(job.output("exit-code").as_deref(), Some("1"));
    let given = std::fs::read_to_string(job.path("given")).unwrap();
    let given: Vec<&str> = given.lines().collect();
    assert_eq!(given[..3], ["gate", "--json", "--plan=a plan.toml"]);
    assert_eq!(given[5..], ["--profile=pr", "--retry-for=1s", hostile]);
    assert!(!job.path("owned").exists());
    assert_eq!(job.summary(), "## Plimsoll: regressed\n");
    let seen = std::fs::read_to_string(job.path("seen")).unwrap();
    assert!(seen.contains("PLIMSOLL_OIDC_AUDIENCE=https://plimsoll.example\n") && !seen.contains("PLIMSOLL_TOKEN="));
    let with_token: Vec<_> =
        environment.iter().map(|(k, v)| (*k, if *k == "PLIMSOLL_TOKEN" { "t0ken" } else { *v })).collect();
    job.run("gate", &with_token);
    let seen = std::fs::read_to_string(job.path("seen")).unwrap();
    assert!(!seen.contains("PLIMSOLL_OIDC_AUDIENCE") && seen.contains("PLIMSOLL_TOKEN=t0ken\n"), "{seen}");
}

#[test]
fn the_job_s_identity_goes_to_the_server_and_into_no_log() {
    let job = Job::new();
    let github = Answering::start(|_| (200, "{\"value\":\"a.jwt.value\",\"count\":11}".to_owned()));
    // The server does not take it: nothing is measured, and the step fails.
    let server = Answering::start(|_| (401, "{\"title\":\"Unauthorized\",\"detail\":\"no such key\"}".to_owned()));
    std::fs::write(
        job.path("plimsoll.toml"),
        "project = \"test\"\n[service]\nurl = \"http://127.0.0.1:9/predict\"\n[workload]\nbody = \"a\"\n",
    )
    .unwrap();
    let request_url = format!("{}/token?api-version=2.0", github.address);
    let environment = [
        ("PLIMSOLL", PLIMSOLL),
        ("PLIMSOLL_SERVER", server.address.as_str()),
        ("AUDIENCE", "https://plimsoll.example"),
        ("PLAN", "plimsoll.toml"),
        ("ACTIONS_ID_TOKEN_REQUEST_URL", &request_url),
        ("ACTIONS_ID_TOKEN_REQUEST_TOKEN", "the-job-s-secret"),
    ];
    let ended = job.run("gate", &environment);
    assert_eq!(ended.status.code(), Some(2), "{}", said(&ended));
    let asked = github.seen();
    assert_eq!(asked.len(), 1, "{asked:?}");
    assert!(asked[0].starts_with("get /token?api-version=2.0&audience=https%3a%2f%2fplimsoll.example "), "{asked:?}");
    assert!(asked[0].contains("authorization: bearer the-job-s-secret\r\n"), "{asked:?}");
    let shown = server.seen();
    assert!(shown.iter().all(|request| request.contains("authorization: bearer a.jwt.value\r\n")), "{shown:?}");
    assert!(!shown.is_empty());
    let all = said(&ended) + &job.summary();
    assert!(all.contains("no such key") && all.contains("ended with 2"), "{all}");
    assert!(!all.contains("a.jwt.value") && !all.contains("the-job-s-secret"), "{all}");

    let without = job.run("gate", &environment[..4]);
    assert_eq!(without.status.code(), Some(2), "{}", said(&without));
    assert!(said(&without).contains("id-token: write"), "{}", said(&without));
}

/// A server that answers everything by one rule, and remembers the heads of the requests in small letters.
struct Answering {
    address: String,
    seen: Arc<Mutex<Vec<String>>>,
}

impl Answering {
    fn start(rule: impl Fn(&str) -> (u16, String) + Send + 'static) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let address = format!("http://{}", listener.local_addr().unwrap());
        let seen = Arc::new(Mutex::new(Vec::new()));
        let heads = Arc::clone(&seen);
        std::thread::spawn(move || {
            for mut stream in listener.incoming().flatten() {
                if let Some(head) = head(&mut stream) {
                    let (status, body) = rule(&head);
                    heads.lock().unwrap().push(head);
                    let length = body.len();
                    let head = format!("HTTP/1.1 {status} X\r\nconnection: close\r\ncontent-length: {length}\r\n\r\n");
                    let _ = stream.write_all(format!("{head}{body}").as_bytes());
                }
            }
        });
        Self { address, seen }
    }

    fn seen(&self) -> Vec<String> {
        self.seen.lock().unwrap().clone()
    }
}

fn head(stream: &mut TcpStream) -> Option<String> {
    let (mut head, mut byte) = (Vec::new(), [0]);
    while !head.ends_with(b"\r\n\r\n") {
        if head.len() > 64 << 10 || stream.read(&mut byte).ok()? == 0 {
            return None;
        }
        head.push(byte[0]);
    }
    Some(String::from_utf8_lossy(&head).to_ascii_lowercase())
}

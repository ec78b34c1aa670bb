//! A run that somebody asks for: the agent takes it from the server, starts the service of that revision, measures it,
//! and the server judges it.

use std::fs;
use std::net::TcpListener;
use std::os::unix::fs::PermissionsExt as _;
use std::path::Path;
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

use serde_json::{Value, json};

use crate::support::{Serving, is_busy, program};

/// About six seconds, and no answer of the sample service.
const PLAN: &str = r#"
project = "sample"
[service]
url = "http://127.0.0.1:PORT/predict"
[workload]
body = { text = "Fine." }
[workload.expect]
"/label" = "positive"
[smoke]
duration = "1s"
[warm_up]
min_requests = 5
max_duration = "500ms"
top = "200ms"
[staircase]
workers = [4]
step = "2s"
search = false
[stability]
duration = "2s"
"#;

#[test]
fn a_run_that_is_asked_for_is_measured_by_an_agent_and_judged() {
    let _turn = is_busy();
    let folder = tempfile::tempdir().expect("a temporary directory");
    // The embedded Postgres has a user of its own.
    fs::set_permissions(folder.path(), fs::Permissions::from_mode(0o755)).expect("our own directory");
    let at = |name: &str| folder.path().join(name);
    let server = Serving::server(&at("server"));
    let token = fs::read_to_string(at("server/token")).expect("the server has written its token");
    let port = TcpListener::bind("127.0.0.1:0").and_then(|socket| socket.local_addr()).expect("a free port").port();
    let commit = repository(&at("repository"), &PLAN.replace("PORT", &port.to_string()));
    fs::write(at("token"), &token).expect("the token is written");
    fs::set_permissions(at("token"), fs::Permissions::from_mode(0o600)).expect("our own file");
    let configuration = format!(
        "server = {:?}\ntoken_file = {:?}\nname = \"gpu-1\"\nstate = {:?}\nlocks = {:?}\nlabels = {{ gpu = \"none\" }}\n\
         [project.sample]\nrepository = {:?}\norigins = [\"http://127.0.0.1:{port}\"]\n\
         start = 'exec \"$DEMO\" service --listen 127.0.0.1:{port}'\nready = {{ interval = \"50ms\" }}\n\
         environment = {{ DEMO = {:?} }}\n",
        server.address,
        at("token"),
        at("state"),
        at("locks"),
        at("repository"),
        env!("CARGO_BIN_EXE_plimsoll-demo"),
    );
    fs::write(at("runner.toml"), configuration).expect("the configuration is written");
    let configuration = at("runner.toml").display().to_string();

    let checked = runner(&["agent", "--check", "--config", &configuration, "--json"]).output().expect("it starts");
    let checked: Value = serde_json::from_slice(&checked.stdout).expect("a document");
    assert_eq!(checked["ok"], true, "{checked:#}");

    let api = Api { address: server.address.clone(), token: token.trim().to_owned() };
    let asked = json!({ "project": "sample", "revision": { "tag": "v1.0.0" }, "labels": { "gpu": "none" } });
    let asked = api.ask(reqwest::Method::POST, "api/v1/runs", Some(asked));
    let run = asked["run_id"].as_str().expect("a run").to_owned();
    assert_eq!(asked["state"], "queued", "{asked:#}");

    let agent = runner(&["agent", "--once", "--config", &configuration, "--json"]).output().expect("it starts");
    let said = String::from_utf8_lossy(&agent.stderr).into_owned();
    assert!(agent.status.success(), "{said}");
    let done = api.until(&run, |run| run["verdict"].is_string());
    assert_eq!((&done["state"], &done["runner"]), (&json!("done"), &json!("gpu-1")), "{done:#}\n{said}");
    assert_eq!(done["label"], "v1.0.0");
    let report = api.ask(reqwest::Method::GET, &format!("api/v1/snapshots/{run}"), None);
    assert!(report.to_string().contains(&commit), "{report:#}");

    let gone = json!({ "project": "sample", "revision": { "tag": "v9" } });
    let gone = api.ask(reqwest::Method::POST, "api/v1/runs", Some(gone))["run_id"].as_str().expect("a run").to_owned();
    let agent = runner(&["agent", "--once", "--config", &configuration]).output().expect("it starts");
    assert!(agent.status.success(), "{agent:?}");
    let failed = api.until(&gone, |run| run["state"] == "failed");
    assert!(failed["reason"].as_str().is_some_and(|why| why.contains("no tag \"v9\"")), "{failed:#}");
}

fn runner(arguments: &[&str]) -> Command {
    let mut command = program();
    command.arg("runner").args(arguments).stdin(Stdio::null());
    command
}

/// A repository with a plan and a tag; returns the commit.
fn repository(folder: &Path, plan: &str) -> String {
    fs::create_dir(folder).expect("a new folder");
    fs::write(folder.join("plimsoll.toml"), plan).expect("the plan is written");
    let git = |arguments: &[&str]| {
        let output = Command::new("git")
            .args(["-c", "user.name=t", "-c", "user.email=t@t", "-c", "commit.gpgsign=false"])
            .args(arguments)
            .current_dir(folder)
            .env("GIT_CONFIG_GLOBAL", "/dev/null")
            .output()
            .expect("git is there");
        assert!(output.status.success(), "{arguments:?}: {output:?}");
        String::from_utf8(output.stdout).expect("text").trim().to_owned()
    };
    git(&["init", "--quiet", "--initial-branch=main"]);
    git(&["add", "--all"]);
    git(&["commit", "--quiet", "--message=plan"]);
    git(&["tag", "v1.0.0"]);
    git(&["rev-parse", "HEAD"])
}

/// The server's API.
struct Api {
    address: String,
    token: String,
}

impl Api {
    fn ask(&self, method: reqwest::Method, path: &str, body: Option<Value>) -> Value {
        let _ = rustls::crypto::ring::default_provider().install_default();
        let asked = async {
            let request = reqwest::Client::new().request(method, format!("{}/{path}", self.address));
            let request = request.bearer_auth(&self.token);
            let request = if let Some(body) = &body { request.json(body) } else { request };
            let answer = request.send().await.expect("the server answers");
            let status = answer.status();
            let text = answer.text().await.expect("a text");
            assert!(status.is_success(), "{path}: {status} {text}");
            serde_json::from_str(&text).expect("JSON")
        };
        tokio::runtime::Runtime::new().expect("a runtime").block_on(asked)
    }

    /// The run, once it is as wanted.
    fn until(&self, run: &str, wanted: impl Fn(&Value) -> bool) -> Value {
        let until = Instant::now() + Duration::from_secs(60);
        loop {
            let run = self.ask(reqwest::Method::GET, &format!("api/v1/runs/{run}"), None);
            if wanted(&run) {
                return run;
            }
            assert!(Instant::now() < until, "waited in vain: {run:#}");
            std::thread::sleep(Duration::from_millis(100));
        }
    }
}

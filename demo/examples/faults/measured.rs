//! What the runners measure: a repository with a tag for each round, a plan of a few seconds, a service that is so slow
//! that a busy host hardly changes its figures.

use std::net::SocketAddr;
use std::path::Path;

use tokio::process::Command;

pub(crate) const PROJECT: &str = "faults";

/// Each runner as on a host of its own: its locks, its state, its port.
pub(crate) fn configuration(number: u32, folder: &Path, server: SocketAddr, port: u16, service: &Path) -> String {
    let (name, folder) = (format!("runner-{number}"), folder.display());
    let service = service.display();
    format!(
        r#"server = "http://{server}"
token_file = "{folder}/server-1/token"
name = "{name}"
state = "{folder}/{name}/state"
locks = "{folder}/{name}/locks"
grace = "2s"

[project.{PROJECT}]
repository = "{folder}/repository"
start = "exec '{service}' service --listen 127.0.0.1:{port} --pool 4 --pool-ms 250 --base-ms 0 --per-item-ms 0"
ready = {{ url = "http://127.0.0.1:{port}/health", timeout = "20s", interval = "50ms" }}
plan = "runner-{number}.toml"
origins = ["http://127.0.0.1:{port}"]
"#
    )
}

/// About four seconds. Both runners are on this host, so each has a port and with it a plan of its own.
const PLAN: &str = r#"project = "faults"

[service]
url = "http://127.0.0.1:PORT/predict"
response_timeout = "5s"

[workload]
file = "requests.jsonl"

[smoke]
duration = "1s"

[warm_up]
min_requests = 5
max_duration = "200ms"
top = "0s"

[staircase]
workers = [2]
step = "1s"
ramp_up = "0s"
search = false

[stability]
duration = "1s"
ramp_up = "0s"
workers = 2
"#;

/// A repository with a tag for each round.
pub(crate) async fn repository(folder: &Path, ports: &[u16], rounds: u32, seed: u64) -> Result<(), String> {
    let failed = |error: std::io::Error| format!("{}: {error}", folder.display());
    std::fs::create_dir(folder).map_err(failed)?;
    for (number, port) in (1..).zip(ports) {
        let plan = PLAN.replace("PORT", &port.to_string());
        std::fs::write(folder.join(format!("runner-{number}.toml")), plan).map_err(failed)?;
    }
    std::fs::write(folder.join("requests.jsonl"), "{\"text\": \"A fine day.\"}\n{\"text\": \"Fine.\"}\n")
        .map_err(failed)?;
    git(folder, &["init", "--quiet", "--initial-branch=main"]).await?;
    git(folder, &["add", "."]).await?;
    for round in 0..=rounds {
        let message = format!("release {round} of seed {seed}");
        git(folder, &["commit", "--quiet", "--allow-empty", "-m", &message]).await?;
        git(folder, &["tag", &tag(round)]).await?;
    }
    Ok(())
}

pub(crate) fn tag(round: u32) -> String {
    format!("v1.{round}.0")
}

async fn git(folder: &Path, args: &[&str]) -> Result<(), String> {
    let mut command = Command::new("git");
    command.args(["-c", "user.name=faults", "-c", "user.email=faults@localhost", "-c", "commit.gpgsign=false"]);
    let output = command.current_dir(folder).args(args).output().await;
    let output = output.map_err(|error| format!("git: {error}"))?;
    if output.status.success() {
        return Ok(());
    }
    Err(format!("git {}: {}", args.join(" "), String::from_utf8_lossy(&output.stderr)))
}

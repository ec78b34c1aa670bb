//! All parts, connected through networks that can be broken: two runners → two servers → one Postgres, and a receiver of
//! webhooks.

use std::net::SocketAddr;
use std::os::unix::fs::PermissionsExt as _;
use std::path::{Path, PathBuf};
use std::time::Duration;

use reqwest::StatusCode;
use serde_json::{Value, json};
use sqlx::PgPool;
use sqlx::postgres::PgPoolOptions;
use tempfile::TempDir;
use tokio::process::Command;
use tokio::time::Instant;
use uuid::Uuid;

use crate::clock::Clock;
use crate::faults::{Kind, missing};
use crate::postgres::Postgres;
use crate::proxy::{Mode, Proxy};
use crate::receiver::Receiver;
use crate::unit::Unit;

pub(crate) const PROJECT: &str = "faults";

#[derive(Debug)]
pub(crate) struct World {
    folder: TempDir,
    postgres: Postgres,
    /// Past every network that is broken.
    direct: Proxy,
    pub(crate) database: PgPool,
    pub(crate) receiver: Receiver,
    pub(crate) servers: Vec<Server>,
    pub(crate) runners: Vec<Runner>,
    http: reqwest::Client,
    token: String,
    /// Runs that a server said yes to.
    pub(crate) accepted: Vec<Uuid>,
}

#[derive(Debug)]
pub(crate) struct Server {
    pub(crate) unit: Unit,
    pub(crate) clock: Clock,
    address: SocketAddr,
    /// To Postgres.
    network: Proxy,
}

#[derive(Debug)]
pub(crate) struct Runner {
    pub(crate) unit: Unit,
    pub(crate) clock: Clock,
    /// To the servers.
    network: Proxy,
}

/// For everything to be up at the beginning; the first start makes the database's tables.
const UP_WITHIN: Duration = Duration::from_secs(60);
/// For a server to say yes to a run, whatever is broken meanwhile.
const ACCEPTED_WITHIN: Duration = Duration::from_secs(90);
const POLL: Duration = Duration::from_millis(200);

impl World {
    pub(crate) async fn start(programs: &Path, rounds: u32, seed: u64) -> Result<Self, String> {
        let folder = tempfile::Builder::new()
            .prefix("plimsoll-faults-")
            // Postgres runs as another user when we are root.
            .permissions(std::fs::Permissions::from_mode(0o711))
            .tempdir_in("/tmp")
            .map_err(|error| format!("no temporary folder: {error}"))?;
        let path = folder.path();
        let ports = [free_port()?, free_port()?];
        repository(&path.join("repository"), &ports, rounds, seed).await?;
        let postgres = Postgres::start(&path.join("postgres")).await?;
        let direct = Proxy::start(vec![postgres.address().await?]).await?;
        let options = PgPoolOptions::new().max_connections(4).acquire_timeout(Duration::from_secs(3));
        let database = options.connect_lazy(&postgres.url(direct.address())).map_err(|error| error.to_string())?;
        let receiver = Receiver::start().await?;
        let mut servers = Vec::new();
        for number in 1..=2 {
            servers.push(Server::start(programs, path, number, &postgres).await?);
        }
        let http = reqwest::Client::builder().timeout(Duration::from_secs(5)).pool_max_idle_per_host(0).build();
        let http = http.map_err(|error| error.to_string())?;
        let mut world = Self {
            postgres,
            direct,
            database,
            receiver,
            servers,
            runners: Vec::new(),
            http,
            token: String::new(),
            accepted: Vec::new(),
            folder,
        };
        world.set_up().await?;
        for (number, port) in (1..).zip(ports) {
            let targets = world.servers.iter().map(|server| server.address).collect();
            let runner = Runner::start(programs, world.folder.path(), number, port, targets).await?;
            world.runners.push(runner);
        }
        Ok(world)
    }

    /// What cannot be broken on this host, and why.
    pub(crate) fn left_out(&self) -> Vec<(Kind, &'static str)> {
        missing()
    }

    /// The place of the runner that has a run now.
    pub(crate) async fn busy_runner(&self) -> Option<usize> {
        let sql = "select r.name from jobs j join runners r on r.id = j.runner where j.state in ('leased', 'running')
                   order by j.started_at desc nulls last limit 1";
        let name: String = sqlx::query_scalar(sql).fetch_optional(&self.database).await.ok()??;
        self.runners.iter().position(|runner| runner.unit.name() == name)
    }

    pub(crate) async fn kill_postgres(&self, down_for: Duration) -> Result<(), String> {
        let (direct, networks) = (&self.direct, self.servers.iter().map(|server| &server.network));
        let address = self.postgres.kill(down_for).await?;
        for network in networks.chain([direct]) {
            network.lead_to(address);
        }
        Ok(())
    }

    pub(crate) async fn disturb_runner(&self, which: usize, mode: Mode, lasts: Duration) -> String {
        let runner = &self.runners[which];
        disturb(&runner.network, mode, lasts).await;
        runner.unit.name().to_owned()
    }

    pub(crate) async fn disturb_server(&self, which: usize, mode: Mode, lasts: Duration) -> String {
        let server = &self.servers[which];
        disturb(&server.network, mode, lasts).await;
        server.unit.name().to_owned()
    }

    /// Asks for a run as a careful client does: with an id of its own, again until a server says yes.
    pub(crate) async fn submit(&self, run: Uuid, tag: &str) -> Result<(), String> {
        let request = json!({ "project": PROJECT, "revision": { "tag": tag }, "run_id": run });
        let until = Instant::now() + ACCEPTED_WITHIN;
        let mut turn = usize::from(run.as_bytes()[15] & 1 == 1);
        loop {
            let answer = self.post(turn % 2, "/api/v1/runs", &request).await;
            match answer {
                Ok((status, _)) if status.is_success() => return Ok(()),
                Ok((status, body)) if status.is_client_error() => {
                    return Err(format!("a run was refused: {status} {body}"));
                }
                Ok(_) | Err(_) if Instant::now() < until => {}
                Ok((status, body)) => return Err(format!("no server took a run: {status} {body}")),
                Err(error) => return Err(format!("no server took a run: {error}")),
            }
            turn += 1;
            tokio::time::sleep(POLL).await;
        }
    }

    /// A line in every log.
    pub(crate) fn note(&self, text: &str) {
        let units = self.servers.iter().map(|server| &server.unit);
        for unit in units.chain(self.runners.iter().map(|runner| &runner.unit)) {
            unit.note(text);
        }
    }

    /// Ends everything in order; what ended without being told to.
    pub(crate) async fn stop(&mut self) -> Vec<String> {
        let runners = self.runners.drain(..).map(|runner| runner.unit.stop());
        let mut by_itself: Vec<String> = futures_util::future::join_all(runners).await.concat();
        let servers = self.servers.drain(..).map(|server| server.unit.stop());
        by_itself.extend(futures_util::future::join_all(servers).await.concat());
        self.database.close().await;
        self.postgres.stop().await;
        by_itself
    }

    /// Leaves the folder with all logs.
    pub(crate) fn keep(&mut self) -> PathBuf {
        self.folder.disable_cleanup(true);
        self.folder.path().to_owned()
    }

    async fn set_up(&mut self) -> Result<(), String> {
        let until = Instant::now() + UP_WITHIN;
        for server in &self.servers {
            let url = format!("http://{}/readyz", server.address);
            while !self.http.get(&url).send().await.is_ok_and(|answer| answer.status().is_success()) {
                if Instant::now() > until {
                    let log = self.folder.path().join(format!("{}.log", server.unit.name()));
                    let said = std::fs::read_to_string(log).unwrap_or_default();
                    return Err(format!(
                        "{} did not start within {} s:\n{said}",
                        server.unit.name(),
                        UP_WITHIN.as_secs()
                    ));
                }
                tokio::time::sleep(POLL).await;
            }
        }
        let path = self.folder.path().join("server-1/token");
        let token = std::fs::read_to_string(&path).map_err(|error| format!("{}: {error}", path.display()))?;
        token.trim().clone_into(&mut self.token);
        let webhook = json!({ "url": self.receiver.url() });
        let (status, body) = self.post(0, &format!("/api/v1/projects/{PROJECT}/webhooks"), &webhook).await?;
        let secret = serde_json::from_str(&body).ok().and_then(|body: Value| Some(body["secret"].as_str()?.to_owned()));
        self.receiver.set_secret(&secret.ok_or_else(|| format!("no webhook was made: {status} {body}"))?);
        Ok(())
    }

    async fn post(&self, server: usize, path: &str, body: &Value) -> Result<(StatusCode, String), String> {
        let url = format!("http://{}{path}", self.servers[server].address);
        let sent = self.http.post(url).bearer_auth(&self.token).json(body).send().await;
        let answer = sent.map_err(|error| error.to_string())?;
        let status = answer.status();
        Ok((status, answer.text().await.map_err(|error| error.to_string())?))
    }
}

async fn disturb(network: &Proxy, mode: Mode, lasts: Duration) {
    network.set(mode);
    tokio::time::sleep(lasts).await;
    network.set(Mode::Pass);
}

impl Server {
    async fn start(programs: &Path, folder: &Path, number: u32, postgres: &Postgres) -> Result<Self, String> {
        let name = format!("server-{number}");
        let network = Proxy::start(vec![postgres.address().await?]).await?;
        let clock = Clock::new(folder.join(format!("{name}.clock")))?;
        let address = SocketAddr::from(([127, 0, 0, 1], free_port()?));
        let program = program(programs, "plimsoll-server")?;
        let (data_dir, url, going) = (folder.join(&name), postgres.url(network.address()), clock.clone());
        let command = move || {
            let mut command = clean(&program);
            command.arg("serve").arg(format!("--listen={address}")).arg("--data-dir").arg(&data_dir);
            command.arg("--allow-private-webhooks").env("DATABASE_URL", &url);
            going.apply(&mut command);
            command
        };
        let unit = Unit::start(&name, folder.join(format!("{name}.log")), command);
        Ok(Self { unit, clock, address, network })
    }
}

impl Runner {
    async fn start(
        programs: &Path,
        folder: &Path,
        number: u32,
        port: u16,
        servers: Vec<SocketAddr>,
    ) -> Result<Self, String> {
        let name = format!("runner-{number}");
        let network = Proxy::start(servers).await?;
        let clock = Clock::new(folder.join(format!("{name}.clock")))?;
        let own = folder.join(&name);
        let config = own.join("runner.toml");
        let text = configuration(number, folder, network.address(), port, &program(programs, "plimsoll-demo")?);
        let written = std::fs::create_dir_all(&own).and_then(|()| std::fs::write(&config, text));
        written.map_err(|error| format!("{}: {error}", config.display()))?;
        let (program, going) = (program(programs, "plimsoll")?, clock.clone());
        let command = move || {
            let mut command = clean(&program);
            command.arg("agent").arg("--config").arg(&config);
            going.apply(&mut command);
            command
        };
        let unit = Unit::start(&name, folder.join(format!("{name}.log")), command);
        Ok(Self { unit, clock, network })
    }
}

/// Each runner as on a host of its own: its locks, its state, its port.
fn configuration(number: u32, folder: &Path, server: SocketAddr, port: u16, service: &Path) -> String {
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
start = "exec '{service}' service --listen 127.0.0.1:{port} --pool 8 --pool-ms 2 --base-ms 0 --per-item-ms 0"
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
async fn repository(folder: &Path, ports: &[u16], rounds: u32, seed: u64) -> Result<(), String> {
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

fn program(folder: &Path, name: &str) -> Result<PathBuf, String> {
    let path = folder.join(name);
    if path.is_file() {
        return path.canonicalize().map_err(|error| format!("{}: {error}", path.display()));
    }
    Err(format!("there is no {}: build it, or let scripts/faults do that", path.display()))
}

/// A program that knows nothing of whatever else this shell works with.
fn clean(program: &Path) -> Command {
    let mut command = Command::new(program);
    for (name, _) in std::env::vars_os() {
        if name == "DATABASE_URL" || name.to_string_lossy().starts_with("PLIMSOLL_") {
            command.env_remove(name);
        }
    }
    command.env("NO_COLOR", "1");
    command
}

fn free_port() -> Result<u16, String> {
    let listener = std::net::TcpListener::bind("127.0.0.1:0").map_err(|error| error.to_string())?;
    Ok(listener.local_addr().map_err(|error| error.to_string())?.port())
}

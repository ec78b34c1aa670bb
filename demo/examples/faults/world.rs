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
use tokio::task::JoinSet;
use tokio::time::Instant;
use uuid::Uuid;

use crate::clock::Clock;
use crate::embedded::Embedded;
use crate::measured::{PROJECT, configuration, repository};
use crate::postgres::Postgres;
use crate::proxy::{Mode, Proxy};
use crate::receiver::Receiver;
use crate::server::Server;
use crate::unit::{Ends, Unit};

#[derive(Debug)]
pub(crate) struct World {
    folder: TempDir,
    home: Home,
    /// Past every network that is broken.
    direct: Proxy,
    pub(crate) database: PgPool,
    pub(crate) receiver: Receiver,
    pub(crate) servers: Vec<Server>,
    pub(crate) runners: Vec<Runner>,
    pub(crate) ends: Ends,
    http: reqwest::Client,
    token: String,
    /// Runs that a server said yes to.
    pub(crate) accepted: Vec<Uuid>,
    /// Ends with the world.
    _following: JoinSet<()>,
}

/// Which server is whose.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Setting {
    /// Two servers on one Postgres of somebody else's.
    Shared,
    /// One server that runs its own.
    Embedded,
}

/// Where the database is.
#[derive(Debug)]
enum Home {
    Shared(Postgres),
    Embedded(Embedded),
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

impl Setting {
    pub(crate) fn says(self) -> &'static str {
        match self {
            Self::Shared => "two servers on one Postgres",
            Self::Embedded => "one server with a Postgres of its own",
        }
    }
}

impl World {
    /// `last` is the number of the last round that is played in it.
    pub(crate) async fn start(programs: &Path, setting: Setting, last: u32, seed: u64) -> Result<Self, String> {
        let folder = tempfile::Builder::new()
            .prefix("plimsoll-faults-")
            // Postgres runs as another user when we are root.
            .permissions(std::fs::Permissions::from_mode(0o711))
            .tempdir_in("/tmp")
            .map_err(|error| format!("no temporary folder: {error}"))?;
        let path = folder.path();
        let ports = [free_port()?, free_port()?];
        repository(&path.join("repository"), &ports, last, seed).await?;
        let direct = Proxy::start(Vec::new()).await?;
        let (ends, mut following) = (Ends::default(), JoinSet::new());
        let (home, servers) = match setting {
            Setting::Shared => {
                let postgres = Postgres::start(&path.join("postgres")).await?;
                direct.lead_to(vec![postgres.address().await?]);
                let mut servers = Vec::new();
                for number in 1..=2 {
                    servers.push(Server::start(programs, path, number, Some(&postgres), &ends).await?);
                }
                (Home::Shared(postgres), servers)
            }
            Setting::Embedded => {
                let server = Server::start(programs, path, 1, None, &ends).await?;
                let embedded = Embedded::of(&server.data_dir());
                following.spawn(embedded.clone().follow(direct.clone()));
                (Home::Embedded(embedded), vec![server])
            }
        };
        for server in &servers {
            server.is_up(UP_WITHIN).await?;
        }
        let url = match &home {
            Home::Shared(postgres) => postgres.url(direct.address()),
            Home::Embedded(embedded) => {
                let mut url = embedded.url().ok_or("the server's own Postgres is down")?;
                url.set_port(Some(direct.address().port())).expect("a URL of Postgres has a port");
                url.into()
            }
        };
        let options = PgPoolOptions::new().max_connections(4).acquire_timeout(Duration::from_secs(3));
        let http = reqwest::Client::builder().timeout(Duration::from_secs(5)).pool_max_idle_per_host(0).build();
        let mut world = Self {
            home,
            direct,
            database: options.connect_lazy(&url).map_err(|error| error.to_string())?,
            receiver: Receiver::start().await?,
            servers,
            runners: Vec::new(),
            ends,
            http: http.map_err(|error| error.to_string())?,
            token: String::new(),
            accepted: Vec::new(),
            folder,
            _following: following,
        };
        world.set_up().await?;
        for (number, port) in (1..).zip(ports) {
            let targets = world.servers.iter().map(Server::address).collect();
            let runner = Runner::start(programs, world.folder.path(), number, port, targets, &world.ends).await?;
            world.runners.push(runner);
        }
        Ok(world)
    }

    /// The place of the runner that has a run now.
    pub(crate) async fn busy_runner(&self) -> Option<usize> {
        let sql = "select r.name from jobs j join runners r on r.id = j.runner where j.state in ('leased', 'running')
                   order by j.started_at desc nulls last limit 1";
        let name: String = sqlx::query_scalar(sql).fetch_optional(&self.database).await.ok()??;
        self.runners.iter().position(|runner| runner.unit.name() == name)
    }

    /// One that a server runs by itself is started again by that, when it likes.
    pub(crate) async fn kill_postgres(&self, down_for: Duration) -> Result<(), String> {
        match &self.home {
            Home::Shared(postgres) => {
                let address = postgres.kill(down_for).await?;
                let networks = self.servers.iter().map(|server| &server.network);
                networks.chain([&self.direct]).for_each(|network| network.lead_to(vec![address]));
            }
            Home::Embedded(embedded) => embedded.kill(),
        }
        Ok(())
    }

    /// Asks for a run as a careful client does: with an id of its own, again until a server says yes.
    pub(crate) async fn submit(&self, run: Uuid, tag: &str) -> Result<(), String> {
        let request = json!({ "project": PROJECT, "revision": { "tag": tag }, "run_id": run });
        let until = Instant::now() + ACCEPTED_WITHIN;
        let mut turn = usize::from(run.as_bytes()[15] & 1 == 1);
        loop {
            let answer = self.post(turn, "/api/v1/runs", &request).await;
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
    pub(crate) async fn note(&self, text: &str) {
        for server in &self.servers {
            server.note(text).await;
        }
        self.runners.iter().for_each(|runner| runner.unit.note(text));
    }

    /// Ends everything in order.
    pub(crate) async fn stop(&mut self) {
        let runners = self.runners.drain(..).map(|runner| runner.unit.stop());
        futures_util::future::join_all(runners).await;
        let servers = self.servers.drain(..).map(Server::stop);
        futures_util::future::join_all(servers).await;
        self.database.close().await;
        if let Home::Shared(postgres) = &self.home {
            postgres.stop().await;
        }
    }

    /// Leaves the folder with all logs.
    pub(crate) fn keep(&mut self) -> PathBuf {
        self.folder.disable_cleanup(true);
        self.folder.path().to_owned()
    }

    async fn set_up(&mut self) -> Result<(), String> {
        let path = self.servers[0].data_dir().join("token");
        let token = std::fs::read_to_string(&path).map_err(|error| format!("{}: {error}", path.display()))?;
        token.trim().clone_into(&mut self.token);
        let webhook = json!({ "url": self.receiver.url() });
        let (status, body) = self.post(0, &format!("/api/v1/projects/{PROJECT}/webhooks"), &webhook).await?;
        let secret = serde_json::from_str(&body).ok().and_then(|body: Value| Some(body["secret"].as_str()?.to_owned()));
        self.receiver.set_secret(&secret.ok_or_else(|| format!("no webhook was made: {status} {body}"))?);
        Ok(())
    }

    async fn post(&self, server: usize, path: &str, body: &Value) -> Result<(StatusCode, String), String> {
        let url = format!("http://{}{path}", self.servers[server % self.servers.len()].address());
        let sent = self.http.post(url).bearer_auth(&self.token).json(body).send().await;
        let answer = sent.map_err(|error| error.to_string())?;
        let status = answer.status();
        Ok((status, answer.text().await.map_err(|error| error.to_string())?))
    }
}

impl Runner {
    async fn start(
        programs: &Path,
        folder: &Path,
        number: u32,
        port: u16,
        servers: Vec<SocketAddr>,
        ends: &Ends,
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
        let unit = Unit::start(&name, folder.join(format!("{name}.log")), ends, command);
        Ok(Self { unit, clock, network })
    }

    /// Breaks its way to the servers for a while.
    pub(crate) async fn disturb(&self, mode: Mode, lasts: Duration) -> String {
        self.network.disturb(mode, lasts).await;
        self.unit.name().to_owned()
    }
}

pub(crate) fn program(folder: &Path, name: &str) -> Result<PathBuf, String> {
    let path = folder.join(name);
    if path.is_file() {
        return path.canonicalize().map_err(|error| format!("{}: {error}", path.display()));
    }
    Err(format!("there is no {}: build it, or let scripts/faults do that", path.display()))
}

/// A program that knows nothing of whatever else this shell works with.
pub(crate) fn clean(program: &Path) -> Command {
    let mut command = Command::new(program);
    for (name, _) in std::env::vars_os() {
        if name == "DATABASE_URL" || name.to_string_lossy().starts_with("PLIMSOLL_") {
            command.env_remove(name);
        }
    }
    command.env("NO_COLOR", "1");
    command
}

pub(crate) fn free_port() -> Result<u16, String> {
    let listener = std::net::TcpListener::bind("127.0.0.1:0").map_err(|error| error.to_string())?;
    Ok(listener.local_addr().map_err(|error| error.to_string())?.port())
}

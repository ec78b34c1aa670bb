//! A server as its clients know it: one address, behind which one process serves, or an old and a new one for a while.

use std::net::SocketAddr;
use std::path::{Path, PathBuf};
use std::time::Duration;

use tokio::process::Command;
use tokio::sync::Mutex;
use tokio::time::Instant;

use crate::clock::Clock;
use crate::postgres::Postgres;
use crate::proxy::{Mode, Proxy};
use crate::unit::{Ends, Unit};
use crate::world::{clean, free_port, program};

#[derive(Debug)]
pub(crate) struct Server {
    pub(crate) name: String,
    pub(crate) clock: Clock,
    /// To Postgres, unless it runs its own.
    pub(crate) network: Proxy,
    front: Proxy,
    recipe: Recipe,
    serving: Mutex<Serving>,
    /// One at a time.
    deploying: Mutex<()>,
    ends: Ends,
}

#[derive(Debug)]
struct Serving {
    unit: Unit,
    address: SocketAddr,
}

/// All that a start needs but the address.
#[derive(Debug, Clone)]
struct Recipe {
    program: PathBuf,
    folder: PathBuf,
    url: Option<String>,
    clock: Clock,
}

/// For a new process beside the old one; the database may be away meanwhile.
const NEW_WITHIN: Duration = Duration::from_secs(60);
const POLL: Duration = Duration::from_millis(100);

impl Server {
    pub(crate) async fn start(
        programs: &Path,
        folder: &Path,
        number: u32,
        postgres: Option<&Postgres>,
        ends: &Ends,
    ) -> Result<Self, String> {
        let name = format!("server-{number}");
        let network = Proxy::start(Vec::new()).await?;
        let url = match postgres {
            Some(postgres) => {
                network.lead_to(vec![postgres.address().await?]);
                Some(postgres.url(network.address()))
            }
            None => None,
        };
        let clock = Clock::new(folder.join(format!("{name}.clock")))?;
        let program = program(programs, "plimsoll-server")?;
        let recipe = Recipe { program, folder: folder.to_owned(), url, clock: clock.clone() };
        let serving = recipe.start(&name, ends)?;
        let front = Proxy::start(vec![serving.address]).await?;
        let (serving, deploying) = (Mutex::new(serving), Mutex::new(()));
        Ok(Self { name, clock, network, front, recipe, serving, deploying, ends: ends.clone() })
    }

    /// Where its clients find it.
    pub(crate) fn address(&self) -> SocketAddr {
        self.front.address()
    }

    pub(crate) fn data_dir(&self) -> PathBuf {
        self.recipe.data_dir(&self.name)
    }

    pub(crate) async fn kill(&self, down_for: Duration) {
        self.serving.lock().await.unit.kill(down_for).await;
    }

    pub(crate) async fn restart(&self, down_for: Duration) {
        self.serving.lock().await.unit.restart(down_for).await;
    }

    /// Starts a new process, lets both serve, and then only the new one; the old one ends in order.
    pub(crate) async fn deploy(&self, together: Duration) -> Result<(), String> {
        let _alone = self.deploying.lock().await;
        let new = self.recipe.start(&self.name, &self.ends)?;
        let address = new.address;
        if !is_ready(address, NEW_WITHIN).await {
            self.ends.disorderly(format!("a new process of {} was not ready in {} s", self.name, NEW_WITHIN.as_secs()));
            new.unit.stop().await;
            return Ok(());
        }
        let old = self.serving.lock().await.address;
        self.front.lead_to(vec![old, address]);
        tokio::time::sleep(together).await;
        self.front.lead_to(vec![address]);
        let old = std::mem::replace(&mut *self.serving.lock().await, new);
        old.unit.stop().await;
        Ok(())
    }

    /// Breaks its way to Postgres for a while.
    pub(crate) async fn disturb(&self, mode: Mode, lasts: Duration) -> String {
        self.network.disturb(mode, lasts).await;
        self.name.clone()
    }

    pub(crate) async fn is_up(&self, within: Duration) -> Result<(), String> {
        if is_ready(self.address(), within).await {
            return Ok(());
        }
        let said = std::fs::read_to_string(self.recipe.log(&self.name)).unwrap_or_default();
        Err(format!("{} did not start within {} s:\n{said}", self.name, within.as_secs()))
    }

    pub(crate) async fn note(&self, text: &str) {
        self.serving.lock().await.unit.note(text);
    }

    pub(crate) async fn stop(self) {
        self.serving.into_inner().unit.stop().await;
    }
}

impl Recipe {
    fn data_dir(&self, name: &str) -> PathBuf {
        self.folder.join(name)
    }

    fn log(&self, name: &str) -> PathBuf {
        self.folder.join(format!("{name}.log"))
    }

    fn start(&self, name: &str, ends: &Ends) -> Result<Serving, String> {
        let address = SocketAddr::from(([127, 0, 0, 1], free_port()?));
        let (recipe, data_dir) = (self.clone(), self.data_dir(name));
        let command = move || recipe.command(address, &data_dir);
        Ok(Serving { unit: Unit::start(name, self.log(name), ends, command), address })
    }

    fn command(&self, address: SocketAddr, data_dir: &Path) -> Command {
        let mut command = clean(&self.program);
        command.arg("serve").arg(format!("--listen={address}")).arg("--data-dir").arg(data_dir);
        command.arg("--allow-private-webhooks").envs(self.url.iter().map(|url| ("DATABASE_URL", url)));
        self.clock.apply(&mut command);
        command
    }
}

async fn is_ready(address: SocketAddr, within: Duration) -> bool {
    let until = Instant::now() + within;
    let url = format!("http://{address}/readyz");
    let Ok(http) = reqwest::Client::builder().timeout(Duration::from_secs(5)).pool_max_idle_per_host(0).build() else {
        return false;
    };
    while Instant::now() < until {
        if http.get(&url).send().await.is_ok_and(|answer| answer.status().is_success()) {
            return true;
        }
        tokio::time::sleep(POLL).await;
    }
    false
}

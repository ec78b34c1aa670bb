//! The Postgres that the servers share: durable, killed with all its processes, started again on its data.

use std::net::SocketAddr;
use std::path::{Path, PathBuf};
use std::time::Duration;

use plimsoll_server::postgres::{Cluster, Options};
use secrecy::ExposeSecret as _;
use tokio::sync::Mutex;
use url::Url;

use crate::host;

#[derive(Debug)]
pub(crate) struct Postgres {
    folder: PathBuf,
    cluster: Mutex<Option<Cluster>>,
    /// Of the database, with the port as it was first.
    url: Url,
}

pub(crate) const DATABASE: &str = "plimsoll";

impl Postgres {
    pub(crate) async fn start(folder: &Path) -> Result<Self, String> {
        let cluster = begin(folder.to_owned()).await?;
        let admin = cluster.url("postgres");
        plimsoll_server::store::database::create(&admin, DATABASE).await.map_err(|error| error.to_string())?;
        let url = Url::parse(cluster.url(DATABASE).expose_secret()).map_err(|error| error.to_string())?;
        Ok(Self { folder: folder.to_owned(), cluster: Mutex::new(Some(cluster)), url })
    }

    /// As reached through this address.
    pub(crate) fn url(&self, through: SocketAddr) -> String {
        let mut url = self.url.clone();
        url.set_port(Some(through.port())).expect("a URL of Postgres has a port");
        url.into()
    }

    pub(crate) async fn address(&self) -> Result<SocketAddr, String> {
        let cluster = self.cluster.lock().await;
        let cluster = cluster.as_ref().ok_or("Postgres is down")?;
        let url = Url::parse(cluster.url(DATABASE).expose_secret()).map_err(|error| error.to_string())?;
        Ok(SocketAddr::from(([127, 0, 0, 1], url.port().ok_or("a URL of Postgres without a port")?)))
    }

    /// Kills it and all its processes, and starts it again after a while; returns where it listens then.
    pub(crate) async fn kill(&self, down_for: Duration) -> Result<SocketAddr, String> {
        {
            let mut cluster = self.cluster.lock().await;
            let dead = cluster.take().ok_or("Postgres is down")?;
            if let Some(pid) = dead.pid() {
                host::kill_all(pid);
            }
            // Lets go of the folder.
            tokio::task::spawn_blocking(move || drop(dead)).await.map_err(|error| error.to_string())?;
            tokio::time::sleep(down_for).await;
            *cluster = Some(begin(self.folder.clone()).await?);
        }
        self.address().await
    }

    pub(crate) async fn stop(&self) {
        let cluster = self.cluster.lock().await.take();
        let _ = tokio::task::spawn_blocking(move || drop(cluster)).await;
    }
}

async fn begin(folder: PathBuf) -> Result<Cluster, String> {
    let start = move || Cluster::start(&Options { dir: folder, durable: true });
    let started = tokio::task::spawn_blocking(start).await.map_err(|error| error.to_string())?;
    started.map_err(|error| error.to_string())
}

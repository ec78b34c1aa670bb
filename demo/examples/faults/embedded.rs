//! The Postgres that a server runs by itself, seen from outside.

use std::fs;
use std::net::SocketAddr;
use std::path::{Path, PathBuf};
use std::time::Duration;

use plimsoll_server::postgres;
use secrecy::ExposeSecret as _;
use url::Url;

use crate::host;
use crate::postgres::DATABASE;
use crate::proxy::Proxy;

#[derive(Debug, Clone)]
pub(crate) struct Embedded {
    folder: PathBuf,
}

/// It listens elsewhere whenever its server starts anew.
const LOOK: Duration = Duration::from_millis(50);

impl Embedded {
    pub(crate) fn of(data_dir: &Path) -> Self {
        Self { folder: data_dir.join("postgres") }
    }

    /// `None` while it is down.
    pub(crate) fn url(&self) -> Option<Url> {
        let url = postgres::running(&self.folder, DATABASE).ok()??;
        Url::parse(url.expose_secret()).ok()
    }

    /// Leads a network to wherever it listens.
    pub(crate) async fn follow(self, network: Proxy) {
        loop {
            if let Some(port) = self.url().and_then(|url| url.port()) {
                network.lead_to(vec![SocketAddr::from(([127, 0, 0, 1], port))]);
            }
            tokio::time::sleep(LOOK).await;
        }
    }

    /// Kills it and all its processes, if it runs.
    pub(crate) fn kill(&self) {
        let data = self.folder.join("data");
        let file = fs::read_to_string(data.join("postmaster.pid")).unwrap_or_default();
        let Some(pid) = file.lines().next().and_then(|line| line.trim().parse().ok()) else { return };
        // The file outlives it.
        if host::command_line(pid).contains(&*data.to_string_lossy()) {
            host::kill_all(pid);
        }
    }
}

//! The server's own program as a child process, as a GitHub App.

use std::net::SocketAddr;
use std::path::{Path, PathBuf};
use std::process::Stdio;

use secrecy::{ExposeSecret as _, SecretString};
use tokio::io::{AsyncBufReadExt as _, BufReader};
use tokio::process::{Child, Command};

use crate::Fallible;
use crate::deliveries::{APP, SECRET};

#[derive(Debug)]
pub(crate) struct Service {
    child: Child,
    pub(crate) address: SocketAddr,
    log: PathBuf,
}

/// Nobody's but that of tests.
const KEY: &str = include_str!("../../tests/it/github/fake/key.pkcs1.pem");

impl Service {
    pub(crate) async fn start(
        program: &str,
        folder: &Path,
        database_url: &SecretString,
        api_url: &str,
    ) -> Fallible<Self> {
        let (log, key) = (folder.join("server.log"), folder.join("key.pem"));
        std::fs::write(&key, KEY)?;
        let mut child = Command::new(program)
            .args(["serve", "--listen", "127.0.0.1:0", "--data-dir"])
            .arg(folder.join("server"))
            .env("DATABASE_URL", database_url.expose_secret())
            .env("PLIMSOLL_GITHUB_APP_ID", APP.to_string())
            .env("PLIMSOLL_GITHUB_PRIVATE_KEY_FILE", key)
            .env("PLIMSOLL_GITHUB_WEBHOOK_SECRET", SECRET)
            .env("PLIMSOLL_GITHUB_API_URL", api_url)
            .stdin(Stdio::null())
            .stdout(Stdio::piped())
            .stderr(std::fs::File::create(&log)?)
            .kill_on_drop(true)
            .spawn()
            .map_err(|error| format!("{program}: {error}"))?;
        let stdout = child.stdout.take().ok_or("no standard output")?;
        let said = BufReader::new(stdout).lines().next_line().await?;
        let address = said.as_deref().and_then(|said| said.strip_prefix("listening on http://")?.parse().ok());
        let address = address.ok_or_else(|| format!("it said {said:?}: {}", read(&log)))?;
        Ok(Self { child, address, log })
    }

    /// At once, as by `kill -9`.
    pub(crate) fn kill(&mut self) {
        // It may have ended by itself, which the answers tell.
        let _ = self.child.start_kill();
    }

    pub(crate) fn log(&self) -> String {
        read(&self.log)
    }
}

fn read(log: &Path) -> String {
    std::fs::read_to_string(log).unwrap_or_default()
}

//! The server's own program as a child process.

use std::path::{Path, PathBuf};
use std::process::Stdio;
use std::time::Duration;

use plimsoll_domain::comparison::Comparison;
use reqwest::header;
use secrecy::{ExposeSecret as _, SecretString};
use serde::Deserialize;
use tokio::io::{AsyncBufReadExt as _, BufReader};
use tokio::process::{Child, Command};

use crate::Fallible;

#[derive(Debug)]
pub(crate) struct Service {
    child: Child,
    /// Its address.
    pub(crate) url: String,
    pub(crate) client: reqwest::Client,
    token: String,
    log: PathBuf,
}

/// The answer to an upload.
#[derive(Debug, Deserialize)]
pub(crate) struct Uploaded {
    pub(crate) created: bool,
    pub(crate) comparison: Comparison,
}

const ENDS_WITHIN: Duration = Duration::from_secs(30);

impl Service {
    pub(crate) async fn start(program: &str, folder: &Path, database_url: &SecretString) -> Fallible<Self> {
        let data_dir = folder.join("server");
        let log = folder.join("server.log");
        let mut child = Command::new(program)
            .args(["serve", "--listen", "127.0.0.1:0", "--data-dir"])
            .arg(&data_dir)
            .env("DATABASE_URL", database_url.expose_secret())
            .stdin(Stdio::null())
            .stdout(Stdio::piped())
            .stderr(std::fs::File::create(&log)?)
            .kill_on_drop(true)
            .spawn()
            .map_err(|error| format!("{program}: {error}"))?;
        let stdout = child.stdout.take().ok_or("no standard output")?;
        let mut lines = BufReader::new(stdout).lines();
        let said = lines.next_line().await?.ok_or_else(|| ended(&log))?;
        let url = said.strip_prefix("listening on ").ok_or_else(|| format!("it said {said:?}"))?.to_owned();
        let token = std::fs::read_to_string(data_dir.join("token"))?.trim().to_owned();
        if rustls::crypto::ring::default_provider().install_default().is_err() {
            return Err("a TLS provider was installed already".into());
        }
        let client = reqwest::Client::builder().timeout(Duration::from_secs(60)).build()?;
        Ok(Self { child, url, client, token, log })
    }

    /// Sends a report, compressed as the runner sends it.
    pub(crate) async fn upload(&self, packed: Vec<u8>) -> Fallible<Uploaded> {
        let request = self
            .client
            .post(format!("{}/api/v1/snapshots", self.url))
            .bearer_auth(&self.token)
            .header(header::CONTENT_TYPE, "application/json")
            .header(header::CONTENT_ENCODING, "zstd")
            .body(packed);
        let answer = request.send().await?;
        let (status, body) = (answer.status(), answer.bytes().await?);
        if !status.is_success() {
            return Err(format!("an upload: {status} {}", String::from_utf8_lossy(&body)).into());
        }
        Ok(serde_json::from_slice(&body)?)
    }

    /// Loads a page as a browser does; its length as sent.
    pub(crate) async fn page(&self, path: &str) -> Fallible<usize> {
        let request = self.client.get(format!("{}{path}", self.url)).bearer_auth(&self.token);
        let answer = request.header(header::ACCEPT, "text/html").header(header::ACCEPT_ENCODING, "gzip").send().await?;
        let (status, body) = (answer.status(), answer.bytes().await?);
        if status.is_success() { Ok(body.len()) } else { Err(format!("{path}: {status}").into()) }
    }

    /// Resident memory; `None` where the system does not tell.
    pub(crate) fn memory_mib(&self) -> Option<f64> {
        let status = std::fs::read_to_string(format!("/proc/{}/status", self.child.id()?)).ok()?;
        let line = status.lines().find_map(|line| line.strip_prefix("VmRSS:"))?;
        Some(line.trim().strip_suffix("kB")?.trim().parse::<f64>().ok()? / 1_024.0)
    }

    pub(crate) async fn stop(mut self) -> Fallible {
        if let Some(pid) = self.child.id().and_then(|id| rustix::process::Pid::from_raw(id as i32)) {
            rustix::process::kill_process(pid, rustix::process::Signal::TERM)?;
        }
        let status = tokio::time::timeout(ENDS_WITHIN, self.child.wait()).await??;
        if status.success() { Ok(()) } else { Err(ended(&self.log).into()) }
    }
}

fn ended(log: &Path) -> String {
    format!("the server has ended: {}", std::fs::read_to_string(log).unwrap_or_default())
}

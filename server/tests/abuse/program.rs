//! The real program as a child, on sockets, with its memory in sight.

use std::fs;
use std::io::{BufRead as _, BufReader};
use std::process::{Child, Command, Stdio};
use std::time::Duration;

use plimsoll_server::store::database;
use secrecy::ExposeSecret as _;
use tempfile::TempDir;
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::TcpStream;
use tokio::time::timeout;

use crate::target::{admit, database_url};

pub(crate) struct Program {
    child: Child,
    pub(crate) address: String,
    _folder: TempDir,
}

/// Nothing here takes longer: the server's own deadlines are 10 s.
pub(crate) const PATIENCE: Duration = Duration::from_secs(30);

impl Drop for Program {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

impl Program {
    pub(crate) async fn start(args: &[&str]) -> Self {
        let url = database_url().await;
        admit(&database::open(&url, 1).await.expect("a connection")).await;
        let folder = TempDir::new().expect("a folder");
        let mut command = Command::new(env!("CARGO_BIN_EXE_plimsoll-server"));
        for (name, _) in std::env::vars_os() {
            if name.to_string_lossy().starts_with("PLIMSOLL_") {
                command.env_remove(name);
            }
        }
        command.env("DATABASE_URL", url.expose_secret()).env("RUST_LOG", "error");
        command.args(["serve", "--listen", "127.0.0.1:0", "--data-dir"]).arg(folder.path()).args(args);
        let mut child = command.stdin(Stdio::null()).stdout(Stdio::piped()).spawn().expect("the program");
        let mut line = String::new();
        BufReader::new(child.stdout.take().expect("piped")).read_line(&mut line).expect("a line");
        let address = line.trim().strip_prefix("listening on http://").expect("the address").to_owned();
        Self { child, address, _folder: folder }
    }

    pub(crate) async fn connect(&self) -> TcpStream {
        TcpStream::connect(&self.address).await.expect("a connection")
    }

    /// Sends these very bytes, and reads until the server closes.
    pub(crate) async fn say(&self, bytes: &[u8]) -> String {
        let mut stream = self.connect().await;
        // It may close before it has read all.
        let _ = stream.write_all(bytes).await;
        heard(&mut stream).await
    }

    /// An honest request, which must be answered whatever else goes on.
    pub(crate) async fn is_well(&self) {
        let answer = self.say(b"GET /healthz HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n").await;
        assert!(answer.starts_with("HTTP/1.1 200"), "{answer}");
    }

    /// The most memory it ever had, in MiB.
    pub(crate) fn peak_mib(&self) -> u64 {
        let status = fs::read_to_string(format!("/proc/{}/status", self.child.id())).expect("it runs");
        let line = status.lines().find(|line| line.starts_with("VmHWM:")).expect("Linux says so");
        line.split_whitespace().nth(1).expect("a number").parse::<u64>().expect("a number") / 1024
    }
}

/// Everything until the other side closes.
pub(crate) async fn heard(stream: &mut TcpStream) -> String {
    let mut answer = Vec::new();
    let whole = async {
        let mut part = [0; 16 << 10];
        while let Ok(length @ 1..) = stream.read(&mut part).await {
            answer.extend_from_slice(&part[..length]);
        }
    };
    timeout(PATIENCE, whole).await.expect("the server closes the connection");
    String::from_utf8_lossy(&answer).into_owned()
}

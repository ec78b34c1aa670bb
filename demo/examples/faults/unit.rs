//! A program that is kept running, as systemd would: what ends is started again.

use std::fs::{File, OpenOptions};
use std::io::Write as _;
use std::path::PathBuf;
use std::process::Stdio;
use std::time::Duration;

use rustix::process::{Pid, Signal, kill_process};
use tokio::process::{Child, Command};
use tokio::sync::mpsc;
use tokio::task::JoinHandle;

#[derive(Debug)]
pub(crate) struct Unit {
    name: String,
    log: PathBuf,
    orders: mpsc::Sender<Order>,
    kept: JoinHandle<Vec<String>>,
}

enum Order {
    /// By SIGKILL; it stays down for so long.
    Kill(Duration),
    Stop,
}

/// What ends by itself is started again after this.
const RESTART: Duration = Duration::from_millis(500);
/// For ending in order, as a service manager would wait.
const STOPS_WITHIN: Duration = Duration::from_secs(30);

impl Unit {
    pub(crate) fn start(name: &str, log: PathBuf, command: impl Fn() -> Command + Send + Sync + 'static) -> Self {
        let (orders, given) = mpsc::channel(8);
        let kept = tokio::spawn(keep(name.to_owned(), log.clone(), Box::new(command), given));
        Self { name: name.to_owned(), log, orders, kept }
    }

    pub(crate) fn name(&self) -> &str {
        &self.name
    }

    pub(crate) async fn kill(&self, down_for: Duration) {
        let _ = self.orders.send(Order::Kill(down_for)).await;
    }

    /// A line of ours in its log.
    pub(crate) fn note(&self, text: &str) {
        if let Ok(mut file) = append(&self.log) {
            let _ = writeln!(file, "=== {text}");
        }
    }

    /// Ends it in order; how often, and how, it ended without being told to.
    pub(crate) async fn stop(self) -> Vec<String> {
        let _ = self.orders.send(Order::Stop).await;
        self.kept.await.unwrap_or_default()
    }
}

async fn keep(
    name: String,
    log: PathBuf,
    command: Box<dyn Fn() -> Command + Send + Sync>,
    mut orders: mpsc::Receiver<Order>,
) -> Vec<String> {
    let mut by_itself = Vec::new();
    loop {
        let started = append(&log).and_then(|out| {
            let mut command = command();
            command.stdin(Stdio::null()).stderr(out.try_clone()?).stdout(out);
            // A signal to our group is for us alone.
            command.process_group(0).kill_on_drop(true).spawn()
        });
        let mut pause = RESTART;
        match started {
            Err(error) => by_itself.push(format!("{name} did not start: {error}")),
            Ok(mut child) => tokio::select! {
                ended = child.wait() => {
                    by_itself.push(format!("{name} ended by itself: {}", ended.map_or_else(|e| e.to_string(), |s| s.to_string())));
                }
                order = orders.recv() => match order {
                    Some(Order::Kill(down_for)) => {
                        let _ = child.kill().await;
                        pause = down_for;
                    }
                    Some(Order::Stop) | None => {
                        by_itself.extend(end(&name, child).await);
                        return by_itself;
                    }
                }
            },
        }
        let until = tokio::time::Instant::now() + pause;
        // It cannot be killed while it is down.
        while let Ok(order) = tokio::time::timeout_at(until, orders.recv()).await {
            if !matches!(order, Some(Order::Kill(_))) {
                return by_itself;
            }
        }
    }
}

/// Asks it to end; `Some` when it had to be killed.
async fn end(name: &str, mut child: Child) -> Option<String> {
    let pid = child.id().and_then(|id| Pid::from_raw(i32::try_from(id).ok()?))?;
    let _ = kill_process(pid, Signal::TERM);
    if tokio::time::timeout(STOPS_WITHIN, child.wait()).await.is_ok() {
        return None;
    }
    let _ = child.kill().await;
    Some(format!("{name} did not end within {} s of SIGTERM", STOPS_WITHIN.as_secs()))
}

fn append(path: &PathBuf) -> std::io::Result<File> {
    OpenOptions::new().create(true).append(true).open(path)
}

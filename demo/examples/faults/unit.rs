//! A program that is kept running, as systemd would: what ends is started again.

use std::fs::{File, OpenOptions};
use std::io::Write as _;
use std::path::PathBuf;
use std::process::Stdio;
use std::sync::{Arc, Mutex, PoisonError};
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
    kept: JoinHandle<()>,
}

/// How the programs ended; all clones are one.
#[derive(Debug, Clone, Default)]
pub(crate) struct Ends(Arc<Mutex<Told>>);

#[derive(Debug, Default)]
struct Told {
    by_themselves: Vec<String>,
    disorderly: Vec<String>,
}

enum Order {
    /// By SIGKILL; it stays down for so long.
    Kill(Duration),
    /// By SIGTERM; it stays down for so long after its end.
    Restart(Duration),
    Stop,
}

/// What ends by itself is started again after this.
const RESTART: Duration = Duration::from_millis(500);
/// For ending in order, as a service manager would wait: a runner finishes its run first.
const STOPS_WITHIN: Duration = Duration::from_secs(60);

impl Ends {
    /// What ended without being told to.
    pub(crate) fn by_themselves(&self) -> Vec<String> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).by_themselves.clone()
    }

    /// What did not end as it should when it was told to, since this was asked last.
    pub(crate) fn take_disorderly(&self) -> Vec<String> {
        std::mem::take(&mut self.0.lock().unwrap_or_else(PoisonError::into_inner).disorderly)
    }

    pub(crate) fn disorderly(&self, why: String) {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).disorderly.push(why);
    }

    fn by_itself(&self, how: String) {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).by_themselves.push(how);
    }
}

impl Unit {
    pub(crate) fn start(
        name: &str,
        log: PathBuf,
        ends: &Ends,
        command: impl Fn() -> Command + Send + Sync + 'static,
    ) -> Self {
        let (orders, given) = mpsc::channel(8);
        let kept = tokio::spawn(keep(name.to_owned(), log.clone(), Box::new(command), given, ends.clone()));
        Self { name: name.to_owned(), log, orders, kept }
    }

    pub(crate) fn name(&self) -> &str {
        &self.name
    }

    pub(crate) async fn kill(&self, down_for: Duration) {
        let _ = self.orders.send(Order::Kill(down_for)).await;
    }

    pub(crate) async fn restart(&self, down_for: Duration) {
        let _ = self.orders.send(Order::Restart(down_for)).await;
    }

    /// A line of ours in its log.
    pub(crate) fn note(&self, text: &str) {
        if let Ok(mut file) = append(&self.log) {
            let _ = writeln!(file, "=== {text}");
        }
    }

    /// Ends it in order.
    pub(crate) async fn stop(self) {
        let _ = self.orders.send(Order::Stop).await;
        let _ = self.kept.await;
    }
}

async fn keep(
    name: String,
    log: PathBuf,
    command: Box<dyn Fn() -> Command + Send + Sync>,
    mut orders: mpsc::Receiver<Order>,
    ends: Ends,
) {
    loop {
        let started = append(&log).and_then(|out| {
            let mut command = command();
            command.stdin(Stdio::null()).stderr(out.try_clone()?).stdout(out);
            // A signal to our group is for us alone.
            command.process_group(0).kill_on_drop(true).spawn()
        });
        let mut pause = RESTART;
        match started {
            Err(error) => ends.by_itself(format!("{name} did not start: {error}")),
            Ok(mut child) => tokio::select! {
                ended = child.wait() => {
                    let how = ended.map_or_else(|error| error.to_string(), |status| status.to_string());
                    ends.by_itself(format!("{name} ended by itself: {how}"));
                }
                order = orders.recv() => match order {
                    Some(Order::Kill(down_for)) => {
                        let _ = child.kill().await;
                        pause = down_for;
                    }
                    Some(Order::Restart(down_for)) => {
                        if end(&name, child, &mut orders, &ends).await {
                            return;
                        }
                        pause = down_for;
                    }
                    Some(Order::Stop) | None => {
                        end(&name, child, &mut orders, &ends).await;
                        return;
                    }
                }
            },
        }
        let until = tokio::time::Instant::now() + pause;
        // It can neither be killed nor ended while it is down.
        while let Ok(order) = tokio::time::timeout_at(until, orders.recv()).await {
            if matches!(order, Some(Order::Stop) | None) {
                return;
            }
        }
    }
}

/// Asks it to end, and waits; true when it is to stay so. It may be killed meanwhile.
async fn end(name: &str, mut child: Child, orders: &mut mpsc::Receiver<Order>, ends: &Ends) -> bool {
    if let Some(pid) = child.id().and_then(|id| Pid::from_raw(i32::try_from(id).ok()?)) {
        let _ = kill_process(pid, Signal::TERM);
    }
    let until = tokio::time::Instant::now() + STOPS_WITHIN;
    let mut stays = false;
    loop {
        tokio::select! {
            ended = child.wait() => {
                if !ended.as_ref().is_ok_and(std::process::ExitStatus::success) {
                    let how = ended.map_or_else(|error| error.to_string(), |status| status.to_string());
                    ends.disorderly(format!("{name} was asked to end, and ended by {how}"));
                }
                return stays;
            }
            order = orders.recv(), if !stays => match order {
                Some(Order::Kill(_)) => {
                    let _ = child.kill().await;
                    return stays;
                }
                Some(Order::Restart(_)) => {}
                Some(Order::Stop) | None => stays = true,
            },
            () = tokio::time::sleep_until(until) => {
                let _ = child.kill().await;
                ends.disorderly(format!("{name} did not end within {} s of SIGTERM", STOPS_WITHIN.as_secs()));
                return stays;
            }
        }
    }
}

fn append(path: &PathBuf) -> std::io::Result<File> {
    OpenOptions::new().create(true).append(true).open(path)
}

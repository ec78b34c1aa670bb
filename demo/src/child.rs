//! A part of the demo as a process of its own.

use std::process::Stdio;
use std::time::Duration;

use tokio::io::{AsyncBufReadExt as _, AsyncReadExt as _, BufReader};
use tokio::process::{ChildStdin, ChildStdout, Command};
use tokio::time::timeout;

use crate::process::GRACE;

#[derive(Debug)]
pub(crate) struct Child {
    name: &'static str,
    process: tokio::process::Child,
    lifeline: Option<ChildStdin>,
    stdout: Option<BufReader<ChildStdout>>,
}

/// The longest output of a part that is kept.
const MAX_OUTPUT: u64 = 16 << 20;

impl Child {
    /// Starts this program as `part`. Its stderr is ours.
    pub(crate) fn start(
        part: &'static str,
        args: impl IntoIterator<Item = String>,
        environment: &[(&str, &str)],
    ) -> Result<Self, String> {
        let failed = |error: std::io::Error| format!("the {part} did not start: {error}");
        let mut command = Command::new(std::env::current_exe().map_err(failed)?);
        command.args(["--lifeline", part]).args(args);
        // The demo's own database and server, whatever else this shell works with.
        for (name, _) in std::env::vars_os() {
            if name == "DATABASE_URL" || name.to_string_lossy().starts_with("PLIMSOLL_") {
                command.env_remove(name);
            }
        }
        command.envs(environment.iter().copied());
        command.stdin(Stdio::piped()).stdout(Stdio::piped()).kill_on_drop(true);
        // Ctrl-C in the terminal reaches the demo alone, which then ends its parts in order.
        command.process_group(0);
        let mut process = command.spawn().map_err(failed)?;
        let lifeline = process.stdin.take();
        let stdout = process.stdout.take().map(BufReader::new);
        Ok(Self { name: part, process, lifeline, stdout })
    }

    /// The first line of its stdout; what follows is thrown away. The error says how it ended instead.
    pub(crate) async fn first_line(&mut self, within: Duration) -> Result<String, String> {
        let name = self.name;
        let mut stdout = self.stdout.take().ok_or_else(|| format!("the {name} was read already"))?;
        let mut line = String::new();
        let read = timeout(within, (&mut stdout).take(4_096).read_line(&mut line)).await;
        match read {
            Ok(Ok(n)) if n > 0 => {
                tokio::spawn(async move { tokio::io::copy(&mut stdout, &mut tokio::io::sink()).await });
                Ok(line.trim().to_owned())
            }
            Ok(Ok(_)) => Err(match timeout(GRACE, self.process.wait()).await {
                Ok(Ok(status)) => format!("the {name} ended at once ({status})"),
                _ => format!("the {name} closed its output and went on"),
            }),
            Ok(Err(error)) => Err(format!("the {name} could not be read: {error}")),
            Err(_) => Err(format!("the {name} did not say its address within {} s", within.as_secs())),
        }
    }

    /// Waits for its end: the exit code, if it was not killed, and all of its stdout.
    pub(crate) async fn finish(&mut self) -> Result<(Option<i32>, Vec<u8>), String> {
        let name = self.name;
        let failed = |error: std::io::Error| format!("the {name} could not be read: {error}");
        let mut output = Vec::new();
        if let Some(stdout) = self.stdout.take() {
            stdout.take(MAX_OUTPUT).read_to_end(&mut output).await.map_err(failed)?;
        }
        let status = self.process.wait().await.map_err(failed)?;
        Ok((status.code(), output))
    }

    /// Lets it put its things in order, then ends it.
    pub(crate) async fn stop(mut self) {
        drop(self.lifeline.take());
        if timeout(GRACE, self.process.wait()).await.is_err() {
            let _ = self.process.kill().await;
        }
    }
}

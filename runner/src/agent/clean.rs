//! Whether the host is as it was before a run: nobody on the service's ports, the GPUs' memory given back.

use std::time::Duration;

use super::ports;
use crate::telemetry::gpu::Gpus;

/// What the host looked like before a run.
#[derive(Debug, Clone, Default)]
pub(super) struct Before {
    ports: Vec<u16>,
    /// Bytes in use on each GPU, in their order.
    memory: Option<Vec<u64>>,
}

/// More than that is left in use: somebody still has the GPU.
const SLACK: u64 = 512 << 20;
/// How long what ended may take to give back.
const PATIENCE: Duration = Duration::from_secs(10);
const ROUND: Duration = Duration::from_millis(200);

impl Before {
    pub(super) fn of(ports: &[u16], gpus: Option<&Gpus>) -> Self {
        Self { ports: ports.to_vec(), memory: memory(gpus) }
    }

    /// What is not as it was, in words; asked again for a while.
    pub(super) async fn compare_patiently(&self, gpus: Option<&Gpus>) -> Result<(), String> {
        let until = tokio::time::Instant::now() + PATIENCE;
        loop {
            match self.compare(gpus) {
                Err(_) if tokio::time::Instant::now() < until => tokio::time::sleep(ROUND).await,
                compared => return compared,
            }
        }
    }

    pub(super) fn compare(&self, gpus: Option<&Gpus>) -> Result<(), String> {
        let taken = ports::taken(&self.ports);
        if !taken.is_empty() {
            return Err(format!("{} still taken", ports::named(&taken)));
        }
        let (Some(before), Some(now)) = (&self.memory, memory(gpus)) else { return Ok(()) };
        match before.iter().zip(&now).find(|(before, now)| **now > **before + SLACK) {
            Some((before, now)) => {
                Err(format!("{} MiB of GPU memory still in use, {} MiB before the run", now >> 20, before >> 20))
            }
            None => Ok(()),
        }
    }
}

/// One name for each GPU, however `runner.toml` names it.
pub(super) fn names(selection: &[String], gpus: Option<&Gpus>) -> Vec<String> {
    let uuids: Option<Vec<String>> =
        gpus.and_then(|gpus| gpus.sample().into_iter().map(|sample| sample.uuid).collect());
    match (selection, uuids) {
        ([], _) => Vec::new(),
        (_, Some(uuids)) => uuids,
        (named, None) => named.to_vec(),
    }
}

/// `None` when one of them does not tell.
fn memory(gpus: Option<&Gpus>) -> Option<Vec<u64>> {
    gpus?.sample().into_iter().map(|sample| sample.memory_used).collect()
}

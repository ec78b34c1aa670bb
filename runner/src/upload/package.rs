//! A report as it is sent: compressed, with its sum.

use std::io::Write as _;
use std::sync::atomic::{AtomicU64, Ordering};

use plimsoll_domain::ids::RunId;
use plimsoll_domain::report::Report;
use sha2::{Digest as _, Sha256};

/// A report, compressed. The same report is always the same bytes, so that an upload goes on after a restart.
#[derive(Debug)]
pub struct Package {
    run_id: RunId,
    gzip: Vec<u8>,
    /// How much of it a server was seen to have.
    arrived: AtomicU64,
}

/// Above this it goes in parts.
const LARGE: usize = 256 << 10;

impl Package {
    pub fn of(report: &Report) -> Result<Self, String> {
        let mut encoder = flate2::write::GzEncoder::new(Vec::new(), flate2::Compression::default());
        let packed = encoder.write_all(report.to_json().as_bytes()).and_then(|()| encoder.finish());
        packed.map(|gzip| Self::packed(report.run_id, gzip)).map_err(|error| error.to_string())
    }

    /// Bytes that were compressed before.
    pub fn packed(run_id: RunId, gzip: Vec<u8>) -> Self {
        Self { run_id, gzip, arrived: AtomicU64::new(0) }
    }

    pub fn run_id(&self) -> RunId {
        self.run_id
    }

    /// As gzip.
    pub fn bytes(&self) -> &[u8] {
        &self.gzip
    }

    pub(super) fn is_large(&self) -> bool {
        self.gzip.len() > LARGE
    }

    pub(super) fn sha256(&self) -> String {
        Sha256::digest(&self.gzip).iter().map(|byte| format!("{byte:02x}")).collect()
    }

    /// The most that a server said to have.
    pub(crate) fn arrived(&self) -> u64 {
        self.arrived.load(Ordering::Relaxed)
    }

    pub(super) fn has_arrived(&self, bytes: u64) {
        self.arrived.fetch_max(bytes, Ordering::Relaxed);
    }
}

//! A report as it is sent: compressed, with its sum.

use std::io::{self, Write as _};
use std::sync::atomic::{AtomicU64, Ordering};

use plimsoll_domain::ids::RunId;
use plimsoll_domain::report::Report;
use sha2::{Digest as _, Sha256};

/// A report, compressed with zstd, which the server stores as it comes. The same report is always the same bytes, so that
/// an upload goes on after a restart. What an earlier version kept on disk is gzip.
#[derive(Debug)]
pub struct Package {
    run_id: RunId,
    packed: Vec<u8>,
    /// How much of it a server was seen to have.
    arrived: AtomicU64,
}

/// Above this it goes in parts.
const LARGE: usize = 256 << 10;
/// zstd's default.
const LEVEL: i32 = 3;

impl Package {
    pub fn of(report: &Report) -> Result<Self, String> {
        let packed = zstd::bulk::compress(report.to_json().as_bytes(), LEVEL);
        packed.map(|packed| Self::packed(report.run_id, packed)).map_err(|error| error.to_string())
    }

    /// Bytes that were compressed before.
    pub fn packed(run_id: RunId, packed: Vec<u8>) -> Self {
        Self { run_id, packed, arrived: AtomicU64::new(0) }
    }

    /// The same for a server that does not know zstd; `None` when it is gzip already.
    pub(super) fn as_gzip(&self) -> io::Result<Option<Self>> {
        if !self.is_zstd() {
            return Ok(None);
        }
        let json = zstd::decode_all(&self.packed[..])?;
        let mut encoder = flate2::write::GzEncoder::new(Vec::new(), flate2::Compression::default());
        encoder.write_all(&json)?;
        Ok(Some(Self::packed(self.run_id, encoder.finish()?)))
    }

    /// As `Content-Encoding` names it.
    pub(super) fn encoding(&self) -> &'static str {
        if self.is_zstd() { "zstd" } else { "gzip" }
    }

    fn is_zstd(&self) -> bool {
        self.packed.starts_with(&ZSTD)
    }

    pub fn run_id(&self) -> RunId {
        self.run_id
    }

    /// Compressed.
    pub fn bytes(&self) -> &[u8] {
        &self.packed
    }

    pub(super) fn is_large(&self) -> bool {
        self.packed.len() > LARGE
    }

    pub(super) fn sha256(&self) -> String {
        Sha256::digest(&self.packed).iter().map(|byte| format!("{byte:02x}")).collect()
    }

    /// The most that a server said to have.
    pub(crate) fn arrived(&self) -> u64 {
        self.arrived.load(Ordering::Relaxed)
    }

    pub(super) fn has_arrived(&self, bytes: u64) {
        self.arrived.fetch_max(bytes, Ordering::Relaxed);
    }
}

/// How every zstd frame begins.
pub(crate) const ZSTD: [u8; 4] = [0x28, 0xb5, 0x2f, 0xfd];

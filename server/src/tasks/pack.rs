//! Reports to and from their stored form.

use plimsoll_domain::report::{MAX_BYTES, Report};
use sha2::{Digest as _, Sha256};

use super::{Error, Result};
use crate::store::reports::Packed;

/// zstd's default: small enough, and quick.
const LEVEL: i32 = 3;

/// Compresses a checked report. The hash is over the report's own JSON, so that white space and the order of fields in
/// what was uploaded do not matter.
pub fn pack(report: &Report) -> Result<Packed> {
    let json = report.to_json();
    let body = zstd::bulk::compress(json.as_bytes(), LEVEL).map_err(Error::internal)?;
    Ok(Packed { sha256: Sha256::digest(json.as_bytes()).into(), bytes: json.len() as u64, body })
}

/// The JSON of a stored report.
pub fn json(packed: &Packed) -> Result<Vec<u8>> {
    // Re-serialized numbers may be longer than the uploaded ones: a little more than the limit is possible. Thinned, it is
    // shorter than it was.
    let most = usize::try_from(packed.bytes).unwrap_or(usize::MAX).min(2 * MAX_BYTES);
    zstd::bulk::decompress(&packed.body, most).map_err(|e| Error::internal(format!("a stored report: {e}")))
}

/// Reads a stored report.
pub fn unpack(packed: &Packed) -> Result<Report> {
    Report::from_json(&json(packed)?).map_err(|e| Error::internal(format!("a stored report: {e}")))
}

//! Reports to and from their stored form.

use std::cell::RefCell;

use plimsoll_domain::report::{MAX_BYTES, Report};
use sha2::{Digest as _, Sha256};

use super::{Error, Result};
use crate::store::reports::Packed;

/// Most of a report is base64 of histograms that are compressed already: higher levels take longer for the same size.
const LEVEL: i32 = 1;

thread_local! {
    /// Its tables are as large as a report.
    static COMPRESSOR: RefCell<Option<zstd::bulk::Compressor<'static>>> = const { RefCell::new(None) };
}

/// Packs a report's own JSON.
pub fn pack(report: &Report) -> Result<Packed> {
    pack_json(report.to_json().as_bytes())
}

/// The JSON of a checked report that came packed with zstd: that is what is stored.
pub fn packed(json: &[u8], body: Vec<u8>) -> Packed {
    Packed { sha256: hash(json), bytes: json.len() as u64, body }
}

/// Packs the JSON of a checked report as it came.
pub fn pack_json(json: &[u8]) -> Result<Packed> {
    let body = COMPRESSOR.with_borrow_mut(|compressor| match compressor {
        Some(compressor) => compressor.compress(json),
        None => compressor.insert(zstd::bulk::Compressor::new(LEVEL)?).compress(json),
    });
    Ok(packed(json, body.map_err(Error::internal)?))
}

/// What a repeated upload is known by.
pub fn hash(json: &[u8]) -> [u8; 32] {
    Sha256::digest(json).into()
}

/// The JSON of a stored report.
pub fn json(packed: &Packed) -> Result<Vec<u8>> {
    // Earlier versions serialized reports again, whose numbers may be longer than the uploaded ones: a little more than the
    // limit is possible. Thinned, it is shorter than it was.
    let most = usize::try_from(packed.bytes).unwrap_or(usize::MAX).min(2 * MAX_BYTES);
    zstd::bulk::decompress(&packed.body, most).map_err(|e| Error::internal(format!("a stored report: {e}")))
}

/// Reads a stored report.
pub fn unpack(packed: &Packed) -> Result<Report> {
    Report::from_json(&json(packed)?).map_err(|e| Error::internal(format!("a stored report: {e}")))
}

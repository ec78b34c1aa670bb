//! The reports themselves, compressed.

use plimsoll_domain::ids::RunId;

use super::{Executor, Result, corrupt};

/// A report as stored: zstd over its JSON.
#[derive(Debug, Clone)]
pub struct Packed {
    /// Over the uncompressed bytes.
    pub sha256: [u8; 32],
    /// Uncompressed length.
    pub bytes: u64,
    pub body: Vec<u8>,
}

pub async fn insert(executor: impl Executor<'_>, run_id: RunId, report: &Packed) -> Result<()> {
    sqlx::query!(
        "insert into reports (run_id, sha256, bytes, body) values ($1, $2, $3, $4)",
        run_id.0,
        &report.sha256[..],
        i64::try_from(report.bytes).unwrap_or(i64::MAX),
        &report.body[..],
    )
    .execute(executor)
    .await?;
    Ok(())
}

pub async fn get(executor: impl Executor<'_>, run_id: RunId) -> Result<Option<Packed>> {
    let row = sqlx::query!("select sha256, bytes, body from reports where run_id = $1", run_id.0)
        .fetch_optional(executor)
        .await?;
    row.map(|row| Ok(Packed { sha256: hash(row.sha256)?, bytes: row.bytes.unsigned_abs(), body: row.body })).transpose()
}

/// The hash alone, to recognise a repeated upload.
pub async fn sha256(executor: impl Executor<'_>, run_id: RunId) -> Result<Option<[u8; 32]>> {
    let found =
        sqlx::query_scalar!("select sha256 from reports where run_id = $1", run_id.0).fetch_optional(executor).await?;
    found.map(hash).transpose()
}

pub(super) fn hash(bytes: Vec<u8>) -> Result<[u8; 32]> {
    bytes.try_into().map_err(|_| corrupt("hash")("not 32 bytes".to_owned()))
}

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

pub async fn get(executor: impl Executor<'_>, run_id: RunId) -> Result<Option<Packed>> {
    let row = sqlx::query!("select sha256, bytes, body from reports where run_id = $1", run_id.0)
        .fetch_optional(executor)
        .await?;
    row.map(|row| Ok(Packed { sha256: hash(row.sha256)?, bytes: row.bytes.unsigned_abs(), body: row.body })).transpose()
}

/// What is known of a run before its report is stored.
#[derive(Debug)]
pub struct Before {
    /// The hash of the report that is stored already.
    pub stored: Option<[u8; 32]>,
    /// Whether there is a job of it.
    pub asked_for: bool,
    /// Whether a check on GitHub waits for it, or for what it is the baseline of.
    pub checked: bool,
}

pub async fn before(executor: impl Executor<'_>, run_id: RunId) -> Result<Before> {
    let row = sqlx::query!(
        r#"select (select sha256 from reports where run_id = $1) as sha256,
             exists (select from jobs where run_id = $1) as "asked_for!",
             exists (select from jobs j join github_checks c on c.run_id in (j.run_id, j.baseline_of)
               where j.run_id = $1) as "checked!""#,
        run_id.0
    );
    let row = row.fetch_one(executor).await?;
    Ok(Before { stored: row.sha256.map(hash).transpose()?, asked_for: row.asked_for, checked: row.checked })
}

pub(super) fn hash(bytes: Vec<u8>) -> Result<[u8; 32]> {
    bytes.try_into().map_err(|_| corrupt("hash")("not 32 bytes".to_owned()))
}

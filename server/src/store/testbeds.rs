//! Testbeds, by fingerprint.

use plimsoll_domain::testbed::Testbed;
use sqlx::types::Json;

use super::{Executor, Result};

/// Stores the testbed, if it is new: facts never change under a fingerprint.
pub async fn ensure(executor: impl Executor<'_>, testbed: &Testbed) -> Result<()> {
    let fingerprint = testbed.fingerprint();
    sqlx::query!(
        "insert into testbeds (fingerprint, label, facts) values ($1, $2, $3) on conflict (fingerprint) do nothing",
        fingerprint.as_str(),
        testbed.label(),
        Json(testbed) as _,
    )
    .execute(executor)
    .await?;
    Ok(())
}

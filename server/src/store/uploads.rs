//! Uploads in parts. Each function that changes one works within the caller's transaction.

use plimsoll_domain::ids::RunId;

use super::reports::hash;
use super::{Executor, Result};

/// One that is under way, or was.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Upload {
    pub id: i64,
    /// Of all bytes.
    pub sha256: [u8; 32],
    pub bytes: u64,
    pub received: u64,
    /// Its report is stored; its parts are gone.
    pub finished: bool,
}

/// An owner's upload of a run, locked against other parts of it. Owners are named as in the audit log.
pub async fn lock(executor: impl Executor<'_>, run_id: RunId, owner: &str) -> Result<Option<Upload>> {
    let row = sqlx::query!(
        r#"select id, sha256, bytes, received, finished_at is not null as "finished!"
           from uploads where run_id = $1 and owner = $2 for update"#,
        run_id.0,
        owner,
    )
    .fetch_optional(executor)
    .await?;
    row.map(|row| {
        let (bytes, received) = (row.bytes.unsigned_abs(), row.received.unsigned_abs());
        Ok(Upload { id: row.id, sha256: hash(row.sha256)?, bytes, received, finished: row.finished })
    })
    .transpose()
}

/// Makes an owner's requests that begin one wait for each other until the transaction ends, so that they can be counted.
pub async fn lock_owner(executor: impl Executor<'_>, owner: &str) -> Result<()> {
    sqlx::query!(r#"select pg_advisory_xact_lock(hashtextextended('uploads of ' || $1, 0))::text as "done""#, owner)
        .fetch_one(executor)
        .await?;
    Ok(())
}

/// How many an owner has open.
pub async fn open(executor: impl Executor<'_>, owner: &str) -> Result<i64> {
    let count = sqlx::query_scalar!(
        r#"select count(*) as "count!" from uploads where owner = $1 and finished_at is null"#,
        owner
    );
    Ok(count.fetch_one(executor).await?)
}

/// Removes those of an owner to which nothing was added for an hour.
pub async fn remove_stalled(executor: impl Executor<'_>, owner: &str) -> Result<()> {
    sqlx::query!(
        "delete from uploads where owner = $1 and finished_at is null and updated_at < now() - interval '1 hour'",
        owner
    )
    .execute(executor)
    .await?;
    Ok(())
}

pub async fn begin(
    executor: impl Executor<'_>,
    run_id: RunId,
    owner: &str,
    sha256: &[u8; 32],
    bytes: u64,
) -> Result<()> {
    sqlx::query!(
        "insert into uploads (run_id, owner, sha256, bytes) values ($1, $2, $3, $4)",
        run_id.0,
        owner,
        &sha256[..],
        bytes.cast_signed(),
    )
    .execute(executor)
    .await?;
    Ok(())
}

/// Stores the bytes from `start` on, and counts them.
pub async fn append(transaction: &mut sqlx::PgConnection, id: i64, start: u64, body: &[u8]) -> Result<()> {
    let start = start.cast_signed();
    sqlx::query!("insert into upload_parts (upload, start, body) values ($1, $2, $3)", id, start, body)
        .execute(&mut *transaction)
        .await?;
    let length = i64::try_from(body.len()).unwrap_or(i64::MAX);
    sqlx::query!("update uploads set received = received + $2, updated_at = now() where id = $1", id, length)
        .execute(transaction)
        .await?;
    Ok(())
}

/// All parts in their order.
pub async fn parts(executor: impl Executor<'_>, id: i64) -> Result<Vec<Vec<u8>>> {
    let parts = sqlx::query_scalar!("select body from upload_parts where upload = $1 order by start", id);
    Ok(parts.fetch_all(executor).await?)
}

/// Lets the parts go.
pub async fn finish(transaction: &mut sqlx::PgConnection, id: i64) -> Result<()> {
    sqlx::query!("update uploads set finished_at = now(), updated_at = now() where id = $1", id)
        .execute(&mut *transaction)
        .await?;
    sqlx::query!("delete from upload_parts where upload = $1", id).execute(transaction).await?;
    Ok(())
}

pub async fn remove(executor: impl Executor<'_>, id: i64) -> Result<()> {
    sqlx::query!("delete from uploads where id = $1", id).execute(executor).await?;
    Ok(())
}

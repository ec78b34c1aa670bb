//! What retention asks of the database: short statements, each over few rows, that leave what another one holds.

use jiff::Timestamp;
use plimsoll_domain::ids::RunId;
use serde::Serialize;
use uuid::Uuid;

use super::reports::{Packed, hash};
use super::time::{from_db, to_db};
use super::{Executor, Result};

/// What is older than this goes.
#[derive(Debug, Clone, Copy)]
pub struct Cutoffs {
    /// Reports of runs that ended before lose their windows; `None` leaves them.
    pub windows: Option<Timestamp>,
    /// Live events of runs that ended before.
    pub live_events: Timestamp,
    /// Sessions that expired before.
    pub sessions: Timestamp,
    /// Uploads in parts that nobody continued since.
    pub uploads: Timestamp,
    /// Events that were delivered, or given up, and are older.
    pub events: Timestamp,
    /// Runners that were not heard since and hold no run.
    pub runners: Timestamp,
    /// Deliveries of GitHub's that were handled, or given up, and came before.
    pub inbox: Timestamp,
    /// What GitHub was told, or could not be, before.
    pub told: Timestamp,
}

/// How much that is.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize)]
pub struct Counts {
    /// Reports whose windows went.
    pub reports: u64,
    pub live_events: u64,
    pub sessions: u64,
    pub uploads: u64,
    pub deliveries: u64,
    pub events: u64,
    pub runners: u64,
    pub inbox: u64,
    pub told: u64,
}

/// Rows of one statement.
const BATCH: i64 = 2_000;

/// The database's clock, by which rows are dated.
pub async fn now(executor: impl Executor<'_>) -> Result<Timestamp> {
    Ok(from_db(sqlx::query_scalar!(r#"select now() as "now!""#).fetch_one(executor).await?))
}

/// What would go.
pub async fn count(executor: impl Executor<'_>, before: &Cutoffs) -> Result<Counts> {
    let row = sqlx::query!(
        r#"select
             (select count(*) from reports r join snapshots s using (run_id)
              where r.thinned_at is null and s.finished_at < $1) as "reports!",
             (select count(*) from live_events e join jobs j using (run_id) where j.finished_at < $2) as "live_events!",
             (select count(*) from sessions where expires_at < $3) as "sessions!",
             (select count(*) from uploads where updated_at < $4) as "uploads!",
             (select count(*) from deliveries d join outbox o on o.id = d.event
              where o.created_at < $5 and (d.delivered_at is not null or d.failed_at is not null)) as "deliveries!",
             (select count(*) from outbox o
              where o.created_at < $5 and o.event <> 'run.finished'
                and exists (select 1 from outbox n where n.run_id = o.run_id and n.seq > o.seq)
                and not exists (select 1 from deliveries d
                                where d.event = o.id and d.delivered_at is null and d.failed_at is null)) as "events!",
             (select count(*) from runners r
              where r.last_seen_at < $6
                and not exists (select 1 from jobs j
                                where j.runner = r.id and j.state in ('leased', 'running'))) as "runners!",
             (select count(*) from github_inbox
              where received_at < $7 and (handled_at is not null or failed_at is not null)) as "inbox!",
             (select count(*) from github_writes
              where created_at < $8 and (done_at is not null or failed_at is not null)) as "told!""#,
        before.windows.map(to_db),
        to_db(before.live_events),
        to_db(before.sessions),
        to_db(before.uploads),
        to_db(before.events),
        to_db(before.runners),
        to_db(before.inbox),
        to_db(before.told),
    )
    .fetch_one(executor)
    .await?;
    Ok(Counts {
        reports: row.reports.unsigned_abs(),
        live_events: row.live_events.unsigned_abs(),
        sessions: row.sessions.unsigned_abs(),
        uploads: row.uploads.unsigned_abs(),
        deliveries: row.deliveries.unsigned_abs(),
        events: row.events.unsigned_abs(),
        runners: row.runners.unsigned_abs(),
        inbox: row.inbox.unsigned_abs(),
        told: row.told.unsigned_abs(),
    })
}

/// The next whole report, by run id after `after`, of a run that ended before `before`; locked.
pub async fn next_whole(
    executor: impl Executor<'_>,
    after: Option<RunId>,
    before: Timestamp,
) -> Result<Option<(RunId, Packed)>> {
    let row = sqlx::query!(
        "select r.run_id, r.sha256, r.bytes, r.body from reports r join snapshots s using (run_id)
         where r.thinned_at is null and s.finished_at < $1 and r.run_id > $2
         order by r.run_id limit 1 for update of r skip locked",
        to_db(before),
        after.map_or(Uuid::nil(), |run| run.0),
    )
    .fetch_optional(executor)
    .await?;
    row.map(|row| {
        let packed = Packed { sha256: hash(row.sha256)?, bytes: row.bytes.unsigned_abs(), body: row.body };
        Ok((RunId(row.run_id), packed))
    })
    .transpose()
}

/// Puts the thinned body in the place of the whole one. Hash and length stay those of the report as it was uploaded, so
/// that a repeated upload is known.
pub async fn put_thinned(executor: impl Executor<'_>, run_id: RunId, body: &[u8]) -> Result<()> {
    sqlx::query!("update reports set body = $2, thinned_at = now() where run_id = $1", run_id.0, body)
        .execute(executor)
        .await?;
    Ok(())
}

pub async fn live_events(executor: impl Executor<'_>, before: Timestamp) -> Result<u64> {
    let done = sqlx::query!(
        "delete from live_events where (run_id, seq) in (
             select e.run_id, e.seq from live_events e join jobs j using (run_id)
             where j.finished_at < $1 limit $2 for update of e skip locked)",
        to_db(before),
        BATCH,
    );
    Ok(done.execute(executor).await?.rows_affected())
}

pub async fn sessions(executor: impl Executor<'_>, before: Timestamp) -> Result<u64> {
    let done = sqlx::query!(
        "delete from sessions where sha256 in (
             select sha256 from sessions where expires_at < $1 limit $2 for update skip locked)",
        to_db(before),
        BATCH,
    );
    Ok(done.execute(executor).await?.rows_affected())
}

/// Few at a time: their parts go with them.
pub async fn uploads(executor: impl Executor<'_>, before: Timestamp) -> Result<u64> {
    let done = sqlx::query!(
        "delete from uploads where id in (
             select id from uploads where updated_at < $1 limit 20 for update skip locked)",
        to_db(before),
    );
    Ok(done.execute(executor).await?.rows_affected())
}

pub async fn deliveries(executor: impl Executor<'_>, before: Timestamp) -> Result<u64> {
    let done = sqlx::query!(
        "delete from deliveries where id in (
             select d.id from deliveries d join outbox o on o.id = d.event
             where o.created_at < $1 and (d.delivered_at is not null or d.failed_at is not null)
             limit $2 for update of d skip locked)",
        to_db(before),
        BATCH,
    );
    Ok(done.execute(executor).await?.rows_affected())
}

/// Of each run the last event stays, by which the next one is numbered, and that it was told to be finished.
pub async fn events(executor: impl Executor<'_>, before: Timestamp) -> Result<u64> {
    let done = sqlx::query!(
        "delete from outbox where id in (
             select o.id from outbox o
             where o.created_at < $1 and o.event <> 'run.finished'
               and exists (select 1 from outbox n where n.run_id = o.run_id and n.seq > o.seq)
               and not exists (select 1 from deliveries d where d.event = o.id)
             limit $2 for update of o skip locked)",
        to_db(before),
        BATCH,
    );
    Ok(done.execute(executor).await?.rows_affected())
}

/// Few at a time: each run that one of them had forgets its name.
pub async fn runners(executor: impl Executor<'_>, before: Timestamp) -> Result<u64> {
    let done = sqlx::query!(
        "delete from runners where id in (
             select r.id from runners r
             where r.last_seen_at < $1
               and not exists (select 1 from jobs j where j.runner = r.id and j.state in ('leased', 'running'))
             limit 20 for update skip locked)",
        to_db(before),
    );
    Ok(done.execute(executor).await?.rows_affected())
}

pub async fn inbox(executor: impl Executor<'_>, before: Timestamp) -> Result<u64> {
    let done = sqlx::query!(
        "delete from github_inbox where delivery in (
             select delivery from github_inbox
             where received_at < $1 and (handled_at is not null or failed_at is not null)
             limit $2 for update skip locked)",
        to_db(before),
        BATCH,
    );
    Ok(done.execute(executor).await?.rows_affected())
}

pub async fn told(executor: impl Executor<'_>, before: Timestamp) -> Result<u64> {
    let done = sqlx::query!(
        "delete from github_writes where id in (
             select id from github_writes
             where created_at < $1 and (done_at is not null or failed_at is not null)
             limit $2 for update skip locked)",
        to_db(before),
        BATCH,
    );
    Ok(done.execute(executor).await?.rows_affected())
}

//! Deliveries of GitHub's, kept until they are handled, and known for a while after.

use std::time::Duration;

use jiff::Timestamp;

use super::super::time::from_db;
use super::super::{Executor, Result};

/// A delivery that came in.
#[derive(Debug, Clone, Copy)]
pub struct New<'a> {
    /// GitHub's name for it: the same when it is sent again.
    pub delivery: &'a str,
    pub event: &'a str,
    /// Those of one lane are handled one after the other.
    pub lane: Option<&'a str>,
    pub body: &'a [u8],
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Put {
    Stored,
    /// It waits already, or was handled.
    Known,
    /// It would have been new.
    Full,
}

/// Stores it, once, if there is room. One that was given up is taken again.
pub async fn put(executor: impl Executor<'_>, new: &New<'_>, room: bool) -> Result<Put> {
    let found = sqlx::query!(
        r#"with new as (
               insert into github_inbox (delivery, event, lane, body)
               select $1::text, $2::text, $3::text, $4::bytea where $5
               on conflict (delivery) do update set event = excluded.event, lane = excluded.lane, body = excluded.body,
                   received_at = now(), attempts = 0, next_at = now(), taken_until = null, failed_at = null,
                   last_error = null
               where github_inbox.failed_at is not null
               returning 1)
           select exists (select 1 from new) as "stored!",
               exists (select 1 from github_inbox where delivery = $1 and failed_at is null) as "known!""#,
        new.delivery,
        new.event,
        new.lane,
        new.body,
        room,
    )
    .fetch_one(executor)
    .await?;
    // One that came at the same time is not seen yet, but kept it from being stored.
    Ok(match (found.stored, room || found.known) {
        (true, _) => Put::Stored,
        (false, true) => Put::Known,
        (false, false) => Put::Full,
    })
}

/// Whether fewer than these wait, in rows and in bytes.
pub async fn has_room(executor: impl Executor<'_>, rows: i64, bytes: i64) -> Result<bool> {
    let fits = sqlx::query_scalar!(
        r#"select count(*) < $1 and coalesce(sum(bytes), 0) < $2 as "fits!"
           from (select octet_length(body) as bytes from github_inbox
                 where handled_at is null and failed_at is null limit $1) waiting"#,
        rows,
        bytes,
    );
    Ok(fits.fetch_one(executor).await?)
}

/// A delivery that is to be handled now.
#[derive(Debug)]
pub struct Due {
    pub delivery: String,
    pub event: String,
    pub body: Vec<u8>,
    /// This one included.
    pub attempts: i32,
    pub received_at: Timestamp,
    /// By the database's clock.
    pub now: Timestamp,
}

/// What is due: of each lane the oldest, and none of a lane of which another is being handled; one that failed and waits
/// for its next attempt holds up nobody. It is taken for `lease`: whoever takes it may handle it without a transaction,
/// and when they die, another does.
pub async fn take(executor: impl Executor<'_>, most: i64, lease: Duration) -> Result<Vec<Due>> {
    let rows = sqlx::query!(
        r#"with waiting as (
               select delivery, coalesce(lane, delivery) as lane, received_at, next_at,
                   coalesce(taken_until > now(), false) as taken
               from github_inbox where handled_at is null and failed_at is null),
           first as (
               select distinct on (lane) delivery from waiting w
               where next_at <= now() and not taken
                 and not exists (select 1 from waiting o where o.lane = w.lane and o.taken)
               order by lane, received_at, delivery),
           due as (
               select i.delivery from github_inbox i join first using (delivery)
               where i.handled_at is null and i.failed_at is null and i.next_at <= now()
                 and (i.taken_until is null or i.taken_until <= now())
               order by i.received_at limit $1 for update of i skip locked)
           update github_inbox i set attempts = attempts + 1, taken_until = now() + make_interval(secs => $2)
           from due where i.delivery = due.delivery
           returning i.delivery, i.event, i.body, i.attempts, i.received_at, now() as "now!""#,
        most,
        lease.as_secs_f64(),
    )
    .fetch_all(executor)
    .await?;
    let rows = rows.into_iter().map(|row| Due {
        delivery: row.delivery,
        event: row.event,
        body: row.body,
        attempts: row.attempts,
        received_at: from_db(row.received_at),
        now: from_db(row.now),
    });
    Ok(rows.collect())
}

/// It is still being handled. False when it is not this one's any more.
pub async fn renew(executor: impl Executor<'_>, due: &Due, lease: Duration) -> Result<bool> {
    let done = sqlx::query!(
        "update github_inbox set taken_until = now() + make_interval(secs => $3)
         where delivery = $1 and attempts = $2 and handled_at is null and failed_at is null",
        due.delivery,
        due.attempts,
        lease.as_secs_f64(),
    );
    Ok(done.execute(executor).await?.rows_affected() > 0)
}

/// It was handled; what it said is not kept.
pub async fn handled(executor: impl Executor<'_>, due: &Due, outcome: &str) -> Result<()> {
    sqlx::query!(
        "update github_inbox set handled_at = now(), outcome = $3, body = '', taken_until = null, last_error = null
         where delivery = $1 and attempts = $2 and handled_at is null and failed_at is null",
        due.delivery,
        due.attempts,
        outcome,
    )
    .execute(executor)
    .await?;
    Ok(())
}

/// Attempt number `attempts` failed: once more after `retry`, or never.
pub async fn failed(executor: impl Executor<'_>, due: &Due, error: &str, retry: Option<Duration>) -> Result<()> {
    sqlx::query!(
        "update github_inbox set last_error = $3, taken_until = null,
             next_at = now() + make_interval(secs => coalesce($4::float8, 0)),
             failed_at = case when $4::float8 is null then now() end,
             body = case when $4::float8 is null then '' else body end
         where delivery = $1 and attempts = $2 and handled_at is null and failed_at is null",
        due.delivery,
        due.attempts,
        error,
        retry.map(|time| time.as_secs_f64()),
    )
    .execute(executor)
    .await?;
    Ok(())
}

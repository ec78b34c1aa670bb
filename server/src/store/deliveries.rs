//! Events on their way to webhooks.

use std::time::Duration;

use jiff::Timestamp;
use secrecy::SecretString;
use sqlx::postgres::types::PgInterval;
use uuid::Uuid;

use super::time::from_db;
use super::{Executor, Result};

/// An event that is to be sent now.
#[derive(Debug)]
pub struct Due {
    pub id: i64,
    /// This one included.
    pub attempts: i32,
    /// By the database's clock.
    pub now: Timestamp,
    pub url: String,
    pub secret: SecretString,
    pub event: Event,
}

/// A line of the outbox.
#[derive(Debug)]
pub struct Event {
    pub run_id: Uuid,
    pub project: String,
    /// Counts from 1 within a run, without gaps.
    pub seq: i32,
    pub name: String,
    pub created_at: Timestamp,
    pub payload: serde_json::Value,
}

/// What is due, at most `most` and at most `each` to one webhook, so that one which is slow holds up no other. It is not
/// due again before `lease` has passed: whoever takes it may send it without a transaction, and when they die, another
/// sends it. An event waits until the earlier ones of its run are delivered or given up.
pub async fn take(executor: impl Executor<'_>, most: i64, each: i64, lease: Duration) -> Result<Vec<Due>> {
    let rows = sqlx::query!(
        r#"with ripe as (
               select d.id, row_number() over (partition by d.webhook order by d.next_at, d.id) as place
               from deliveries d join outbox o on o.id = d.event
               where d.delivered_at is null and d.failed_at is null and d.next_at <= now()
                 and not exists (
                     select 1 from deliveries e join outbox p on p.id = e.event
                     where e.webhook = d.webhook and p.run_id = o.run_id and p.seq < o.seq
                       and e.delivered_at is null and e.failed_at is null)
           ), due as (
               select d.id from deliveries d join ripe on ripe.id = d.id
               where ripe.place <= $2 and d.delivered_at is null and d.failed_at is null and d.next_at <= now()
               order by d.next_at, d.id limit $1
               for update of d skip locked
           )
           update deliveries d set attempts = d.attempts + 1, next_at = now() + $3
           from due, outbox o, webhooks w
           where d.id = due.id and o.id = d.event and w.id = d.webhook
           returning d.id, d.attempts, now() as "now!", w.url, w.secret,
               o.run_id, o.project, o.seq, o.event, o.created_at, o.payload"#,
        most,
        each,
        interval(lease),
    )
    .fetch_all(executor)
    .await?;
    let rows = rows.into_iter().map(|row| Due {
        id: row.id,
        attempts: row.attempts,
        now: from_db(row.now),
        url: row.url,
        secret: row.secret.into(),
        event: Event {
            run_id: row.run_id,
            project: row.project,
            seq: row.seq,
            name: row.event,
            created_at: from_db(row.created_at),
            payload: row.payload,
        },
    });
    Ok(rows.collect())
}

pub async fn delivered(executor: impl Executor<'_>, id: i64) -> Result<()> {
    sqlx::query!(
        "update deliveries set delivered_at = now(), failed_at = null where id = $1 and delivered_at is null",
        id
    )
    .execute(executor)
    .await?;
    Ok(())
}

/// Attempt number `attempts` failed: once more after `retry`, or never.
pub async fn failed(
    executor: impl Executor<'_>,
    id: i64,
    attempts: i32,
    error: &str,
    retry: Option<Duration>,
) -> Result<()> {
    sqlx::query!(
        "update deliveries set last_error = $3, next_at = now() + coalesce($4, interval '0'),
             failed_at = case when $4::interval is null then now() end
         where id = $1 and attempts = $2 and delivered_at is null and failed_at is null",
        id,
        attempts,
        error,
        retry.map(interval) as _,
    )
    .execute(executor)
    .await?;
    Ok(())
}

fn interval(time: Duration) -> PgInterval {
    PgInterval { months: 0, days: 0, microseconds: i64::try_from(time.as_micros()).unwrap_or(i64::MAX) }
}

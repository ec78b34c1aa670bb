//! How the queue, the runners and the outbox stand, in one statement over small indexes.

use jiff::Timestamp;

use super::time::from_db;
use super::{Executor, Result};

/// Counts, and ages in seconds; no age without anything that has one.
#[derive(Debug, Clone, Copy, Default, PartialEq)]
pub struct Gauges {
    pub queued: i64,
    pub leased: i64,
    pub running: i64,
    pub oldest_queued_s: Option<f64>,
    pub oldest_leased_s: Option<f64>,
    pub oldest_running_s: Option<f64>,
    /// Leases that ended and were not taken back yet, and for how long the first of them.
    pub overdue: i64,
    pub most_overdue_s: Option<f64>,
    /// Asked for work or sent a heartbeat in the last two minutes.
    pub runners_seen: i64,
    pub runners: i64,
    /// Events on their way.
    pub undelivered: i64,
    pub oldest_undelivered_s: Option<f64>,
    /// Given up in the last day.
    pub given_up: i64,
    /// Deliveries of GitHub's that are not handled.
    pub inbox: i64,
    pub oldest_inbox_s: Option<f64>,
    /// Given up in the last day.
    pub inbox_given_up: i64,
    /// What GitHub is to be told.
    pub untold: i64,
    pub oldest_untold_s: Option<f64>,
    /// Given up in the last day.
    pub untold_given_up: i64,
    /// Uploads in parts that are under way.
    pub uploads: i64,
    pub upload_bytes: i64,
}

pub async fn read(executor: impl Executor<'_>) -> Result<Gauges> {
    let found = sqlx::query_as!(
        Gauges,
        r#"with open as (
               select state, created_at, coalesce(started_at, created_at) as since, lease_expires_at
               from jobs where state in ('queued', 'leased', 'running')
           ), late as (
               select d.id, o.created_at from deliveries d join outbox o on o.id = d.event
               where d.delivered_at is null and d.failed_at is null
           ), inbox as (
               select received_at from github_inbox where handled_at is null and failed_at is null
           ), untold as (
               select created_at from github_writes where done_at is null and failed_at is null)
           select
             (select count(*) from open where state = 'queued') as "queued!",
             (select count(*) from open where state = 'leased') as "leased!",
             (select count(*) from open where state = 'running') as "running!",
             (select extract(epoch from now() - min(created_at))::float8 from open where state = 'queued')
                 as oldest_queued_s,
             (select extract(epoch from now() - min(since))::float8 from open where state = 'leased') as oldest_leased_s,
             (select extract(epoch from now() - min(since))::float8 from open where state = 'running')
                 as oldest_running_s,
             (select count(*) from open where lease_expires_at < now()) as "overdue!",
             (select extract(epoch from now() - min(lease_expires_at))::float8 from open where lease_expires_at < now())
                 as most_overdue_s,
             (select count(*) from runners where last_seen_at > now() - interval '2 minutes') as "runners_seen!",
             (select count(*) from runners) as "runners!",
             (select count(*) from late) as "undelivered!",
             (select extract(epoch from now() - min(created_at))::float8 from late) as oldest_undelivered_s,
             (select count(*) from deliveries where failed_at > now() - interval '1 day') as "given_up!",
             (select count(*) from inbox) as "inbox!",
             (select extract(epoch from now() - min(received_at))::float8 from inbox) as oldest_inbox_s,
             (select count(*) from github_inbox where failed_at > now() - interval '1 day') as "inbox_given_up!",
             (select count(*) from untold) as "untold!",
             (select extract(epoch from now() - min(created_at))::float8 from untold) as oldest_untold_s,
             (select count(*) from github_writes where failed_at > now() - interval '1 day') as "untold_given_up!",
             (select count(*) from uploads where finished_at is null) as "uploads!",
             (select coalesce(sum(received), 0)::int8 from uploads where finished_at is null) as "upload_bytes!""#
    );
    Ok(found.fetch_one(executor).await?)
}

/// The database itself.
#[derive(Debug, Clone, PartialEq)]
pub struct About {
    /// `15.14`
    pub version: String,
    pub now: Timestamp,
    /// Of our database.
    pub bytes: i64,
    /// Connections by anybody, and the most there may be.
    pub connections: i64,
    pub max_connections: i64,
}

pub async fn about(executor: impl Executor<'_>) -> Result<About> {
    let row = sqlx::query!(
        r#"select current_setting('server_version') as "version!", clock_timestamp() as "now!",
             pg_database_size(current_database()) as "bytes!",
             (select count(*) from pg_stat_activity where backend_type = 'client backend') as "connections!",
             current_setting('max_connections')::int8 as "max_connections!""#
    )
    .fetch_one(executor)
    .await?;
    let version = row.version.split_whitespace().next().unwrap_or_default().to_owned();
    let (bytes, connections, max_connections) = (row.bytes, row.connections, row.max_connections);
    Ok(About { version, now: from_db(row.now), bytes, connections, max_connections })
}

//! What happened to a run, numbered without gaps, and the notifications that wake whoever follows it.

use plimsoll_domain::ids::{ProjectSlug, RunId};
use plimsoll_domain::job::{Live, LiveEvent, Progress};
use sqlx::postgres::{PgListener, PgPoolOptions};
use sqlx::types::Json;

use super::time::from_db;
use super::{Executor, Pool, Result, corrupt};

/// Appends to the job's events and wakes who follows them, once the transaction commits. The number is taken under the
/// lock of the job's row, so that a reader who saw one never misses an earlier one.
pub async fn append(executor: impl Executor<'_>, run_id: RunId, events: &[Live]) -> Result<()> {
    let newest = events.iter().rev().find_map(|event| match event {
        Live::Progress(progress) => Some(progress),
        _ => None,
    });
    let events: Vec<_> = events.iter().map(|event| serde_json::to_value(event).unwrap_or_default()).collect();
    sqlx::query!(
        "with job as (
             update jobs set last_seq = last_seq + cardinality($2::jsonb[]), progress = coalesce($3, progress)
             where run_id = $1 returning last_seq - cardinality($2::jsonb[]) as base),
           written as (
             insert into live_events (run_id, seq, event)
             select $1, job.base + e.at, e.event from job, unnest($2::jsonb[]) with ordinality e (event, at))
         select pg_notify('plimsoll_live', $1::text)",
        run_id.0,
        &events,
        newest.map(Json::<&Progress>) as _,
    )
    .execute(executor)
    .await?;
    Ok(())
}

/// The events after `seq`, in order.
pub async fn after(executor: impl Executor<'_>, run_id: RunId, seq: u64, limit: u32) -> Result<Vec<LiveEvent>> {
    let found = sqlx::query!(
        "select seq, at, event from live_events where run_id = $1 and seq > $2 order by seq limit $3",
        run_id.0,
        i64::try_from(seq).unwrap_or(i64::MAX),
        i64::from(limit),
    );
    let found = found.fetch_all(executor).await?;
    found
        .into_iter()
        .map(|row| {
            let what = serde_json::from_value(row.event).map_err(|e| corrupt("live event")(e.to_string()))?;
            Ok(LiveEvent { seq: row.seq.unsigned_abs(), at: from_db(row.at), what })
        })
        .collect()
}

/// Wakes the runners that wait for a job of the project, once the transaction commits.
pub async fn wake_runners(executor: impl Executor<'_>, project: &ProjectSlug) -> Result<()> {
    sqlx::query!("select pg_notify('plimsoll_jobs', $1)", project.as_str()).execute(executor).await?;
    Ok(())
}

/// What a notification says.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Signal {
    /// The run has new events.
    Run(RunId),
    /// The project has a job to take.
    Job(ProjectSlug),
    /// Some may have been missed: look again.
    All,
}

/// Notifications, on a connection of their own.
#[derive(Debug)]
pub struct Listener(PgListener);

impl Listener {
    pub async fn connect(pool: &Pool) -> Result<Self> {
        let one = PgPoolOptions::new().max_connections(1).max_lifetime(None).idle_timeout(None);
        let options = pool.connect_options().as_ref().clone().application_name("plimsoll listener");
        let mut listener = PgListener::connect_with(&one.connect_lazy_with(options)).await?;
        listener.listen_all(["plimsoll_live", "plimsoll_jobs"]).await?;
        Ok(Self(listener))
    }

    /// The next one. After a lost connection it is [`Signal::All`], once there is a new connection.
    pub async fn next(&mut self) -> Result<Signal> {
        let Some(notification) = self.0.try_recv().await? else { return Ok(Signal::All) };
        let signal = match notification.channel() {
            "plimsoll_live" => notification.payload().parse().ok().map(Signal::Run),
            _ => notification.payload().parse().ok().map(Signal::Job),
        };
        // Anybody may notify anything: what cannot be read is no reason to miss something.
        Ok(signal.unwrap_or(Signal::All))
    }
}

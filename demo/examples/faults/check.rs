//! What must hold: read from the database past all networks, from the receiver and from the host.

use std::time::Duration;

use sqlx::Row as _;
use sqlx::postgres::PgRow;
use uuid::Uuid;

use crate::round::within;
use crate::world::World;

/// A run as it ended.
#[derive(Debug, Clone)]
pub(crate) struct Found {
    pub(crate) state: String,
    pub(crate) attempt: i32,
    pub(crate) reason: Option<String>,
    pub(crate) verdict: Option<String>,
}

/// A lease that is over is noticed within this time: every ten seconds, and later after the database was away.
const SWEPT_WITHIN_S: f64 = 60.0;
/// What the servers queued by themselves must end too.
const OTHERS_END_WITHIN: Duration = Duration::from_secs(300);
/// The database is started again after it was killed, and looks through its log first.
const ANSWERS_WITHIN: Duration = Duration::from_secs(60);

pub(crate) async fn is_over(world: &World, run: Uuid) -> bool {
    let sql = "select finished_at is not null from jobs where run_id = $1";
    let over = sqlx::query_scalar::<_, bool>(sql).bind(run).fetch_optional(&world.database).await;
    matches!(over, Ok(Some(true)))
}

/// Whether everything that is to be told of the run has been told.
pub(crate) async fn is_settled(world: &World, run: Uuid) -> bool {
    let sql = "select count(*) from deliveries d join outbox o on o.id = d.event
               where o.run_id = $1 and d.delivered_at is null and d.failed_at is null";
    let waiting = sqlx::query_scalar::<_, i64>(sql).bind(run).fetch_one(&world.database).await;
    matches!(waiting, Ok(0))
}

const RUN: &str = "
    select j.state, j.attempt, j.reason, j.last_seq,
        (select count(*) from snapshots s where s.run_id = j.run_id) as snapshots,
        (select count(*) from reports r where r.run_id = j.run_id) as reports,
        (select count(*) from verdicts v where v.run_id = j.run_id) as verdicts,
        (select min(v.verdict) from verdicts v where v.run_id = j.run_id) as verdict,
        array(select o.seq::bigint from outbox o where o.run_id = j.run_id order by o.seq) as seqs,
        array(select o.event from outbox o where o.run_id = j.run_id order by o.seq) as events,
        array(select l.seq from live_events l where l.run_id = j.run_id order by l.seq) as live,
        (select count(*) from deliveries d join outbox o on o.id = d.event
         where o.run_id = j.run_id and d.delivered_at is null) as undelivered
    from jobs j where j.run_id = $1";

/// How a run ended, and everything about it that must not be.
pub(crate) async fn run(world: &World, run: Uuid) -> Result<(Found, Vec<String>), String> {
    let row = std::cell::RefCell::new(None);
    let answered = within(ANSWERS_WITHIN, async || {
        let found = sqlx::query(RUN).bind(run).fetch_optional(&world.database).await;
        let is = found.is_ok();
        *row.borrow_mut() = Some(found);
        is
    });
    answered.await;
    let Some(row) = row.into_inner().ok_or("the database was not asked")?.map_err(|error| error.to_string())? else {
        let none = Found { state: "gone".to_owned(), attempt: 0, reason: None, verdict: None };
        return Ok((none, vec!["it was accepted, and the database does not know it".to_owned()]));
    };
    let read = found(&row).and_then(|found| Ok((wrong(world, run, &found, &row)?, found)));
    let (mut losses, found) = read.map_err(|error| error.to_string())?;
    losses.extend(world.receiver.take_wrong());
    losses.extend(stuck(world).await?);
    Ok((found, losses))
}

/// All runs once more, and those that the servers queued by themselves.
pub(crate) async fn all(world: &World) -> Result<Vec<String>, String> {
    let open = "select count(*) from jobs where finished_at is null";
    let none_open = within(OTHERS_END_WITHIN, async || {
        matches!(sqlx::query_scalar::<_, i64>(open).fetch_one(&world.database).await, Ok(0))
    });
    let mut losses = Vec::new();
    if !none_open.await {
        losses.push(format!("jobs were open {} s after the last round", OTHERS_END_WITHIN.as_secs()));
    }
    let runs: Vec<Uuid> = sqlx::query_scalar("select run_id from jobs order by created_at")
        .fetch_all(&world.database)
        .await
        .map_err(|error| error.to_string())?;
    for id in runs {
        within(Duration::from_secs(60), async || is_settled(world, id).await).await;
        let (_, wrong) = run(world, id).await?;
        losses.extend(wrong.into_iter().map(|why| format!("run {id}, at the end: {why}")));
        losses.extend(crate::host::of_run(id).into_iter().map(|orphan| format!("run {id}: an orphan: {orphan}")));
    }
    Ok(losses)
}

fn found(row: &PgRow) -> sqlx::Result<Found> {
    Ok(Found {
        state: row.try_get("state")?,
        attempt: row.try_get("attempt")?,
        reason: row.try_get("reason")?,
        verdict: row.try_get("verdict")?,
    })
}

fn wrong(world: &World, run: Uuid, found: &Found, row: &PgRow) -> sqlx::Result<Vec<String>> {
    let mut losses = Vec::new();
    let mut must = |holds: bool, why: String| {
        if !holds {
            losses.push(why);
        }
    };
    let [snapshots, reports, verdicts, undelivered]: [i64; 4] =
        [row.try_get("snapshots")?, row.try_get("reports")?, row.try_get("verdicts")?, row.try_get("undelivered")?];
    let (seqs, events): (Vec<i64>, Vec<String>) = (row.try_get("seqs")?, row.try_get("events")?);
    let (live, last): (Vec<i64>, i64) = (row.try_get("live")?, row.try_get("last_seq")?);
    let reason = found.reason.as_deref().unwrap_or("no reason");
    // A run that was given up is over without a snapshot, and says so.
    let expected = i64::from(found.state != "expired");
    must(matches!(found.state.as_str(), "done" | "expired"), format!("it ended as {}: {reason}", found.state));
    must(snapshots == expected, format!("{snapshots} snapshots of a run that is {}", found.state));
    must(reports == snapshots, format!("{reports} reports for {snapshots} snapshots"));
    must(verdicts == snapshots, format!("{verdicts} verdicts for {snapshots} snapshots"));
    must(is_sequence(&seqs), format!("the outbox's numbers have gaps: {seqs:?}"));
    must(is_sequence(&live) && live.len() as i64 == last, format!("the live events have gaps: {live:?}, last {last}"));
    let finished = events.iter().filter(|event| *event == "run.finished").count();
    must(finished == 1, format!("run.finished was told {finished} times: {events:?}"));
    must(undelivered == 0, format!("{undelivered} events were not delivered"));
    let told = seqs.into_iter().zip(events).collect::<Vec<_>>();
    let came = world.receiver.events(run);
    must(came == told, format!("the webhook got {came:?} of {told:?}"));
    Ok(losses)
}

fn is_sequence(seqs: &[i64]) -> bool {
    !seqs.is_empty() && seqs.iter().zip(1..).all(|(is, should)| *is == should)
}

async fn stuck(world: &World) -> Result<Vec<String>, String> {
    let sql = "select run_id from jobs where state in ('leased', 'running')
               and lease_expires_at < now() - make_interval(secs => $1)";
    let runs = sqlx::query_scalar::<_, Uuid>(sql).bind(SWEPT_WITHIN_S).fetch_all(&world.database).await;
    let runs = runs.map_err(|error| error.to_string())?;
    Ok(runs.into_iter().map(|run| format!("run {run} is stuck past its lease")).collect())
}

//! What only the pages ask for.

use plimsoll_domain::comparison::MetricComparison;
use plimsoll_domain::ids::{ProjectSlug, RunId};
use plimsoll_domain::job::LiveEvent;
use sqlx::types::Json;

use super::time::from_db;
use super::{Executor, Result, corrupt};

/// A project's latest figures on the testbed and plan measured last, the oldest first.
#[derive(Debug, Clone, PartialEq)]
pub struct Course {
    pub project: ProjectSlug,
    pub p99_ms: Vec<Option<f64>>,
    pub capacity_tps: Vec<Option<f64>>,
}

/// Points of a course.
const MAX_POINTS: i64 = 20;

/// What lists and charts show of the comparison that judged a snapshot.
#[derive(Debug, Clone, PartialEq)]
pub struct Judged {
    /// The newest run of the baseline.
    pub baseline: Option<RunId>,
    pub gated: Vec<MetricComparison>,
}

/// How these snapshots were judged, in no order.
pub async fn judged(executor: impl Executor<'_>, run_ids: &[RunId]) -> Result<Vec<(RunId, Judged)>> {
    let run_ids: Vec<_> = run_ids.iter().map(|run| run.0).collect();
    let found = sqlx::query!(
        r#"select run_id, baseline_run_ids[1] as baseline, gated as "gated!: Json<Vec<MetricComparison>>"
           from verdicts where run_id = any($1)"#,
        &run_ids,
    )
    .fetch_all(executor)
    .await?;
    let judged = |baseline: Option<_>, gated: Json<_>| Judged { baseline: baseline.map(RunId), gated: gated.0 };
    Ok(found.into_iter().map(|row| (RunId(row.run_id), judged(row.baseline, row.gated))).collect())
}

/// The course of every project, valid snapshots only.
pub async fn courses(executor: impl Executor<'_>) -> Result<Vec<Course>> {
    let found = sqlx::query!(
        r#"select n.project as "project!", c.p99_ms, c.capacity_tps
           from projects p
           cross join lateral
               (select project, testbed, plan_digest from snapshots where project = p.slug
                order by started_at desc, run_id desc limit 1) n
           cross join lateral
               (select s.p99_ms, s.capacity_tps, s.started_at from snapshots s
                where s.project = n.project and s.plan_digest = n.plan_digest and s.testbed = n.testbed and s.valid
                order by s.started_at desc limit $1) c
           order by n.project, c.started_at"#,
        MAX_POINTS,
    )
    .fetch_all(executor)
    .await?;
    let mut courses: Vec<Course> = Vec::new();
    for row in found {
        let project: ProjectSlug = row.project.parse().map_err(|e| corrupt("project")(format!("{e}")))?;
        if courses.last().is_none_or(|course| course.project != project) {
            courses.push(Course { project, p99_ms: Vec::new(), capacity_tps: Vec::new() });
        }
        if let Some(course) = courses.last_mut() {
            course.p99_ms.push(row.p99_ms);
            course.capacity_tps.push(row.capacity_tps);
        }
    }
    Ok(courses)
}

/// Jobs of a project that are not over.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct UnderWay {
    pub project: ProjectSlug,
    pub waiting: u64,
    /// With a runner.
    pub running: u64,
}

/// Of every project that has any.
pub async fn under_way(executor: impl Executor<'_>) -> Result<Vec<UnderWay>> {
    let found = sqlx::query!(
        r#"select project, count(*) filter (where state = 'queued') as "waiting!",
               count(*) filter (where state <> 'queued') as "running!"
           from jobs where state in ('queued', 'leased', 'running') group by project order by project"#,
    );
    let found = found.fetch_all(executor).await?;
    let under_way = found.into_iter().map(|row| {
        let project = row.project.parse().map_err(|e| corrupt("project")(format!("{e}")))?;
        Ok(UnderWay { project, waiting: row.waiting.unsigned_abs(), running: row.running.unsigned_abs() })
    });
    under_way.collect()
}

/// About so many reports of progress make a course.
const MAX_PROGRESS: u64 = 600;
/// More than this happens to no run.
const MAX_EVENTS: i64 = 5_000;

/// What happened to a run whose newest event is `last_seq`, in order: everything, but of its progress only as much as a
/// chart shows, and the newest.
pub async fn events(executor: impl Executor<'_>, run_id: RunId, last_seq: u64) -> Result<Vec<LiveEvent>> {
    let number = |n: u64| i64::try_from(n).unwrap_or(i64::MAX);
    let found = sqlx::query!(
        "select seq, at, event from live_events
         where run_id = $1 and (event ->> 'type' <> 'progress' or seq % $2 = 0 or seq >= $3)
         order by seq limit $4",
        run_id.0,
        number(last_seq.div_ceil(MAX_PROGRESS).max(1)),
        number(last_seq),
        MAX_EVENTS,
    );
    let found = found.fetch_all(executor).await?;
    let events = found.into_iter().map(|row| {
        let what = serde_json::from_value(row.event).map_err(|e| corrupt("live event")(e.to_string()))?;
        Ok(LiveEvent { seq: row.seq.unsigned_abs(), at: from_db(row.at), what })
    });
    events.collect()
}

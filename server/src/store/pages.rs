//! What only the pages ask for.

use plimsoll_domain::comparison::Comparison;
use plimsoll_domain::ids::{ProjectSlug, RunId};
use sqlx::types::Json;

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

/// The comparisons by which these snapshots were judged, in no order.
pub async fn judged(executor: impl Executor<'_>, run_ids: &[RunId]) -> Result<Vec<(RunId, Comparison)>> {
    let run_ids: Vec<_> = run_ids.iter().map(|run| run.0).collect();
    let found = sqlx::query!(
        r#"select run_id, comparison as "comparison: Json<Comparison>" from verdicts where run_id = any($1)"#,
        &run_ids,
    )
    .fetch_all(executor)
    .await?;
    Ok(found.into_iter().map(|row| (RunId(row.run_id), row.comparison.0)).collect())
}

/// The course of every project, valid snapshots only.
pub async fn courses(executor: impl Executor<'_>) -> Result<Vec<Course>> {
    let found = sqlx::query!(
        r#"select n.project as "project!", c.p99_ms, c.capacity_tps
           from (select distinct on (project) project, testbed, plan_digest from snapshots
                 order by project, started_at desc, run_id desc) n
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

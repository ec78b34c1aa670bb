//! Snapshots: one immutable row per run.

pub(super) mod row;

use jiff::Timestamp;
use plimsoll_domain::baseline::Measured;
use plimsoll_domain::comparison::{Comparison, Verdict};
use plimsoll_domain::figures::Figures;
use plimsoll_domain::ids::{CommitSha, Digest, ProjectSlug, RunId};
use plimsoll_domain::policy::Policy;
use plimsoll_domain::report::{Report, Status};
use plimsoll_domain::revision::Revision;
use plimsoll_domain::verdict::Run;
use serde::Serialize;
use sqlx::types::Json;
use sqlx::types::chrono::{DateTime, Utc};
use uuid::Uuid;

use super::projects::Visibility;
use super::reports::Packed;
use super::time::{from_db, to_db};
use super::{Executor, Pool, Result, corrupt};

pub(super) use row::rows;

/// What lists and charts show of a snapshot. Latencies are ms; `None` was not measured.
#[derive(Debug, Clone, PartialEq, Serialize, utoipa::ToSchema)]
pub struct SnapshotRow {
    pub run_id: RunId,
    pub project: ProjectSlug,
    /// Without ancestors.
    pub revision: Revision,
    /// What people call the revision.
    pub label: String,
    pub testbed: TestbedRef,
    pub plan_digest: Digest,
    #[schema(value_type = String, format = DateTime)]
    pub started_at: Timestamp,
    #[schema(value_type = String, format = DateTime)]
    pub finished_at: Timestamp,
    #[schema(value_type = String, format = DateTime)]
    pub received_at: Timestamp,
    pub status: Status,
    pub valid: bool,
    pub accepted: bool,
    /// Whether its verdict may decide a check.
    pub gates: bool,
    pub verdict: Verdict,
    /// The verdict in one sentence.
    pub sentence: String,
    pub stability_workers: Option<u32>,
    pub tps: Option<f64>,
    pub p50_ms: Option<f64>,
    pub p99_ms: Option<f64>,
    pub p99_interval_ms: Option<[f64; 2]>,
    /// A fraction.
    pub error_rate: Option<f64>,
    pub capacity_tps: Option<f64>,
    /// The knee.
    pub knee_workers: Option<u32>,
    /// The step at which the capacity was reached.
    pub capacity_at_workers: Option<u32>,
}

#[derive(Debug, Clone, PartialEq, Eq, Hash, Serialize, utoipa::ToSchema)]
pub struct TestbedRef {
    pub fingerprint: Digest,
    pub label: String,
}

/// Which part of a project's history.
#[derive(Debug, Clone, Default)]
pub struct Filter<'a> {
    /// A fingerprint or a label.
    pub testbed: Option<&'a str>,
    pub plan: Option<&'a Digest>,
    /// Only what is older than this snapshot.
    pub before: Option<RunId>,
    pub limit: u32,
}

/// Snapshots that draw one line in a chart: the same testbed and plan.
#[derive(Debug, Clone, PartialEq, Serialize, utoipa::ToSchema)]
pub struct Series {
    pub testbed: TestbedRef,
    pub plan_digest: Digest,
    pub snapshots: i64,
    #[schema(value_type = String, format = DateTime)]
    pub latest: Timestamp,
}

/// The load at which a project's stability phase runs.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, utoipa::ToSchema)]
pub struct PinnedLoad {
    pub workers: u32,
    /// The step that showed the capacity.
    pub capacity_workers: Option<u32>,
    /// The snapshot that set it.
    pub run_id: RunId,
}

/// Earlier runs that the baseline rule looks at, the newest.
const MAX_COMPARABLE: i64 = 1_000;

/// Whether a valid run with this verdict counts as accepted.
pub fn is_acceptable(verdict: Verdict) -> bool {
    matches!(verdict, Verdict::Pass | Verdict::NoBaseline)
}

/// A run that is stored as a whole.
#[derive(Debug)]
pub struct New<'a> {
    pub report: &'a Report,
    pub packed: &'a Packed,
    pub figures: &'a Figures,
    /// For comparisons.
    pub prepared: &'a Run,
    pub comparison: &'a Comparison,
    /// Of the project, if that is new.
    pub visibility: Visibility,
    /// Whether the verdict may decide a check. One that may not is accepted by nobody, and no baseline.
    pub gates: bool,
    /// As the audit log names them.
    pub brought_by: Option<&'a str>,
}

/// Stores a run with its report and verdict, and the project with the default policy and the testbed where they are new;
/// false, and nothing but these two, when the run is stored already. One statement: the way to the database and back
/// costs more than most of them.
pub async fn insert(executor: impl Executor<'_>, new: &New<'_>) -> Result<bool> {
    let New { report, packed, figures, prepared, comparison, visibility, gates, brought_by } = *new;
    let verdict = comparison.verdict;
    let baseline: Vec<_> = comparison.baseline.iter().flat_map(|side| &side.run_ids).map(|run| run.0).collect();
    let valid = report.is_valid();
    let accepted = valid && gates && is_acceptable(verdict);
    // Nobody asks a stored run for more than its parent, and the report has them all.
    let revision = &Revision {
        ancestors: report.revision.ancestors.first().cloned().into_iter().collect(),
        ..report.revision.clone()
    };
    let testbed = report.testbed.fingerprint();
    let soak = figures.stability.as_ref().map(|stability| &stability.step);
    let interval = soak.and_then(|step| step.p99_interval_ms);
    let workers = |workers: u32| i32::try_from(workers).unwrap_or(i32::MAX);
    let stored = sqlx::query_scalar!(
        r#"with project as (
             insert into projects (slug, policy, visibility) values ($2, $28, $29) on conflict (slug) do nothing),
           testbed as (
             insert into testbeds (fingerprint, label, facts) values ($3, $30, $31)
             on conflict (fingerprint) do nothing),
           snapshot as (
             insert into snapshots (run_id, project, testbed, plan_digest, revision, label, commit_sha, tag, branch,
               pull_request, started_at, finished_at, status, valid, accepted, figures, stability_workers, tps, p50_ms,
               p99_ms, p99_low_ms, p99_high_ms, error_rate, capacity_tps, knee_workers, capacity_at_workers, prepared,
               gates, brought_by)
             values ($1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11, $12, $13, $14, $15, $16, $17, $18, $19, $20, $21,
               $22, $23, $24, $25, $26, $27, $38, $39)
             on conflict (run_id) do nothing returning run_id),
           report as (
             insert into reports (run_id, sha256, bytes, body) select run_id, $32, $33, $34 from snapshot),
           verdict as (
             insert into verdicts (run_id, verdict, baseline_run_ids, comparison)
             select run_id, $35, $36, $37 from snapshot)
           select exists (select from snapshot) as "stored!""#,
        report.run_id.0,
        report.project.as_str(),
        testbed.as_str(),
        report.plan_digest.as_str(),
        Json(revision) as _,
        revision.label(),
        revision.commit.as_ref().map(|sha| sha.as_str()),
        revision.tag.as_deref(),
        revision.branch.as_deref(),
        revision.pull_request.and_then(|number| i64::try_from(number).ok()),
        to_db(report.started_at),
        to_db(report.finished_at),
        row::status_name(report.status),
        valid,
        accepted,
        Json(figures) as _,
        soak.map(|step| workers(step.workers)),
        soak.and_then(|step| step.tps),
        soak.and_then(|step| step.p50_ms),
        soak.and_then(|step| step.p99_ms),
        interval.map(|[low, _]| low),
        interval.map(|[_, high]| high),
        soak.and_then(|step| step.error_rate),
        figures.capacity.map(|capacity| capacity.tps),
        figures.capacity.map(|capacity| workers(capacity.workers)),
        figures.capacity.map(|capacity| workers(capacity.at_workers)),
        Json(prepared) as _,
        Json(Policy::default()) as _,
        visibility.name(),
        report.testbed.label(),
        Json(&report.testbed) as _,
        &packed.sha256[..],
        i64::try_from(packed.bytes).unwrap_or(i64::MAX),
        &packed.body[..],
        verdict.name(),
        &baseline,
        Json(comparison) as _,
        gates,
        brought_by,
    );
    Ok(stored.fetch_one(executor).await?)
}

pub async fn get(executor: impl Executor<'_>, run_id: RunId) -> Result<Option<SnapshotRow>> {
    rows!("where s.run_id = $1", run_id.0).fetch_optional(executor).await?.map(TryInto::try_into).transpose()
}

/// Whether a run's verdict may decide a check; `None` where there is no such run.
pub async fn gates(executor: impl Executor<'_>, run_id: RunId) -> Result<Option<bool>> {
    let found = sqlx::query_scalar!("select gates from snapshots where run_id = $1", run_id.0);
    Ok(found.fetch_optional(executor).await?)
}

/// The figures computed when the snapshot arrived.
pub async fn figures(executor: impl Executor<'_>, run_id: RunId) -> Result<Option<Figures>> {
    let found =
        sqlx::query_scalar!(r#"select figures as "figures: Json<Figures>" from snapshots where run_id = $1"#, run_id.0)
            .fetch_optional(executor)
            .await?;
    Ok(found.map(|figures| figures.0))
}

/// The run as it was prepared for comparisons when it arrived; `None` where this code would prepare it otherwise.
pub async fn prepared(executor: impl Executor<'_>, run_id: RunId) -> Result<Option<Run>> {
    let found = sqlx::query_scalar!(
        r#"select prepared::text as "prepared!" from snapshots where run_id = $1 and prepared is not null"#,
        run_id.0
    );
    let found = found.fetch_optional(executor).await?;
    Ok(found.and_then(|json| serde_json::from_str(&json).ok()).filter(Run::is_current))
}

/// A project's history, the newest first. Each part of it is read off one index, however long the history is.
pub async fn history(pool: &Pool, project: &ProjectSlug, part: Filter<'_>) -> Result<Vec<SnapshotRow>> {
    let before = match part.before {
        None => (DateTime::<Utc>::MAX_UTC, Uuid::max()),
        Some(run) => {
            let found = sqlx::query_scalar!(
                "select started_at from snapshots where run_id = $1 and project = $2",
                run.0,
                project.as_str()
            );
            // After a run that is not there nothing comes, nor after one of another project.
            let Some(at) = found.fetch_optional(pool).await? else { return Ok(Vec::new()) };
            (at, run.0)
        }
    };
    let (at, run) = before;
    let (plan, limit) = (part.plan.map(Digest::as_str), i64::from(part.limit));
    let found = match part.testbed {
        None => {
            rows!(
                "where s.project = $1 and (s.started_at, s.run_id) < ($2, $3)
                   and ($4::text is null or s.plan_digest = $4)
                 order by s.started_at desc, s.run_id desc limit $5",
                project.as_str(),
                at,
                run,
                plan,
                limit,
            )
            .fetch_all(pool)
            .await?
        }
        Some(testbed) => {
            let named =
                sqlx::query_scalar!("select fingerprint from testbeds where fingerprint = $1 or label = $1", testbed);
            let testbeds = named.fetch_all(pool).await?;
            rows!(
                "where s.project = $1 and s.testbed = any($6) and (s.started_at, s.run_id) < ($2, $3)
                   and ($4::text is null or s.plan_digest = $4)
                 order by s.started_at desc, s.run_id desc limit $5",
                project.as_str(),
                at,
                run,
                plan,
                limit,
                &testbeds,
            )
            .fetch_all(pool)
            .await?
        }
    };
    found.into_iter().map(TryInto::try_into).collect()
}

/// The newest snapshot of each of these projects.
pub async fn newest_of(executor: impl Executor<'_>, projects: &[&str]) -> Result<Vec<SnapshotRow>> {
    let found = rows!(
        "where s.run_id in (select n.run_id from unnest($1::text[]) p(slug) cross join lateral
             (select run_id from snapshots where project = p.slug order by started_at desc, run_id desc limit 1) n)",
        projects as _,
    );
    found.fetch_all(executor).await?.into_iter().map(TryInto::try_into).collect()
}

/// On what testbeds a project was measured, the one measured last first.
pub async fn testbeds(executor: impl Executor<'_>, project: &ProjectSlug) -> Result<Vec<TestbedRef>> {
    let found = sqlx::query!(
        r#"select t.fingerprint, t.label from testbeds t cross join lateral
               (select started_at from snapshots where project = $1 and testbed = t.fingerprint
                order by started_at desc, run_id desc limit 1) n
           order by n.started_at desc"#,
        project.as_str(),
    );
    let fingerprint = |text: String| text.parse().map_err(|e| corrupt("digest")(format!("{e}")));
    let found = found.fetch_all(executor).await?.into_iter();
    found.map(|row| Ok(TestbedRef { fingerprint: fingerprint(row.fingerprint)?, label: row.label })).collect()
}

/// What lines a project's history has, the one measured last first.
pub async fn series(executor: impl Executor<'_>, project: &ProjectSlug) -> Result<Vec<Series>> {
    let found = sqlx::query!(
        r#"select s.testbed, t.label, s.plan_digest, count(*) as "snapshots!", max(s.started_at) as "latest!"
           from snapshots s join testbeds t on t.fingerprint = s.testbed
           where s.project = $1 group by s.testbed, t.label, s.plan_digest order by max(s.started_at) desc"#,
        project.as_str(),
    )
    .fetch_all(executor)
    .await?;
    let line = |row: &str| row.parse::<Digest>().map_err(|e| corrupt("digest")(format!("{e}")));
    found
        .into_iter()
        .map(|row| {
            Ok(Series {
                testbed: TestbedRef { fingerprint: line(&row.testbed)?, label: row.label },
                plan_digest: line(&row.plan_digest)?,
                snapshots: row.snapshots,
                latest: from_db(row.latest),
            })
        })
        .collect()
}

/// The valid runs that gate and compare with `candidate`: same project, plan, testbed and pinned load; the newest first, with what
/// the baseline rule asks of their revisions: commit, tag, pull request, and whether the checkout was dirty. A run whose service died before the soak has no load, and compares at any.
pub async fn comparable(executor: impl Executor<'_>, candidate: &Report) -> Result<Vec<Measured>> {
    let testbed = candidate.testbed.fingerprint();
    let workers = candidate.stability().and_then(|step| i32::try_from(step.workers).ok());
    // Up to a thousand rows for each upload: the columns that the rule looks at, rather than the whole revision.
    let found = sqlx::query!(
        r#"select run_id, commit_sha, tag, pull_request, revision -> 'dirty' is not null as "dirty!", started_at, accepted
           from snapshots
           where project = $1 and plan_digest = $2 and testbed = $3
             and ($4::int4 is null or stability_workers = $4) and valid and gates and run_id <> $5
           order by started_at desc limit $6"#,
        candidate.project.as_str(),
        candidate.plan_digest.as_str(),
        testbed.as_str(),
        workers,
        candidate.run_id.0,
        MAX_COMPARABLE,
    )
    .fetch_all(executor)
    .await?;
    found
        .into_iter()
        .map(|row| {
            let commit = row.commit_sha.map(CommitSha::try_from).transpose();
            let revision = Revision {
                commit: commit.map_err(|e| corrupt("commit")(e.to_string()))?,
                tag: row.tag,
                pull_request: row.pull_request.map(i64::unsigned_abs),
                dirty: row.dirty,
                ..Revision::default()
            };
            let (run_id, started_at) = (RunId(row.run_id), from_db(row.started_at));
            Ok(Measured { run_id, revision, started_at, accepted: row.accepted })
        })
        .collect()
}

/// Whether [`comparable`] would find `earlier` for `candidate`.
pub fn compares(candidate: &Report, earlier: &Report) -> bool {
    let workers = |report: &Report| report.stability().map(|step| step.workers);
    earlier.is_valid()
        && earlier.run_id != candidate.run_id
        && earlier.project == candidate.project
        && earlier.plan_digest == candidate.plan_digest
        && earlier.testbed.fingerprint() == candidate.testbed.fingerprint()
        && (workers(candidate).is_none() || workers(candidate) == workers(earlier))
}

/// The pinned load: that of the first accepted snapshot, one outside pull requests if there is any.
pub async fn pinned_load(
    executor: impl Executor<'_>,
    project: &ProjectSlug,
    plan: &Digest,
    testbed: &Digest,
) -> Result<Option<PinnedLoad>> {
    let found = sqlx::query!(
        r#"select run_id, stability_workers as "workers!", capacity_at_workers
           from snapshots
           where project = $1 and plan_digest = $2 and testbed = $3 and valid and accepted
             and stability_workers is not null
           order by pull_request is not null, started_at, run_id limit 1"#,
        project.as_str(),
        plan.as_str(),
        testbed.as_str(),
    )
    .fetch_optional(executor)
    .await?;
    Ok(found.map(|row| PinnedLoad {
        workers: row.workers.unsigned_abs(),
        capacity_workers: row.capacity_at_workers.map(i32::unsigned_abs),
        run_id: RunId(row.run_id),
    }))
}

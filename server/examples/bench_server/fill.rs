//! A server that has been in use for two years: its snapshots by COPY.

use std::collections::HashMap;
use std::ops::Range;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use jiff::Timestamp;
use plimsoll_domain::comparison::{Side, Verdict};
use plimsoll_domain::ids::RunId;
use plimsoll_server::store::{Pool, projects, testbeds};
use sha2::{Digest as _, Sha256};

use crate::Fallible;
use crate::binary::{Field, Rows};
use crate::copy;
use crate::corpus::{self, Named, Series, Template};

/// What is stored, the oldest first.
#[derive(Debug, Default)]
pub(crate) struct History {
    pub(crate) runs: Vec<Run>,
}

#[derive(Debug, Clone)]
pub(crate) struct Run {
    pub(crate) run_id: RunId,
    pub(crate) project: String,
    /// The fingerprint.
    pub(crate) testbed: String,
    /// Its number in its series.
    pub(crate) n: usize,
    /// The run before it in its series.
    pub(crate) before: Option<usize>,
}

/// Retention leaves this many whole.
const WHOLE: usize = 1_000;
const BATCH: usize = 250;
const WRITERS: usize = 2;
const SNAPSHOTS: &str = "snapshots (run_id, project, testbed, plan_digest, revision, label, commit_sha, tag, branch, \
    pull_request, started_at, finished_at, status, valid, accepted, figures, stability_workers, tps, p50_ms, p99_ms, \
    p99_low_ms, p99_high_ms, error_rate, capacity_tps, knee_workers, capacity_at_workers, prepared)";
const REPORTS: &str = "reports (run_id, sha256, bytes, body, thinned_at)";
const VERDICTS: &str = "verdicts (run_id, verdict, baseline_run_ids, comparison)";

impl History {
    /// The first `total` runs of all.
    fn planned(total: usize) -> Self {
        let mut runs: Vec<Run> = Vec::new();
        let mut last: HashMap<(String, String), usize> = HashMap::new();
        for i in 0..total {
            let series = corpus::series(i);
            let testbed = series.testbed.fingerprint().to_string();
            let before = last.insert((series.project.clone(), testbed.clone()), i);
            let n = before.map_or(0, |before| runs[before].n + 1);
            let run_id = corpus::run_id(i, n, &series);
            runs.push(Run { run_id, project: series.project, testbed, n, before });
        }
        Self { runs }
    }

    pub(crate) fn len(&self) -> usize {
        self.runs.len()
    }

    pub(crate) fn newest(&self, n: usize) -> Range<usize> {
        self.len().saturating_sub(n)..self.len()
    }

    /// Runs that come after those stored.
    pub(crate) fn following(&self, count: usize) -> Vec<(Series, Named)> {
        let all = Self::planned(self.len() + count);
        let following = self.len()..all.len();
        following
            .map(|i| {
                let series = corpus::series(i);
                let named = corpus::named(i, all.runs[i].n, &series);
                (series, named)
            })
            .collect()
    }
}

/// Stores `total` snapshots as uploads and retention would have left them.
pub(crate) async fn fill(pool: &Pool, templates: &Arc<Vec<Template>>, total: usize) -> Fallible<Arc<History>> {
    let history = Arc::new(History::planned(total));
    for i in 0..total.min(corpus::SERIES) {
        let series = corpus::series(i);
        projects::ensure(pool, &series.project.parse()?, projects::Visibility::Public).await?;
        testbeds::ensure(pool, &series.testbed).await?;
    }
    let next = Arc::new(AtomicUsize::new(0));
    let writers: Vec<_> = (0..WRITERS)
        .map(|_| tokio::spawn(write(pool.clone(), Arc::clone(templates), Arc::clone(&history), Arc::clone(&next))))
        .collect();
    for writer in writers {
        writer.await??;
    }
    let mut connection = pool.acquire().await?;
    for sql in ["set statement_timeout = 0", "vacuum analyze", "reset statement_timeout"] {
        sqlx::raw_sql(sql).execute(&mut *connection).await?;
    }
    drop(connection);
    copy::checkpoint(pool).await?;
    Ok(history)
}

async fn write(pool: Pool, templates: Arc<Vec<Template>>, history: Arc<History>, next: Arc<AtomicUsize>) -> Fallible {
    loop {
        let from = next.fetch_add(BATCH, Ordering::Relaxed);
        let range = from..(from + BATCH).min(history.len());
        if range.is_empty() {
            return Ok(());
        }
        let (templates, history) = (Arc::clone(&templates), Arc::clone(&history));
        let tables = tokio::task::spawn_blocking(move || rows(&templates, &history, range)).await??;
        let mut transaction = pool.begin().await?;
        sqlx::raw_sql("set local synchronous_commit = off").execute(&mut *transaction).await?;
        for (table, rows) in tables {
            copy::into(&mut transaction, table, &rows).await?;
        }
        transaction.commit().await?;
    }
}

/// The rows of these runs, table by table.
fn rows(templates: &[Template], history: &History, range: Range<usize>) -> Fallible<[(&'static str, Vec<u8>); 3]> {
    let (mut snapshots, mut reports, mut verdicts) = (Rows::new(), Rows::new(), Rows::new());
    for i in range {
        let (run, series, template) = (&history.runs[i], corpus::series(i), &templates[i % templates.len()]);
        let named = corpus::named(i, run.n, &series);
        let thinned = i + WHOLE < history.len();
        let before = run.before.map(|before| &history.runs[before]);
        let verdict = if before.is_some() { template.comparison.verdict } else { Verdict::NoBaseline };
        snapshot(&mut snapshots, &series, &named, template, verdict)?;
        let json = template.json(&series, &named, thinned)?;
        let thinned_at: Option<Timestamp> = thinned.then_some(named.started_at);
        reports.row(&[
            Field::Uuid(named.run_id.0),
            Field::Bytes(&Sha256::digest(json.as_bytes())),
            Field::Long(Some(json.len() as i64)),
            Field::Bytes(&zstd::bulk::compress(json.as_bytes(), zstd::DEFAULT_COMPRESSION_LEVEL)?),
            Field::Time(thinned_at),
        ]);
        let baseline: Vec<_> = before.iter().map(|run| run.run_id.0).collect();
        verdicts.row(&[
            Field::Uuid(named.run_id.0),
            Field::Text(Some(verdict.name())),
            Field::Uuids(&baseline),
            Field::Json(&comparison(template, &series, &named, before, verdict)?),
        ]);
    }
    Ok([(SNAPSHOTS, snapshots.finish()), (REPORTS, reports.finish()), (VERDICTS, verdicts.finish())])
}

fn snapshot(rows: &mut Rows, series: &Series, named: &Named, template: &Template, verdict: Verdict) -> Fallible {
    let (head, figures, revision) = (&template.head, &template.figures, &named.revision);
    let valid = head.is_valid();
    let soak = figures.stability.as_ref().map(|stability| &stability.step);
    let interval = soak.and_then(|step| step.p99_interval_ms);
    let mut stored = revision.clone();
    stored.ancestors.truncate(1);
    rows.row(&[
        Field::Uuid(named.run_id.0),
        Field::Text(Some(&series.project)),
        Field::Text(Some(series.testbed.fingerprint().as_str())),
        Field::Text(Some(head.plan_digest.as_str())),
        Field::Json(&serde_json::to_string(&stored)?),
        Field::Text(revision.label().as_deref()),
        Field::Text(revision.commit.as_ref().map(|commit| commit.as_str())),
        Field::Text(revision.tag.as_deref()),
        Field::Text(revision.branch.as_deref()),
        Field::Long(revision.pull_request.and_then(|number| i64::try_from(number).ok())),
        Field::Time(Some(named.started_at)),
        Field::Time(Some(named.started_at + jiff::SignedDuration::from_secs(900))),
        Field::Text(Some("complete")),
        Field::Bool(valid),
        Field::Bool(valid && matches!(verdict, Verdict::Pass | Verdict::NoBaseline)),
        Field::Json(&serde_json::to_string(figures)?),
        Field::Int(soak.map(|step| step.workers)),
        Field::Float(soak.and_then(|step| step.tps)),
        Field::Float(soak.and_then(|step| step.p50_ms)),
        Field::Float(soak.and_then(|step| step.p99_ms)),
        Field::Float(interval.map(|[low, _]| low)),
        Field::Float(interval.map(|[_, high]| high)),
        Field::Float(soak.and_then(|step| step.error_rate)),
        Field::Float(figures.capacity.map(|capacity| capacity.tps)),
        Field::Int(figures.capacity.map(|capacity| capacity.workers)),
        Field::Int(figures.capacity.map(|capacity| capacity.at_workers)),
        Field::Json(&template.prepared(series, named)?),
    ]);
    Ok(())
}

/// The template's comparison, between these two runs.
fn comparison(
    template: &Template,
    series: &Series,
    named: &Named,
    before: Option<&Run>,
    verdict: Verdict,
) -> Fallible<String> {
    let mut comparison = template.comparison.clone();
    comparison.verdict = verdict;
    comparison.project = series.project.parse()?;
    let rename = |side: &mut Side, run_id: RunId| {
        side.run_ids = vec![run_id];
        side.testbed = series.testbed.label();
        side.testbed_fingerprint = series.testbed.fingerprint();
    };
    rename(&mut comparison.candidate, named.run_id);
    comparison.candidate.revision = named.revision.label_or_unnamed();
    comparison.candidate.commit = named.revision.commit.as_ref().map(ToString::to_string);
    comparison.baseline = comparison.baseline.take().zip(before).map(|(mut side, before)| {
        rename(&mut side, before.run_id);
        side
    });
    Ok(serde_json::to_string(&comparison)?)
}

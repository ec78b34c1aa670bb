//! Reports as a runner sends them: seven steps and a soak of a quarter of an hour. A few are made up and judged by the
//! server; all others are these under other names.

use jiff::{SignedDuration, Timestamp};
use plimsoll_domain::comparison::Comparison;
use plimsoll_domain::figures::Figures;
use plimsoll_domain::histogram::Histogram;
use plimsoll_domain::ids::{Digest, RunId};
use plimsoll_domain::report::Report;
use plimsoll_domain::revision::Revision;
use plimsoll_domain::synthetic::Synthetic;
use plimsoll_domain::testbed::Testbed;
use plimsoll_domain::verdict::Run;

use crate::Fallible;
use crate::service::Service;

/// A report without its names.
#[derive(Debug)]
pub(crate) struct Template {
    /// Everything but the phases.
    pub(crate) head: Report,
    pub(crate) figures: Figures,
    prepared: Run,
    /// As the server judged it.
    pub(crate) comparison: Comparison,
    /// The phases as JSON.
    whole: String,
    /// The same thinned, and with one slice a step: retention leaves the slices, but a hundred thousand of them fill a
    /// disk, and no page measured here reads them.
    thinned: String,
    counts: [usize; 3],
}

/// The line of snapshots that compare: a project on a testbed.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Series {
    pub(crate) project: String,
    pub(crate) testbed: Testbed,
}

/// One run among those of its series.
#[derive(Debug, Clone)]
pub(crate) struct Named {
    pub(crate) run_id: RunId,
    pub(crate) revision: Revision,
    pub(crate) started_at: Timestamp,
}

const TEMPLATES: u64 = 24;
const GPUS: [&str; 2] = ["A10", "L20"];
/// What a checkout tells of its history.
const ANCESTORS: usize = 200;
/// Projects, each as often as it is measured.
const PROJECTS: [&str; 20] = [
    "sentiment",
    "sentiment",
    "sentiment",
    "sentiment",
    "sentiment",
    "sentiment",
    "sentiment",
    "sentiment",
    "ranker",
    "ranker",
    "ranker",
    "ranker",
    "embeddings",
    "embeddings",
    "speech",
    "speech",
    "ocr",
    "toxicity",
    "captions",
    "summaries",
];

/// Makes them up and has them judged, one after the other.
pub(crate) async fn templates(service: &Service) -> Fallible<Vec<Template>> {
    let mut made = Vec::new();
    for n in 0..=TEMPLATES {
        let report = tokio::task::spawn_blocking(move || measured(n)).await?;
        let uploaded = service.upload(packed(report.to_json().as_bytes())?).await?;
        // The first has no baseline.
        if n > 0 {
            made.push(Template::new(report, uploaded.comparison)?);
        }
    }
    Ok(made)
}

/// A service of 20 threads and 714 TPS with a tail. Of 24 runs two are slower, and one is void.
fn measured(n: u64) -> Report {
    let mut report = Synthetic {
        project: "templates".to_owned(),
        tag: Some(format!("v1.0.{n}")),
        started_at: start() - SignedDuration::from_hours(1_000) + SignedDuration::from_hours(n as i64),
        pool: 20,
        service_ms: 28.0,
        jitter: 0.25,
        slow_share: 0.01,
        slow_factor: 3.0,
        waves: 0.02,
        error_rate: 0.000_5,
        run_factor: match n {
            7 | 15 => 1.25,
            _ => 1.0 + (n * 7 % 11) as f64 / 1_000.0,
        },
        engine_cpu: if n == 20 { 0.95 } else { 0.3 },
        staircase: vec![5, 10, 20, 40, 50],
        step_s: 120,
        stability_s: 900,
        seed: n,
        ..Synthetic::default()
    }
    .report();
    for step in report.phases.iter_mut().flat_map(|phase| &mut phase.steps) {
        let bins: Vec<(u64, u64)> = step.latency.bins().collect();
        bins.into_iter().for_each(|(us, count)| step.first_byte.record_n_us(us * 31 / 32, count));
    }
    report
}

impl Template {
    fn new(mut report: Report, comparison: Comparison) -> Fallible<Self> {
        let (figures, prepared) = (Figures::of(&report), Run::of(&report));
        let steps = || report.phases.iter().flat_map(|phase| &phase.steps);
        let counts = [
            steps().count(),
            steps().map(|step| step.windows.len()).sum(),
            steps().map(|step| step.slices.len()).sum(),
        ];
        let whole = serde_json::to_string(&report.phases)?;
        report.thin();
        for step in report.phases.iter_mut().flat_map(|phase| &mut phase.steps) {
            step.slices = vec![Histogram::merged(&step.slices)];
            step.slice_ms = step.duration_ms;
        }
        let thinned = serde_json::to_string(&report.phases)?;
        report.phases.clear();
        Ok(Self { head: report, figures, prepared, comparison, whole, thinned, counts })
    }

    /// A report of this template under other names.
    pub(crate) fn json(&self, series: &Series, named: &Named, thinned: bool) -> Fallible<String> {
        let phases = if thinned { &self.thinned } else { &self.whole };
        let head = self.head(series, named)?.to_json();
        Ok(head.replacen("\"phases\":[]", &format!("\"phases\":{phases}"), 1))
    }

    /// What is kept beside it for comparisons.
    pub(crate) fn prepared(&self, series: &Series, named: &Named) -> Fallible<String> {
        let mut head = self.head(series, named)?;
        head.revision.ancestors.clear();
        Ok(serde_json::to_string(&self.prepared.renamed(head))?)
    }

    fn head(&self, series: &Series, named: &Named) -> Fallible<Report> {
        Ok(Report {
            run_id: named.run_id,
            project: series.project.parse()?,
            revision: named.revision.clone(),
            testbed: series.testbed.clone(),
            started_at: named.started_at,
            finished_at: named.started_at + SignedDuration::from_secs(900),
            ..self.head.clone()
        })
    }
}

pub(crate) fn described(template: &Template) -> String {
    let [steps, windows, slices] = template.counts;
    format!(
        "a report: {steps} steps, {windows} windows, {slices} slices, {} kB of JSON, {} kB once thinned",
        template.whole.len() / 1_000,
        template.thinned.len() / 1_000
    )
}

/// How many there are.
pub(crate) const SERIES: usize = PROJECTS.len() * GPUS.len();

/// The series that the `i`th run belongs to.
pub(crate) fn series(i: usize) -> Series {
    let gpu = plimsoll_domain::testbed::Gpu {
        model: GPUS[i / PROJECTS.len() % GPUS.len()].to_owned(),
        count: 1,
        memory_gib: Some(24),
        driver: None,
    };
    let testbed = Testbed { gpu: Some(gpu), cpu_cores: Some(16), memory_gib: Some(64), ..Testbed::default() };
    Series { project: PROJECTS[i % PROJECTS.len()].to_owned(), testbed }
}

/// The `i`th run of all, the `n`th of its series: mostly commits of the main branch, some pull requests and releases.
pub(crate) fn named(i: usize, n: usize, series: &Series) -> Named {
    let (pull, tag) = (n % 5 == 4, n % 20 == 10);
    let main = |n: usize| sha(&series.project, "main", n);
    let revision = Revision {
        commit: Some(if pull { sha(&series.project, "pull", n) } else { main(n) }),
        tag: tag.then(|| format!("v1.{}.{}", n / 2_000, n % 2_000 / 20)),
        branch: Some(if pull { format!("change-{n}") } else { "main".to_owned() }),
        pull_request: pull.then_some(n as u64),
        ancestors: (n.saturating_sub(ANCESTORS)..n).rev().map(main).collect(),
        merge_base: Some(if pull { main(n - 1) } else { main(n) }),
        ..Revision::default()
    };
    Named { run_id: run_id(i, n, series), revision, started_at: started_at(i) }
}

/// As the runner's are: the time, then digits of chance.
pub(crate) fn run_id(i: usize, n: usize, series: &Series) -> RunId {
    let chance = Digest::of(&(series.project.as_str(), &series.testbed, n));
    let mut bytes = [0; 10];
    chance.as_str().bytes().zip(&mut bytes).for_each(|(digit, byte)| *byte = digit.wrapping_mul(37) ^ n as u8);
    let ms = u64::try_from(started_at(i).as_millisecond()).unwrap_or_default();
    RunId(uuid::Builder::from_unix_timestamp_millis(ms, &bytes).into_uuid())
}

fn started_at(i: usize) -> Timestamp {
    start() + SignedDuration::from_mins(10 * i as i64)
}

fn start() -> Timestamp {
    Timestamp::from_second(1_700_000_000).expect("a date in 2023")
}

fn sha(project: &str, branch: &str, n: usize) -> plimsoll_domain::ids::CommitSha {
    let part = |salt: u64| {
        let of = project.bytes().chain(branch.bytes()).fold(salt, |sum, byte| sum.rotate_left(7) ^ u64::from(byte));
        (of ^ n as u64).wrapping_mul(0x9e37_79b9_7f4a_7c15)
    };
    format!("{:016x}{:016x}{:08x}", part(1), part(2), part(3) >> 32).parse().expect("forty digits")
}

/// As a runner packs it.
pub(crate) fn packed(plain: &[u8]) -> Fallible<Vec<u8>> {
    Ok(zstd::bulk::compress(plain, 3)?)
}

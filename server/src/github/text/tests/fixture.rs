//! A project on a pull request, in each of its states.

use jiff::Timestamp;
use plimsoll_domain::comparison::{Comparison, Metric, MetricComparison, MetricVerdict, Side, Verdict};
use plimsoll_domain::finding::Finding;
use plimsoll_domain::ids::{Digest, ProjectSlug, RunId};
use plimsoll_domain::policy::{Doubt, Policy};
use plimsoll_domain::report::PhaseKind;
use plimsoll_domain::sentence;
use uuid::Uuid;

use crate::github::text::{Acceptance, Images, Links, State, Told};
use crate::store::github::checks::{Conclusion, Kind, Settled};

pub(super) const SERVER: &str = "https://plimsoll.acme.dev";

pub(super) fn run(n: u128) -> RunId {
    RunId(Uuid::from_u128(0x0189_0000_0000_7000_8000_0000_0000_0000 + n))
}

/// With plain spaces where figures have narrow ones, and runs by their number.
pub(super) fn readable(text: &str) -> String {
    text.replace('\u{202f}', " ").replace("01890000-0000-7000-8000-00000000000", "run-")
}

pub(super) fn project() -> ProjectSlug {
    "sentiment".parse().unwrap()
}

/// Measured, without a verdict yet.
pub(super) fn told(project: &ProjectSlug) -> Told<'_> {
    Told {
        project,
        label: "8d1e07b",
        kind: Kind::PullRequest,
        settled: None,
        state: State::Measured,
        comparison: None,
        gates: true,
        backfill: None,
        accepted: &[],
        doubt: Doubt::Fail,
        links: Links { server: Some(SERVER), run: Some(run(2)) },
        chart: None,
    }
}

pub(super) fn images() -> Images {
    Images {
        light: format!("{SERVER}/charts/{}/staircase.svg?against={}&theme=light&signature=0a", run(2), run(1)),
        dark: format!("{SERVER}/charts/{}/staircase.svg?against={}&theme=dark&signature=0b", run(2), run(1)),
        width: 540,
        height: 500,
    }
}

pub(super) fn settled(conclusion: Conclusion, title: &str) -> Settled {
    Settled { conclusion, title: title.to_owned(), summary: format!("Why: {title}.") }
}

pub(super) fn accepted(metric: Option<Metric>) -> Acceptance {
    Acceptance {
        metric,
        by: "octocat".to_owned(),
        reason: "the new model is worth it".to_owned(),
        at: at("2025-11-25T14:06:00Z"),
    }
}

pub(super) fn at(text: &str) -> Timestamp {
    text.parse().unwrap()
}

pub(super) fn comparison(verdict: Verdict) -> Comparison {
    let metrics = match verdict {
        Verdict::Regressed => regressed(),
        Verdict::Inconclusive => inconclusive(),
        Verdict::Pass => passed(),
        Verdict::Invalid | Verdict::NoBaseline => alone(),
    };
    let mut comparison = Comparison {
        schema: 1,
        verdict,
        sentence: String::new(),
        provisional: false,
        project: project(),
        baseline: (verdict != Verdict::NoBaseline).then(baseline),
        candidate: side("8d1e07b", 2),
        metrics,
        findings: findings(verdict),
        policy: Policy::default(),
    };
    comparison.sentence = sentence::of(&comparison);
    comparison
}

pub(super) fn metric(name: Metric, figures: [f64; 3], interval: [f64; 2], verdict: MetricVerdict) -> MetricComparison {
    let policy = Policy::default();
    let threshold = match name {
        Metric::P99 => Some(policy.p99_increase),
        Metric::Capacity => Some(-policy.capacity_decrease),
        Metric::ErrorRate => Some(policy.error_rate_points),
        _ => None,
    };
    let [baseline, candidate, change] = figures;
    MetricComparison {
        name,
        phase: PhaseKind::Stability,
        unit: name.unit(),
        better: name.better(),
        gated: threshold.is_some(),
        baseline: Some(baseline),
        candidate: Some(candidate),
        change: Some(change),
        interval: Some(interval),
        threshold,
        verdict,
        sigma: None,
        note: None,
    }
}

fn baseline() -> Side {
    Side {
        commit: Some("3f2c91a5b7d0c4e8f6a1b2c3d4e5f60718293a4b".to_owned()),
        chosen_because: Some("the merge base".to_owned()),
        ..side("v1.9.1", 1)
    }
}

fn side(revision: &str, n: u128) -> Side {
    Side {
        run_ids: vec![run(n)],
        revision: revision.to_owned(),
        commit: None,
        testbed: "A10 ×1".to_owned(),
        testbed_fingerprint: Digest::of(&0),
        plan_digest: Digest::of(&1),
        stability_workers: Some(48),
        chosen_because: None,
    }
}

fn regressed() -> Vec<MetricComparison> {
    vec![
        metric(Metric::P99, [261.0, 402.0, 0.54], [0.47, 0.61], MetricVerdict::Regressed),
        metric(Metric::Capacity, [286.0, 176.0, -0.385], [-0.40, -0.37], MetricVerdict::Regressed),
        metric(Metric::ErrorRate, [0.00003, 0.00003, 0.0], [-0.00005, 0.00006], MetricVerdict::Pass),
        metric(Metric::P50, [182.0, 271.0, 0.49], [0.45, 0.53], MetricVerdict::Observed),
        metric(Metric::Tps, [260.0, 175.0, -0.33], [-0.34, -0.31], MetricVerdict::Observed),
        metric(Metric::SingleLatency, [42.0, 42.2, 0.005], [-0.016, 0.026], MetricVerdict::Observed),
    ]
}

fn passed() -> Vec<MetricComparison> {
    vec![
        metric(Metric::P99, [261.0, 257.0, -0.015], [-0.060, 0.032], MetricVerdict::Pass),
        metric(Metric::Capacity, [286.0, 288.0, 0.007], [-0.014, 0.028], MetricVerdict::Pass),
        metric(Metric::ErrorRate, [0.00003, 0.00004, 0.00001], [-0.00004, 0.00007], MetricVerdict::Pass),
        metric(Metric::P50, [182.0, 180.0, -0.011], [-0.03, 0.01], MetricVerdict::Observed),
    ]
}

fn inconclusive() -> Vec<MetricComparison> {
    let mut unsure = metric(Metric::ErrorRate, [0.0, 0.00002, 0.0], [0.0, 0.0], MetricVerdict::Inconclusive);
    (unsure.change, unsure.interval) = (None, None);
    unsure.note = Some("too few requests to tell the error rate".to_owned());
    vec![
        metric(Metric::Capacity, [512.0, 506.0, -0.012], [-0.034, 0.011], MetricVerdict::Pass),
        metric(Metric::P99, [187.0, 202.0, 0.08], [-0.028, 0.2], MetricVerdict::Inconclusive),
        unsure,
    ]
}

fn alone() -> Vec<MetricComparison> {
    let mut metrics = passed();
    for metric in &mut metrics {
        (metric.baseline, metric.change, metric.interval) = (None, None, None);
        metric.verdict = MetricVerdict::Observed;
    }
    metrics
}

fn findings(verdict: Verdict) -> Vec<Finding> {
    match verdict {
        Verdict::Regressed => vec![
            Finding::notice("pool", "the thread pool is the limit: all 10 threads are busy from 10 workers on")
                .with_advice("give the pool back its 64 threads"),
            Finding::notice("gpu", "the GPU has room: 61\u{202f}% busy, before 92\u{202f}%"),
            Finding::notice("model", "one request alone takes 42.2\u{202f}ms, as before"),
            Finding::notice("disk", "a fourth finding is on the page"),
        ],
        Verdict::Invalid => vec![Finding::voids(
            "generator_cpu",
            "the load generator used 93\u{202f}% CPU from step 50 on",
            "run it from a second host or lower the rate",
        )],
        _ => Vec::new(),
    }
}

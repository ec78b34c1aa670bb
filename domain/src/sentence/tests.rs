use super::*;
use crate::comparison::Side;
use crate::finding::Finding;
use crate::ids::Digest;
use crate::plan::Profile;
use crate::policy::Policy;
use crate::report::PhaseKind;
use crate::synthetic::Synthetic;

fn side(revision: &str) -> Side {
    Side {
        run_ids: Vec::new(),
        revision: revision.to_owned(),
        commit: None,
        testbed: "A10 ×1".to_owned(),
        testbed_fingerprint: Digest::of(&0),
        plan_digest: Digest::of(&1),
        stability_workers: Some(48),
        chosen_because: None,
    }
}

type Figures3 = (Metric, Option<f64>, Option<f64>, Option<f64>, Option<[f64; 2]>, MetricVerdict);

fn metric((name, baseline, candidate, change, interval, verdict): Figures3) -> MetricComparison {
    let policy = Policy::default();
    let threshold = match name {
        Metric::P99 => policy.p99_increase,
        Metric::Capacity => -policy.capacity_decrease,
        _ => policy.error_rate_points,
    };
    MetricComparison {
        name,
        phase: PhaseKind::Stability,
        unit: name.unit(),
        better: name.better(),
        gated: true,
        baseline,
        candidate,
        change,
        interval,
        threshold: Some(threshold),
        verdict,
        sigma: None,
        note: None,
    }
}

fn comparison(verdict: Verdict, metrics: Vec<MetricComparison>) -> Comparison {
    Comparison {
        schema: 1,
        verdict,
        sentence: String::new(),
        provisional: false,
        project: "sentiment".parse().unwrap(),
        baseline: (verdict != Verdict::NoBaseline).then(|| side("v1.9.1")),
        candidate: side("v1.9.2"),
        metrics,
        findings: Vec::new(),
        policy: Policy::default(),
    }
}

/// With plain spaces.
fn said(comparison: &Comparison) -> String {
    of(comparison).replace(NARROW, " ")
}

use MetricVerdict::{Inconclusive, Pass, Regressed};

#[test]
fn regressed() {
    let p99 = metric((Metric::P99, Some(261.0), Some(402.0), Some(0.54), Some([0.47, 0.61]), Regressed));
    let capacity = metric((Metric::Capacity, Some(286.0), Some(176.0), Some(-0.38), Some([-0.4, -0.37]), Regressed));
    let errors = metric((Metric::ErrorRate, Some(0.0), Some(0.012), Some(0.012), Some([0.008, 0.016]), Regressed));
    assert_eq!(
        said(&comparison(Verdict::Regressed, vec![p99.clone()])),
        "P99 at 48 workers rose from 261 ms to 402 ms (+54 %, interval +47 to +61 %; allowed +10 %) against v1.9.1."
    );
    assert_eq!(
        said(&comparison(Verdict::Regressed, vec![p99, capacity, errors])),
        "P99 at 48 workers rose from 261 ms to 402 ms (+54 %, interval +47 to +61 %; allowed +10 %) against v1.9.1. \
         Capacity fell from 286 TPS to 176 TPS (−38 %, interval −40 to −37 %; allowed −5 %). \
         Error rate at 48 workers rose from 0 % to 1.20 % (+1.200 pp, interval +0.800 to +1.600 pp; allowed +0.1 pp)."
    );
}

#[test]
fn pass() {
    let p99 = metric((Metric::P99, Some(261.0), Some(257.0), Some(-0.015), Some([-0.06, 0.032]), Pass));
    let capacity = metric((Metric::Capacity, Some(286.0), Some(288.0), Some(0.007), Some([-0.014, 0.028]), Pass));
    assert_eq!(
        said(&comparison(Verdict::Pass, vec![p99, capacity.clone()])),
        "No regression against v1.9.1: P99 −1.5 % (−6.0 to +3.2 %), capacity +0.7 % (−1.4 to +2.8 %)."
    );
    let faster = metric((Metric::P99, Some(800.0), Some(120.0), Some(-0.85), Some([-0.86, -0.84]), Pass));
    assert_eq!(
        said(&comparison(Verdict::Pass, vec![faster, capacity])),
        "Better than v1.9.1: P99 at 48 workers fell from 800 ms to 120 ms (−85 %, interval −86 to −84 %). \
         No regression: capacity +0.7 % (−1.4 to +2.8 %)."
    );
}

#[test]
fn inconclusive() {
    let noisy = metric((Metric::P99, Some(187.0), Some(202.0), Some(0.08), Some([-0.028, 0.2]), Inconclusive));
    assert_eq!(
        said(&comparison(Verdict::Inconclusive, vec![noisy.clone()])),
        "Too noisy to say: P99 +8.0 % (−2.8 to +20 %; allowed +10 %). Measure again, or for longer."
    );
    let fell = metric((Metric::Capacity, Some(286.0), Some(269.0), Some(-0.06), Some([-0.07, -0.05]), Inconclusive));
    let fell = said(&comparison(Verdict::Inconclusive, vec![fell]));
    assert!(fell.starts_with("Past the threshold, but not by more than runs may differ"), "{fell}");
    assert!(fell.ends_with("capacity −6.0 % (−7.0 to −5.0 %; allowed −5 %). Measure both revisions again."), "{fell}");
    let mut missing = metric((Metric::Capacity, Some(286.0), None, None, None, Inconclusive));
    missing.note = Some("capacity: no staircase".to_owned());
    assert!(
        said(&comparison(Verdict::Inconclusive, vec![noisy, missing])).ends_with("longer. Capacity: no staircase.")
    );
}

#[test]
fn invalid() {
    let mut invalid = comparison(Verdict::Invalid, Vec::new());
    invalid.findings = vec![
        Finding::notice("cut", "Three requests were cut"),
        Finding::voids("x", "The load generator used 93 % CPU from step 50 on.", "Run it from a second host."),
        Finding::voids("y", "TPS was odd", "Sleep"),
    ];
    let sentence = "Not comparable: the load generator used 93 % CPU from step 50 on. Run it from a second host.";
    assert_eq!(said(&invalid), sentence);
    invalid.findings.remove(1);
    assert_eq!(said(&invalid), "Not comparable: TPS was odd. Sleep.");
}

#[test]
fn no_baseline() {
    let p99 = metric((Metric::P99, None, Some(172.0), None, None, MetricVerdict::Observed));
    let capacity = metric((Metric::Capacity, None, Some(545.0), None, None, MetricVerdict::Observed));
    assert_eq!(
        said(&comparison(Verdict::NoBaseline, vec![p99, capacity])),
        "Nothing to compare with yet on A10 ×1: P99 at 48 workers 172 ms, capacity 545 TPS."
    );
    assert_eq!(said(&comparison(Verdict::NoBaseline, Vec::new())), "Nothing to compare with yet on A10 ×1.");
}

#[test]
fn one_run_alone_leads_with_its_tail() {
    let run = Synthetic { staircase: vec![5, 10, 20], step_s: 20, stability_s: 20, ..Synthetic::default() };
    let said = |run: &Synthetic| summary(&Figures::of(&run.report())).replace(NARROW, " ");
    let text = said(&run);
    assert!(text.starts_with("P99 is 1") && text.contains(" ms at 24 workers (P50 1"), "{text}");
    assert!(text.contains("ms, no errors). Carries 17") && text.contains(" TPS, 95 % of it from "), "{text}");
    assert!(text.ends_with(" ms."), "{text}");
    let pr = said(&Synthetic { profile: Profile::Pr, ..run.clone() });
    assert!(pr.contains(" TPS at 20 workers.") && !pr.contains("95 %"), "{pr}");
    let short = said(&Synthetic { stability_s: 5, service_ms: 200.0, ..run.clone() });
    assert!(short.starts_with("P99 at 24 workers is withheld: 1") && short.contains("it needs 662 (P50"), "{short}");
    let failing = said(&Synthetic { error_rate: 1.0, ..run.clone() });
    assert!(failing.starts_with("At 24 workers all ") && failing.contains("requests failed (100 %)"), "{failing}");
    let endless = said(&Synthetic { pool: 2_000, staircase: vec![200, 400], step_s: 6, ..run });
    assert!(endless.contains("Carries at least ") && endless.contains("still growing at 400 workers"), "{endless}");
    let nothing = Figures { smoke: None, capacity: None, stability: None, steps: Vec::new() };
    assert_eq!(summary(&nothing), "Nothing was measured.");
}

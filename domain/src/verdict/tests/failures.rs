//! Services that fail requests, or die.

use super::*;

#[test]
fn a_service_that_fails_every_request_is_regressed_not_invalid() {
    let (a, mut b) = (short().report(), candidate().report());
    for kind in [PhaseKind::Smoke, PhaseKind::Staircase, PhaseKind::Stability] {
        steps(&mut b, kind).iter_mut().for_each(|step| set_outcomes(step, 0, 5_000));
    }
    b.check().unwrap();
    let comparison = compare(&[&a], &b);
    assert_eq!((comparison.verdict, comparison.provisional), (Verdict::Regressed, false));
    assert_eq!(metric(&comparison, Metric::ErrorRate).change, Some(1.0));
    assert_eq!(metric(&comparison, Metric::P99).verdict, MetricVerdict::Inconclusive);
    assert_eq!(
        said(&comparison),
        "Error rate at 24 workers rose from 0 % to 100 % (+100.000 pp, interval +99.927 to +100.000 pp; allowed +0.1 pp) \
         against v1.0.0."
    );
}

/// A run of the candidate during whose staircase the service died, with what the runner says about it.
fn died(of: Synthetic) -> Report {
    let mut report = of.report();
    report.phases.retain(|phase| phase.kind != PhaseKind::Stability);
    steps(&mut report, PhaseKind::Staircase).truncate(1);
    (report.status, report.load_choice) = (Status::Failed, None);
    let message = "the service stopped answering at 20 workers: 34 × reset";
    report.findings.push(Finding::notice("service_gone", message).with_advice("See its log."));
    report
}

#[test]
fn a_service_that_dies_under_load_is_regressed() {
    let (a, b) = (short().report(), died(candidate()));
    let comparison = compare(&[&a], &b);
    assert_eq!((comparison.verdict, comparison.provisional), (Verdict::Regressed, false));
    let wanted = "The service stopped answering at 20 workers: 34 × reset. v1.0.0 was measured to the end.";
    assert_eq!(said(&comparison), wanted);
    assert_eq!(comparison.findings[0].code, "service_gone");
    for metric in &comparison.metrics {
        assert_eq!((metric.verdict, metric.change), (MetricVerdict::Observed, None));
        assert!(metric.note.is_some(), "{metric:?}");
    }
    // Nothing to compare with, a run that we spoiled, or one that ended in the smoke phase: nothing is said.
    let alone = judge(None, &b, &Policy::default(), &Noise::default());
    assert_eq!(alone.verdict, Verdict::Invalid);
    let other = Synthetic { gpu: "L20".into(), ..short() }.report();
    assert_eq!(compare(&[&other], &b).verdict, Verdict::Invalid);
    let mut spoiled = b.clone();
    spoiled.findings.push(Finding::voids("engine_cpu", "the generator was busy", "Slow down."));
    assert_eq!(compare(&[&a], &spoiled).verdict, Verdict::Invalid);
    let mut early = b.clone();
    early.phases.retain(|phase| phase.kind == PhaseKind::Smoke);
    assert_eq!(compare(&[&a], &early).verdict, Verdict::Invalid);
    let stopped = Report { status: Status::Interrupted, ..b.clone() };
    assert_eq!(compare(&[&a], &stopped).verdict, Verdict::Invalid);
    // It is never a baseline.
    let after = compare(&[&b], &candidate().report());
    assert_eq!(after.verdict, Verdict::Invalid);
    assert!(said(&after).contains("the baseline v1.1.0 is invalid: it ended in a failure"), "{}", said(&after));
}

#[test]
fn error_rates_need_requests_to_be_told_apart() {
    use MetricVerdict::{Inconclusive, Pass, Regressed};
    for (before, after, verdict) in [
        ((0, 5_000), (0, 5_000), Pass),
        ((0, 700), (0, 700), Pass),
        ((0, 600), (0, 600), Inconclusive),
        ((12, 5_000), (0, 5_000), Pass),
        ((0, 5_000), (12, 5_000), Regressed),
        ((0, 5_000), (5_000, 5_000), Regressed),
        ((0, 5_000), (2, 5_000), Inconclusive),
        ((0, 100_000), (2, 100_000), Pass),
        ((50, 5_000), (50, 5_000), Inconclusive),
        ((3_000, 300_000), (3_000, 300_000), Pass),
        ((0, 0), (0, 5_000), Inconclusive),
        ((0, 5_000), (0, 0), Inconclusive),
    ] {
        let run = |of: Synthetic, (failed, all): (u64, u64)| {
            let mut report = of.report();
            set_outcomes(&mut steps(&mut report, PhaseKind::Stability)[0], all - failed, failed);
            report
        };
        let comparison = compare(&[&run(short(), before)], &run(candidate(), after));
        let metric = metric(&comparison, Metric::ErrorRate);
        assert_eq!(metric.verdict, verdict, "{before:?} {after:?} {metric:?}");
        if let (Some(was), Some(is), Some(change)) = (metric.baseline, metric.candidate, metric.change) {
            assert!((is - was - change).abs() < 1e-12);
        }
        assert!(verdict != Inconclusive || metric.note.is_some());
    }
}

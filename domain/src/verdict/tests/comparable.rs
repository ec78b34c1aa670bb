//! What compares with nothing, and what is said then.

use super::*;

#[test]
fn what_does_not_compare_is_invalid_and_says_what_to_do() {
    let a = short().report();
    let cases = [
        (Synthetic { project: "other".into(), ..candidate() }.report(), "the runs belong to two projects"),
        (Synthetic { step_s: 11, ..candidate() }.report(), "the runs follow two plans"),
        (Synthetic { gpu: "L20".into(), ..candidate() }.report(), "the runs come from two testbeds, A10 ×1 and L20 ×1"),
        (Report { status: Status::Interrupted, ..candidate().report() }, "the run was interrupted before its end"),
        (Report { status: Status::Failed, ..candidate().report() }, "the run ended in a failure"),
        (Synthetic { engine_cpu: 0.93, ..candidate() }.report(), "the load generator used 93 % of a core from 10 w"),
    ];
    for (report, why) in cases {
        let comparison = compare(&[&a], &report);
        assert_eq!(comparison.verdict, Verdict::Invalid, "{why}");
        assert!(said(&comparison).starts_with(&format!("Not comparable: {why}")), "{}", said(&comparison));
        assert!(comparison.findings[0].advice.is_some() && said(&comparison).ends_with('.'));
        for metric in &comparison.metrics {
            assert_eq!(metric.verdict, MetricVerdict::Observed);
            assert!(metric.change.is_none() && metric.candidate.is_some() && metric.baseline.is_some(), "{metric:?}");
        }
    }
    // A spoiled baseline is as useless as a spoiled candidate; one good run of it is enough.
    let spoiled = Synthetic { engine_cpu: 0.93, seed: 9, ..short() }.report();
    let comparison = compare(&[&spoiled], &candidate().report());
    assert!(said(&comparison).starts_with("Not comparable: the baseline v1.0.0 is invalid: the load generator used"));
    assert_eq!(compare(&[&spoiled, &a], &candidate().report()).verdict, Verdict::Pass);
}

#[test]
fn without_a_baseline_the_figures_are_listed() {
    let report = candidate().report();
    let none = Baseline { runs: Vec::new(), chosen_because: None };
    for baseline in [None, Some(&none)] {
        let comparison = judge(baseline, &report, &Policy::default(), &Noise::default());
        assert_eq!((comparison.verdict, comparison.baseline.is_none()), (Verdict::NoBaseline, true));
        assert!(comparison.metrics.iter().all(|metric| metric.candidate.is_some() && metric.baseline.is_none()));
        assert!(comparison.metrics.iter().all(|metric| metric.verdict == MetricVerdict::Observed));
        assert!(said(&comparison).starts_with("Nothing to compare with yet on A10 ×1: P99 at 24 workers 1"));
    }
    let spoiled = Synthetic { engine_cpu: 0.93, ..candidate() }.report();
    assert_eq!(judge(None, &spoiled, &Policy::default(), &Noise::default()).verdict, Verdict::Invalid);
}

#[test]
fn notices_of_the_candidate_are_carried_along() {
    let mut report = candidate().report();
    report.findings.push(Finding::notice("cut", "3 requests were still open"));
    assert_eq!(compare(&[&short().report()], &report).findings, report.findings);
}

//! Verdicts agree with their figures, with themselves, and with those of reports that were thinned or kept as runs.

use proptest::prelude::*;

use super::*;

#[test]
fn the_same_reports_give_the_same_bytes() {
    let (a, b) = (short().report(), candidate().report());
    let bytes = |comparison| serde_json::to_string(&comparison).unwrap();
    let one = bytes(compare(&[&a], &b));
    assert_eq!(one, bytes(compare(&[&a], &b)));
    assert_eq!(one, bytes(serde_json::from_str(&one).unwrap()));
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(24))]
    /// Whatever the change, verdicts, thresholds and intervals agree with each other.
    #[test]
    fn a_verdict_never_contradicts_its_numbers(
        factor in 0.6f64..1.6, seed in 0u64..1_000, error_rate in 0.0f64..0.02, pairs in 0u32..20, sigma in 0.0f64..0.1,
    ) {
        let (a, b) = (short().report(), Synthetic { run_factor: factor, error_rate, seed, ..candidate() }.report());
        let baseline = Baseline { runs: vec![&a], chosen_because: None };
        let noise = Noise { latency: Sigma { value: sigma, pairs }, throughput: Sigma { value: sigma / 4.0, pairs } };
        let comparison = judge(Some(&baseline), &b, &Policy::default(), &noise);
        for metric in comparison.metrics.iter().filter(|metric| metric.gated) {
            let (Some(change), Some(threshold)) = (metric.change, metric.threshold) else { continue };
            let past = |value: f64| if threshold > 0.0 { value > threshold } else { value < threshold };
            if let Some([low, high]) = metric.interval {
                prop_assert!(low <= change && change <= high, "{metric:?}");
                let worst = if threshold > 0.0 { high } else { low };
                if metric.name != Metric::ErrorRate {
                    prop_assert_eq!(metric.verdict == MetricVerdict::Pass, !past(worst), "{:?}", metric);
                }
            }
            if metric.verdict == MetricVerdict::Regressed {
                prop_assert!(past(change) && metric.trend() == Some(Trend::Worse), "{metric:?}");
            }
            prop_assert!(metric.verdict != MetricVerdict::Inconclusive || metric.note.is_some(), "{metric:?}");
        }
        let gated: Vec<_> = comparison.metrics.iter().filter(|m| m.gated).map(|m| m.verdict).collect();
        prop_assert_eq!(comparison.verdict == Verdict::Regressed, gated.contains(&MetricVerdict::Regressed));
        prop_assert_eq!(comparison.verdict == Verdict::Pass, gated.iter().all(|v| *v == MetricVerdict::Pass));
        prop_assert!(!comparison.provisional || comparison.verdict == Verdict::Regressed);
    }
}

#[test]
fn a_thinned_baseline_gives_the_same_verdict() {
    let slower = Synthetic { service_ms: 47.0, ..candidate() };
    for other in [candidate(), slower] {
        let (whole, other) = (short().report(), other.report());
        let (mut thinned, mut other_thinned) = (whole.clone(), other.clone());
        thinned.thin();
        other_thinned.thin();
        assert!(thinned.is_thinned() && !whole.is_thinned());
        assert!(thinned.phases.iter().flat_map(|phase| &phase.steps).all(|step| step.windows.is_empty()));
        let comparison = compare(&[&whole], &other);
        assert!(metric(&comparison, Metric::Capacity).interval.is_some(), "the example must have one");
        assert_eq!(compare(&[&thinned], &other), comparison);
        assert_eq!(compare(&[&thinned], &other_thinned), comparison);
        // It is a report like any other, and thinning it again changes nothing.
        assert_eq!(Report::from_json(thinned.to_json().as_bytes()).as_ref(), Ok(&thinned));
        let once = thinned.clone();
        thinned.thin();
        assert_eq!(thinned, once);
        assert!(thinned.to_json().len() < whole.to_json().len() * 9 / 10);
    }
}

#[test]
fn a_run_that_was_kept_is_judged_to_the_last_bit_as_its_report() {
    let runs = [short(), candidate()].map(|run| Synthetic { slow_share: 0.01, ..run }.report());
    let kept = runs.each_ref().map(|report| {
        let json = serde_json::to_string(&Run::of(report)).unwrap();
        serde_json::from_str::<Run>(&json).unwrap()
    });
    let (policy, noise) = (Policy::default(), Noise::default());
    let because = Some("the previous release".to_owned());
    let of_reports = Baseline { runs: vec![&runs[0]], chosen_because: because.clone() };
    assert_eq!(
        judge_runs(&[&kept[0]], because, &kept[1], &policy, &noise),
        judge(Some(&of_reports), &runs[1], &policy, &noise)
    );
    assert!(kept[0].is_current() && kept[0] == Run::of(&runs[0]));
}

//! What was not measured, or at another load, never passes.

use super::*;
use crate::plan::Profile;

#[test]
fn a_p99_of_too_few_requests_is_withheld_and_never_passes() {
    let (mut few, many) = (short().report(), candidate().report());
    set_outcomes(&mut steps(&mut few, PhaseKind::Stability)[0], 455, 0);
    let forward = compare(&[&many], &few);
    assert_eq!(forward.verdict, Verdict::Inconclusive);
    let p99 = metric(&forward, Metric::P99);
    assert_eq!((p99.candidate, p99.change, p99.verdict), (None, None, MetricVerdict::Inconclusive));
    assert_eq!(p99.note.as_deref(), Some("P99: withheld: 455 successes, a P99 needs 662"));
    assert!(said(&forward).contains("P99: withheld: 455 successes, a P99 needs 662."), "{}", said(&forward));
    let backward = compare(&[&few], &many);
    assert_eq!(metric(&backward, Metric::P99).verdict, MetricVerdict::Inconclusive);
    assert!(metric(&backward, Metric::P99).note.as_deref().unwrap().contains("of the baseline"));
}

#[test]
fn what_is_missing_never_passes() {
    let (full, mut bare) = (short().report(), candidate().report());
    bare.phases.retain(|phase| phase.kind != PhaseKind::Stability);
    for (a, b) in [(&full, &bare), (&bare, &full), (&bare, &bare)] {
        let comparison = compare(&[a], b);
        assert_eq!(comparison.verdict, Verdict::Inconclusive);
        for name in [Metric::P99, Metric::ErrorRate] {
            let metric = metric(&comparison, name);
            assert_eq!(metric.verdict, MetricVerdict::Inconclusive, "{metric:?}");
            assert!(metric.note.as_deref().unwrap().contains("stability phase"), "{metric:?}");
        }
        assert_eq!(metric(&comparison, Metric::Capacity).verdict, MetricVerdict::Pass);
    }
    let mut flat = candidate().report();
    flat.phases.retain(|phase| phase.kind != PhaseKind::Staircase);
    let comparison = compare(&[&full], &flat);
    assert_eq!(metric(&comparison, Metric::Capacity).verdict, MetricVerdict::Inconclusive);
    assert_eq!(metric(&comparison, Metric::P99).verdict, MetricVerdict::Pass);
    assert_eq!(said(&comparison), "Capacity: no staircase.");
}

#[test]
fn a_pull_request_s_short_run_compares_with_a_full_one() {
    let short_run = Synthetic { profile: Profile::Pr, ..candidate() }.report();
    let comparison = compare(&[&short().report()], &short_run);
    assert_eq!(comparison.verdict, Verdict::Pass, "{}", comparison.sentence);
    let knee = metric(&comparison, Metric::Knee);
    assert_eq!((knee.candidate, knee.change), (None, None), "{knee:?}");
}

#[test]
fn another_load_is_another_question() {
    let (a, mut b) = (short().report(), candidate().report());
    steps(&mut b, PhaseKind::Stability)[0].workers = 26;
    let comparison = compare(&[&a], &b);
    assert_eq!(comparison.verdict, Verdict::Inconclusive);
    let why = "P99s at 24 and 26 workers do not compare: measure again with --baseline or --stability-workers 24";
    for name in [Metric::P99, Metric::ErrorRate, Metric::P50, Metric::Tps] {
        let metric = metric(&comparison, name);
        assert!(metric.change.is_none() && metric.interval.is_none(), "{metric:?}");
        assert!(metric.note.as_deref().unwrap().contains(why) && metric.baseline.is_some(), "{metric:?}");
    }
    assert_eq!(metric(&comparison, Metric::Capacity).verdict, MetricVerdict::Pass);
    assert_eq!(said(&comparison), format!("{why}."));
    // Of a pool, the runs at the candidate's load are used.
    let both = compare(&[&a, &Synthetic { seed: 3, ..short() }.report()], &candidate().report());
    assert_eq!(both.verdict, Verdict::Pass);
    let mixed = compare(&[&b, &a], &candidate().report());
    assert_eq!(metric(&mixed, Metric::P99).verdict, MetricVerdict::Pass);
    assert_eq!(mixed.baseline.unwrap().stability_workers, Some(24));
}

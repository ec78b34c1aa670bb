//! Better, worse, the same: what is found, and how it is said.

use super::*;

#[test]
fn a_run_compared_with_itself_has_not_changed() {
    let run = short().report();
    let same = compare(&[&run], &run);
    assert_eq!(same.verdict, Verdict::Pass);
    assert!(same.metrics.iter().all(|metric| metric.change == Some(0.0)), "{:?}", same.metrics);
    assert!(said(&same).starts_with("No regression against v1.0.0: P99 0.0 % (−"), "{}", said(&same));
    let names: Vec<&str> = same.metrics.iter().map(|metric| metric.name.name()).collect();
    let order = ["p99", "capacity", "error_rate", "p50", "p95", "max", "tps", "knee", "single_latency"];
    assert_eq!(names, order);
    assert_eq!(same.metrics.iter().filter(|metric| metric.gated).count(), 3);
}

#[test]
fn a_slower_release_is_named_with_its_numbers() {
    let slower = compare(&[&short().report()], &Synthetic { run_factor: 1.3, ..candidate() }.report());
    assert_eq!((slower.verdict, slower.provisional), (Verdict::Regressed, true));
    let p99 = metric(&slower, Metric::P99);
    assert_eq!((p99.verdict, p99.trend()), (MetricVerdict::Regressed, Some(Trend::Worse)));
    let [low, high] = p99.interval.unwrap();
    assert!(low < 0.3 && 0.3 < high && high - low < 0.2, "{low} {high}");
    let said = said(&slower);
    assert!(said.starts_with("P99 at 24 workers rose from 1"), "{said}");
    assert!(said.contains("; allowed +10 %) against v1.0.0. Capacity fell from 1"), "{said}");
    assert!(said.ends_with("; allowed −5 %)."), "{said}");
    assert!(slower.findings.iter().any(|finding| finding.code == "provisional"));
}

#[test]
fn better_is_said_as_better() {
    let fast = Synthetic { pool: 40, ..candidate() }.report();
    let better = compare(&[&Synthetic { stability_workers: 24, ..short() }.report()], &fast);
    assert_eq!(better.verdict, Verdict::Pass);
    let said = said(&better);
    assert!(said.starts_with("Better than v1.0.0: P99 at 24 workers fell from 1"), "{said}");
    assert!(said.contains("; capacity rose from 1") && !said.contains("allowed"), "{said}");
    assert_eq!(metric(&better, Metric::P99).trend(), Some(Trend::Better));
}

#[test]
fn a_small_loss_on_an_unknown_testbed_is_undecided_and_says_why() {
    let (a, b) = (short().report(), Synthetic { run_factor: 1.065, waves: 0.0, ..candidate() }.report());
    let comparison = compare(&[&a], &b);
    let capacity = metric(&comparison, Metric::Capacity);
    assert_eq!((capacity.verdict, capacity.trend()), (MetricVerdict::Inconclusive, Some(Trend::Worse)), "{capacity:?}");
    assert!(capacity.note.as_deref().unwrap().contains("within the −7.2"), "{capacity:?}");
    assert_eq!(comparison.verdict, Verdict::Inconclusive);
}

#[test]
fn identical_code_is_never_called_a_regression_and_slower_code_is_found() {
    // Runs of the same code differ by 2.5 % in P99 and 0.7 % in throughput; some answers are slow.
    let z = |i: u64, turn: u64| {
        use statrs::distribution::{ContinuousCDF, Normal};
        Normal::standard().inverse_cdf(((i * turn + 11) % 120) as f64 / 120.0 + 0.5 / 120.0)
    };
    let run = |i: u64, factor: f64| {
        let of = if i.is_multiple_of(2) { short() } else { candidate() };
        let run_factor = factor * (0.007 * z(i, 37)).exp();
        Synthetic { seed: 100 + i, run_factor, jitter: 0.12 + 0.0105 * z(i, 43), slow_share: 0.003, ..of }.report()
    };
    let count = |factor: f64, wanted: Verdict, pairs: u64| {
        let judged = (0..pairs).filter(|i| {
            let (a, b) = (run(2 * i, 1.0), run(2 * i + 1, factor));
            compare(&[&a], &b).verdict == wanted
        });
        judged.count()
    };
    assert_eq!(count(1.0, Verdict::Regressed, 60), 0);
    let (found_20, found_30) = (count(1.2, Verdict::Regressed, 15), count(1.3, Verdict::Regressed, 15));
    assert!(found_20 >= 14 && found_30 == 15, "{found_20} and {found_30} of 15");
}

//! What many runs of a baseline, and what is known of the testbed, do to a verdict.

use super::*;

#[test]
fn learnt_noise_makes_it_firm_and_much_noise_doubtful() {
    let runs: Vec<Report> = (10..15).map(|seed| Synthetic { seed, ..short() }.report()).collect();
    let slower = Synthetic { run_factor: 1.15, ..candidate() }.report();
    let baseline = Baseline { runs: runs.iter().collect(), chosen_because: None };
    let at = |value, pairs| {
        let noise = Noise { latency: Sigma { value, pairs }, throughput: Sigma { value: 0.005, pairs } };
        judge(Some(&baseline), &slower, &Policy::default(), &noise)
    };
    let p99 = |comparison: &Comparison| metric(comparison, Metric::P99).verdict;
    assert!(!at(0.02, 10).provisional && at(0.02, 9).provisional);
    assert_eq!(p99(&at(0.02, 10)), MetricVerdict::Regressed);
    // +15 % is past the threshold and significant, but within 3 × 5 % of a testbed whose noise is not yet learnt.
    assert_eq!(p99(&at(0.05, 10)), MetricVerdict::Regressed);
    assert_eq!(p99(&at(0.05, 9)), MetricVerdict::Inconclusive);
    assert_eq!(p99(&at(0.1, 10)), MetricVerdict::Inconclusive);
    // What nobody measured is not believed to be quieter than the floor.
    assert_eq!(metric(&at(0.0, 10), Metric::P99).sigma, Some(0.02));
}

#[test]
fn a_pool_of_baselines_narrows_the_interval() {
    let runs: Vec<Report> = (10..15).map(|seed| Synthetic { seed, ..short() }.report()).collect();
    let candidate = candidate().report();
    let width = |runs: &[&Report]| {
        let comparison = compare(runs, &candidate);
        let [low, high] = metric(&comparison, Metric::P99).interval.unwrap();
        assert_eq!(comparison.baseline.unwrap().run_ids.len(), runs.len());
        high - low
    };
    assert!(width(&runs.iter().collect::<Vec<_>>()) < 0.85 * width(&[&runs[0]]));
}

#[test]
fn one_run_that_is_too_short_does_not_silence_its_pool() {
    let (a, mut coarse) = (short().report(), Synthetic { seed: 5, ..short() }.report());
    let soak = &mut steps(&mut coarse, PhaseKind::Stability)[0];
    (soak.slices, soak.slice_ms) = (vec![soak.latency.clone()], 40_000);
    coarse.check().unwrap();
    let candidate = candidate().report();
    let p99 = |runs: &[&Report]| metric(&compare(runs, &candidate), Metric::P99).clone();
    assert_eq!(p99(&[&coarse]).verdict, MetricVerdict::Inconclusive);
    assert_eq!(p99(&[&a, &coarse]).interval, p99(&[&a]).interval);
    assert_eq!(p99(&[&coarse, &a]).verdict, MetricVerdict::Pass);
}

use std::collections::BTreeMap;

use proptest::prelude::*;

use super::*;
use crate::comparison::{Metric, MetricComparison, Trend};
use crate::histogram::Histogram;
use crate::noise::Sigma;
use crate::outcome::ErrorKind;
use crate::plan::Profile;
use crate::report::{PhaseKind, Status, Step};
use crate::synthetic::Synthetic;

/// Short phases, so that many runs can be made.
fn short() -> Synthetic {
    Synthetic {
        staircase: vec![10, 20],
        step_s: 10,
        stability_s: 40,
        tag: Some("v1.0.0".into()),
        ..Synthetic::default()
    }
}

fn candidate() -> Synthetic {
    Synthetic { tag: Some("v1.1.0".into()), seed: 2, ..short() }
}

fn compare(baseline: &[&Report], candidate: &Report) -> Comparison {
    let baseline = Baseline { runs: baseline.to_vec(), chosen_because: Some("the previous release".into()) };
    judge(Some(&baseline), candidate, &Policy::default(), &Noise::default())
}

fn metric(comparison: &Comparison, name: Metric) -> &MetricComparison {
    comparison.metrics.iter().find(|metric| metric.name == name).unwrap()
}

/// The sentence with plain spaces.
fn said(comparison: &Comparison) -> String {
    comparison.sentence.replace(format::NARROW, " ")
}

fn steps(report: &mut Report, kind: PhaseKind) -> &mut Vec<Step> {
    &mut report.phases.iter_mut().find(|phase| phase.kind == kind).unwrap().steps
}

/// Makes the step one of `ok` successes and `failed` failures.
fn set_outcomes(step: &mut Step, ok: u64, failed: u64) {
    let ratio = ok as f64 / step.latency.len() as f64;
    let mut left = ok;
    for slice in &mut step.slices {
        let n = ((slice.len() as f64 * ratio).ceil() as u64).min(left);
        left -= n;
        let mut fewer = Histogram::new();
        (0..n).for_each(|i| fewer.record_us(100_000 + i * 100));
        *slice = fewer;
    }
    step.slices[0].record_n_us(100_000, left);
    step.latency = Histogram::merged(&step.slices);
    step.outcomes.ok = ok;
    step.outcomes.errors = BTreeMap::from([(ErrorKind::Http5xx, failed)]);
    step.outcomes.errors.retain(|_, n| *n > 0);
    (step.completed.ok, step.completed.failed) = (ok, failed);
}

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
fn the_same_reports_give_the_same_bytes() {
    let (a, b) = (short().report(), candidate().report());
    let bytes = |comparison| serde_json::to_string(&comparison).unwrap();
    let one = bytes(compare(&[&a], &b));
    assert_eq!(one, bytes(compare(&[&a], &b)));
    assert_eq!(one, bytes(serde_json::from_str(&one).unwrap()));
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
fn a_small_loss_on_an_unknown_testbed_is_undecided_and_says_why() {
    let (a, b) = (short().report(), Synthetic { run_factor: 1.065, waves: 0.0, ..candidate() }.report());
    let comparison = compare(&[&a], &b);
    let capacity = metric(&comparison, Metric::Capacity);
    assert_eq!((capacity.verdict, capacity.trend()), (MetricVerdict::Inconclusive, Some(Trend::Worse)), "{capacity:?}");
    assert!(capacity.note.as_deref().unwrap().contains("within the −7.2"), "{capacity:?}");
    assert_eq!(comparison.verdict, Verdict::Inconclusive);
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

#[test]
fn a_capacity_from_or_to_nothing_has_no_ratio() {
    let stalled = |of: Synthetic| {
        let mut report = of.report();
        for kind in [PhaseKind::Smoke, PhaseKind::Staircase] {
            steps(&mut report, kind).iter_mut().for_each(|step| step.completed.ok = 0);
        }
        report
    };
    let (a, b) = (short(), candidate());
    for (before, after, change, verdict, note) in [
        (stalled(a.clone()), b.report(), None, MetricVerdict::Pass, "new (was 0)"),
        (a.report(), stalled(b.clone()), Some(-1.0), MetricVerdict::Regressed, "fell to 0"),
        (stalled(a.clone()), stalled(b.clone()), Some(0.0), MetricVerdict::Inconclusive, "0 on both sides"),
    ] {
        let comparison = compare(&[&before], &after);
        let capacity = metric(&comparison, Metric::Capacity);
        assert_eq!((capacity.change, capacity.interval, capacity.verdict), (change, None, verdict), "{capacity:?}");
        assert!(capacity.note.as_deref().unwrap().contains(note), "{capacity:?}");
    }
}

#[test]
fn a_capacity_that_was_still_growing_is_at_least() {
    // Pools beyond the last step: 400 workers is the search's cap, and both sides stop there.
    let growing =
        |of: Synthetic, pool| Synthetic { pool, waves: 0.0, staircase: vec![200, 400], step_s: 8, ..of }.report();
    let (a, b) = (growing(short(), 1_000), growing(candidate(), 1_000));
    let both = compare(&[&a], &b);
    let capacity = metric(&both, Metric::Capacity);
    assert_eq!(capacity.verdict, MetricVerdict::Pass, "{capacity:?}");
    assert!(capacity.note.as_deref().unwrap().contains("at least: TPS was still growing at 400 workers"));
    // A plateau below it is a regression; of the other way round nothing is known when figures fell.
    let flat = growing(candidate(), 300);
    assert_eq!(metric(&compare(&[&a], &flat), Metric::Capacity).verdict, MetricVerdict::Regressed);
    let slow =
        Synthetic { pool: 1_000, waves: 0.0, staircase: vec![200, 400], step_s: 8, service_ms: 112.0, ..candidate() }
            .report();
    let unknown = compare(&[&growing(short(), 300)], &slow);
    let capacity = metric(&unknown, Metric::Capacity);
    assert_eq!(capacity.verdict, MetricVerdict::Inconclusive, "{capacity:?}");
    assert!(capacity.note.as_deref().unwrap().starts_with("capacity was still growing at 400 workers"));
}

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

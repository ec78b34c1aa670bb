//! Capacities without a ratio, and those that were still growing.

use super::*;

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
fn one_worker_is_no_workers() {
    let mut run = Run::of(&short().report());
    let noted = |before: &Run, after: &Run| {
        let mut row = row::Row::new(Metric::Capacity, &Policy::default());
        ratio::bounded_capacity(&mut row, &[before], after);
        row.metric.note.unwrap()
    };
    run.growing_at = Some(1);
    assert_eq!(noted(&run, &run), "at least: TPS was still growing at 1 worker");
    let mut settled = Run::of(&short().report());
    settled.growing_at = None;
    assert!(noted(&run, &settled).ends_with("its TPS was still growing at 1 worker"));
}

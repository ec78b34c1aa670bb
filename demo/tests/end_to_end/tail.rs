//! What a mean hides: 990 answers in 200 ms and 10 in 5 s.

use plimsoll_domain::figures::Figures;
use plimsoll_domain::histogram::Histogram;
use plimsoll_domain::outcome::Outcomes;
use plimsoll_domain::report::{PhaseKind, Report};
use plimsoll_domain::sentence;
use plimsoll_domain::synthetic::Synthetic;

#[test]
fn the_summary_leads_with_the_tail_of_the_merged_histogram() {
    let report = read_back(with_soak(990, 10));
    let figures = Figures::of(&report);
    let soak = figures.stability.as_ref().expect("a stability phase").step.clone();
    let near = |figure: Option<f64>, ms: f64| assert!((figure.unwrap() / ms - 1.0).abs() < 2e-3, "{soak:?}");
    near(soak.p50_ms, 200.0);
    near(soak.mean_ms, 248.0);
    near(soak.max_ms, 5_000.0);
    // The 990th of 1,000 is the last fast one: the histogram says so, and so does the figure.
    near(soak.p99_ms, 200.0);
    assert_eq!(soak.p99_ms, report.stability().unwrap().latency.quantile_ms(0.99));
    let summary = sentence::summary(&figures);
    assert!(summary.starts_with("P99 is 200\u{202f}ms"), "{summary}");
    assert!(!summary.contains("248"), "the mean is no headline: {summary}");

    // One slow answer more, and P99 shows it; the mean hardly moves.
    let figures = Figures::of(&read_back(with_soak(989, 11)));
    assert!(
        sentence::summary(&figures).starts_with("P99 is 5\u{202f}000\u{202f}ms"),
        "{}",
        sentence::summary(&figures)
    );
}

/// A report whose soak has these answers, the slow ones in every other second.
fn with_soak(fast: u64, slow: u64) -> Report {
    let mut report = Synthetic::default().report();
    let soak = report.phases.iter_mut().find(|phase| phase.kind == PhaseKind::Stability).expect("a stability phase");
    let step = &mut soak.steps[0];
    let seconds = step.slices.len() as u64;
    step.slices = (0..seconds)
        .map(|second| {
            let share = |of: u64| of * (second + 1) / seconds - of * second / seconds;
            let mut slice = Histogram::new();
            slice.record_n_us(200_000, share(fast));
            slice.record_n_us(5_000_000, share(slow));
            slice
        })
        .collect();
    step.latency = Histogram::merged(&step.slices);
    step.latency_censored = step.latency.clone();
    step.first_byte = step.latency.clone();
    step.outcomes = Outcomes { ok: fast + slow, ..Outcomes::default() };
    report
}

/// As a server or a later comparison sees it.
fn read_back(report: Report) -> Report {
    Report::from_json(report.to_json().as_bytes()).expect("a report")
}

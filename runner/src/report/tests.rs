//! What is printed, as it is printed.

use std::time::Duration;

use plimsoll_domain::finding::Finding;
use plimsoll_domain::noise::Noise;
use plimsoll_domain::plan::Profile;
use plimsoll_domain::policy::Policy;
use plimsoll_domain::report::{PhaseKind, Report, Status};
use plimsoll_domain::synthetic::Synthetic;
use plimsoll_domain::verdict::{Baseline, judge};
use serde_json::Value;

use super::paint::Paint;
use super::{comparison, summary, text};
use crate::progress::Live;

fn fits(text: &str) {
    for line in text.lines() {
        assert!(text::width(line) <= text::WIDTH, "{} columns: {line}", text::width(line));
    }
}

fn release(tag: &str, service_ms: f64) -> Report {
    Synthetic { tag: Some(tag.to_owned()), service_ms, ..Synthetic::default() }.report()
}

fn judged(baseline: &Report, candidate: &Report) -> String {
    let baseline = Baseline { runs: vec![baseline], chosen_because: None };
    let text =
        comparison::text(&judge(Some(&baseline), candidate, &Policy::default(), &Noise::default()), Paint::PLAIN);
    fits(&text);
    text
}

#[test]
fn a_run_leads_with_its_p99_and_marks_the_knee() {
    let text = summary::text(&release("v1.9.1", 56.0), Paint::PLAIN);
    fits(&text);
    insta::assert_snapshot!(text, @"
    P99 is 178 ms at 24 workers (P50 133 ms, no errors). Carries 179 TPS, 95 % of it
    from 10 workers on. One request alone takes 55.1 ms.

      workers     TPS  █ = 10 TPS               P50 ms  P95 ms  P99 ms  errors
            1    18.0  █▊                         55.1    68.0       –       0
            5    88.6  ████████▉                  55.9    67.7    73.6       0
            7     125  ████████████▌              55.3    68.0    75.4       0
            8     140  ██████████████             56.2    69.2    74.9       0
            9     162  ████████████████▏          55.2    66.6    71.7       0
           10     177  █████████████████▊ ←       56.0    67.9    73.0       0
           20     178  █████████████████▊          112     137     149       0
           50     177  █████████████████▊          281     343     373       0
          100     179  █████████████████▉          552     674     722       0
                      ← knee: 10 workers reach 95 % of the capacity, 179 TPS
                      – withheld: 288 requests, a P99 needs 662

    Capacity    179 TPS at 100 workers; the knee is at 10
    Stability   P99 178 ms (95 % interval 176 to 180), P95 163 ms, P50 133 ms, max
                217 ms, mean 134 ms; 179 TPS at 24 workers, as asked, over 47 s;
                none of 8 410 requests failed
    Alone       55.1 ms a request: one worker carries about 18.1 TPS (Little's law).
                X TPS need X × 0.0551 workers, X × 0.0716 with a margin of 30 %; for
                179 TPS that is 13.
    ");
}

#[test]
fn failures_and_findings_are_said() {
    let mut report = Synthetic { error_rate: 0.02, engine_cpu: 0.93, ..Synthetic::default() }.report();
    report.findings.push(Finding::notice("x", "A notice.").with_advice("Do something."));
    let text = summary::text(&report, Paint::PLAIN);
    fits(&text);
    insta::assert_snapshot!(text, @"
    ○ INVALID

    Not comparable. The load generator used 93 % of a core from 10 workers on, limit
    85 %: latency then measures the generator.

      workers     TPS  █ = 10 TPS               P50 ms  P95 ms  P99 ms  errors
            1    17.4  █▊                         55.1    68.7       –       7
            5    87.4  ████████▊                  55.6    67.5    72.8      24
           10     175  █████████████████▌         55.3    68.4    74.0      46
           20     177  █████████████████▋          111     135     147      49
           50     176  █████████████████▋          278     336     367      54
          100     174  █████████████████▌          556     673     734      66
                      – withheld: 279 requests, a P99 needs 662

    Stability   P99 176 ms (95 % interval 174 to 179), P95 162 ms, P50 133 ms, max
                222 ms, mean 134 ms; 176 TPS at 24 workers, as asked, over 47 s;
                1.65 % of 8 411 requests failed
    Alone       55.1 ms a request: one worker carries about 18.1 TPS (Little's law).
                X TPS need X × 0.0551 workers, X × 0.0717 with a margin of 30 %.
    Errors      staircase: http_5xx 246 of 12 374 requests
                stability: http_5xx 139 of 8 411 requests
    Invalid     The load generator used 93 % of a core from 10 workers on, limit
                85 %: latency then measures the generator. → Run it from a faster or
                a second host, or lower the load.
    Note        A notice. → Do something.
    ");
}

#[test]
fn one_capacity_step_claims_no_knee() {
    let report = Synthetic { profile: Profile::Pr, ..Synthetic::default() }.report();
    let text = summary::text(&report, Paint::PLAIN);
    fits(&text);
    assert!(text.contains("TPS at 20 workers: one step, which shows no knee"), "{text}");
    assert!(!text.contains("the knee is") && !text.contains('←'), "{text}");
    let json = summary::json(&report, std::path::Path::new("r.json"));
    assert_eq!((&json["capacity"]["workers"], &json["capacity"]["at_workers"]), (&Value::Null, &20.into()));
}

#[test]
fn an_interrupted_run_shows_what_there_is() {
    let mut report = release("v1.9.1", 56.0);
    report.status = Status::Interrupted;
    report.phases.truncate(1);
    report.load_choice = None;
    let text = summary::text(&report, Paint::PLAIN);
    fits(&text);
    insta::assert_snapshot!(text, @"
    ○ INTERRUPTED

    Stopped before its end: what was measured until then is kept.

      workers     TPS  █ = 1 TPS                P50 ms  P95 ms  P99 ms  errors
            1    18.0  ██████████████████         55.1    68.0       –       0
                      – withheld: 288 requests, a P99 needs 662

    Alone       55.1 ms a request: one worker carries about 18.1 TPS (Little's law).
                X TPS need X × 0.0551 workers, X × 0.0716 with a margin of 30 %.
    ");
    let json = summary::json(&report, std::path::Path::new("r.json"));
    assert_eq!((&json["status"], &json["valid"]), (&"interrupted".into(), &false.into()));
    assert!(json["stability"].is_null() && json["capacity"].is_null());
}

#[test]
fn the_document_has_the_names_that_programs_read() {
    let report = release("v1.9.1", 56.0);
    let json = summary::json(&report, std::path::Path::new("r.json"));
    for pointer in [
        "/schema",
        "/run_id",
        "/project",
        "/revision",
        "/status",
        "/valid",
        "/sentence",
        "/smoke/latency_ms",
        "/capacity/tps",
        "/capacity/workers",
        "/capacity/at_workers",
        "/capacity/lower_bound",
        "/stability/workers",
        "/stability/tps",
        "/stability/p50_ms",
        "/stability/p95_ms",
        "/stability/p99_ms",
        "/stability/max_ms",
        "/stability/error_rate",
        "/steps/0/workers",
        "/findings",
        "/report",
    ] {
        assert!(json.pointer(pointer).is_some_and(|value| !value.is_null()), "{pointer}: {json:#}");
    }
}

#[test]
fn a_regression_is_a_table_of_gated_metrics() {
    insta::assert_snapshot!(judged(&release("v1.9.1", 40.0), &release("v1.9.2", 62.0)), @"
    ▲ REGRESSED (provisional)

    P99 at 24 workers rose from 126 ms to 194 ms (+54 %, interval +47 to +62 %;
    allowed +10 %) against v1.9.1. Capacity fell from 249 TPS to 162 TPS (−35 %,
    interval −36 to −34 %; allowed −5 %).

      gated         v1.9.1 v1.9.2   change                      interval allowed
      P99 at 24, ms    126    194    +54 % worse            +47 to +62 %   +10 %
      capacity, TPS    249    162    −35 % worse            −36 to −34 %    −5 %
      error rate, %      0      0 0.000 pp within noise −0.023 to +0.035 +0.1 pp
      – capacity: the interval rests on 15 blocks of 1 s; from 20 on it would be
        narrower

      observed        v1.9.1  v1.9.2  change             interval
      P50, ms           95.3     147   +54 %  worse  +47 to +61 %
      P95, ms            115     179   +55 %  worse  +48 to +62 %
      max, ms            150     240   +60 %                    –
      stability, TPS     249     162   −35 %  worse  −36 to −34 %
      knee, workers       10      10   0.0 %                    –
      alone, ms         39.6    61.8   +56 %  worse  +48 to +65 %

    Note        How much runs of the same code differ on this testbed is learnt from
                0 unchanged pairs; 10 make a regression more than provisional. →
                Measure both revisions once more if the change is a surprise.
    ");
}

#[test]
fn what_spoiled_a_comparison_is_said_once() {
    let spoiled = Synthetic { engine_cpu: 0.93, ..Synthetic::default() }.report();
    let text = judged(&release("v1", 56.0), &spoiled);
    assert!(text.starts_with("○ INVALID\n"), "{text}");
    assert_eq!(text.matches("93\u{202f}% of a core").count(), 1, "{text}");
}

#[test]
fn names_of_any_length_and_no_baseline_fit() {
    let long = "release-candidate/2025-11-25-with-a-long-name";
    judged(&release(long, 40.0), &release(long, 40.2));
    let alone = judge(None, &release("v1", 40.0), &Policy::default(), &Noise::default());
    let text = comparison::text(&alone, Paint::PLAIN);
    fits(&text);
    assert!(text.starts_with("– NO BASELINE\n"), "{text}");
}

#[test]
fn the_live_line_fits_beside_the_bar() {
    let mut live = Live {
        phase: PhaseKind::Staircase,
        workers: 1_000,
        left: Some(Duration::from_secs(1_212)),
        done: 0.5,
        tps: Some(812.3),
        p50_ms: Some(1_234.5),
        p99_ms: Some(9_950.0),
        errors: 12,
    };
    let line = super::progress::live_line(&live);
    assert!(text::width(&line) <= text::WIDTH, "{line}");
    insta::assert_snapshot!(line, @"staircase 1 000 workers, 20 min left 812 TPS P50 1 230 ms P99 9 950 ms 12 errors");
    (live.tps, live.p50_ms, live.p99_ms, live.errors, live.workers) = (None, None, None, 1, 1);
    insta::assert_snapshot!(super::progress::live_line(&live), @"staircase 1 worker, 20 min left  – TPS  P50 – ms  P99 – ms  1 error");
    (live.left, live.phase) = (None, PhaseKind::Stability);
    assert!(super::progress::live_line(&live).starts_with("stability 1 worker, extending  "));
    (live.left, live.phase, live.workers) = (Some(Duration::from_secs(30)), PhaseKind::WarmUp, 0);
    let line = super::progress::live_line(&live).replace('\u{202f}', " ");
    assert!(line.starts_with("warm-up 30 s left  "), "{line}");
}

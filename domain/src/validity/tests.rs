use super::*;
use crate::finding::Severity;
use crate::report::PhaseKind;
use crate::synthetic::Synthetic;

fn healthy() -> Report {
    Synthetic { staircase: vec![10, 20], step_s: 6, stability_s: 10, ..Synthetic::default() }.report()
}

fn soak(report: &mut Report) -> &mut Step {
    let phase = report.phases.iter_mut().find(|phase| phase.kind == PhaseKind::Stability).unwrap();
    &mut phase.steps[0]
}

/// What is found after a change to the stability step.
fn after(change: impl FnOnce(&mut Step)) -> Vec<Finding> {
    let mut report = healthy();
    change(soak(&mut report));
    findings(&report)
}

#[test]
fn a_healthy_run_has_no_findings() {
    assert_eq!(findings(&healthy()), []);
}

#[test]
fn causes_outside_the_service_void_the_run_at_their_limit() {
    type Change = fn(&mut Step);
    let cases: [(&str, Change, Change); 6] = [
        ("engine_cpu", |s| s.generator.engine_cpu = Some(0.85), |s| s.generator.engine_cpu = Some(0.86)),
        ("host_cpu", |s| s.generator.host_cpu = Some(0.85), |s| s.generator.host_cpu = Some(0.93)),
        // The median is 134 ms: 5 % of it are 6.7 ms.
        ("timer_lag", |s| s.generator.timer_lag_p99_us = Some(6_500), |s| s.generator.timer_lag_p99_us = Some(7_000)),
        ("little", |s| s.completed.busy_us = s.completed.busy_us / 100 * 96, |s| s.completed.busy_us /= 2),
        ("little", |_| {}, |s| s.completed.busy_us = s.completed.busy_us / 100 * 107),
        (
            "client_resource",
            |s| s.outcomes.errors = [(ErrorKind::Reset, 9)].into(),
            |s| s.outcomes.errors = [(ErrorKind::ClientResource, 1)].into(),
        ),
    ];
    for (code, fine, bad) in cases {
        assert_eq!(after(fine), [], "{code}");
        let found = after(bad);
        assert_eq!(found.len(), 1, "{found:?}");
        assert_eq!((found[0].code.as_str(), found[0].severity), (code, Severity::Voids));
        assert!(found[0].message.contains("24 workers") && found[0].advice.is_some(), "{found:?}");
    }
}

#[test]
fn a_fast_service_allows_two_milliseconds_of_lag() {
    let mut report = Synthetic {
        service_ms: 1.0,
        pool: 1,
        stability_workers: 1,
        staircase: vec![2],
        step_s: 6,
        ..Synthetic::default()
    }
    .report();
    soak(&mut report).generator.timer_lag_p99_us = Some(1_900);
    assert_eq!(findings(&report), []);
    soak(&mut report).generator.timer_lag_p99_us = Some(2_100);
    assert_eq!(findings(&report)[0].code, "timer_lag");
}

#[test]
fn a_shared_host_may_be_full_and_is_told_to_split_its_cores() {
    let mut report = healthy();
    report.generator.shares_host = true;
    soak(&mut report).generator.host_cpu = Some(0.99);
    let found = findings(&report);
    assert_eq!((found.len(), found[0].severity), (1, Severity::Notice));
    assert!(found[0].advice.as_deref().unwrap().contains("split them"));
}

#[test]
fn the_smallest_load_past_the_limit_is_named_with_the_highest_value() {
    let mut report = healthy();
    let stairs = report.phases.iter_mut().find(|phase| phase.kind == PhaseKind::Staircase).unwrap();
    for step in &mut stairs.steps {
        step.generator.engine_cpu = Some(if step.workers == 20 { 0.97 } else { 0.88 });
    }
    assert!(findings(&report)[0].message.contains("97\u{202f}% of a core from 5 workers"), "{:?}", findings(&report));
}

#[test]
fn warm_up_and_checks_are_exempt() {
    let mut report = healthy();
    for step in report.phases.iter_mut().flat_map(|phase| &mut phase.steps) {
        if matches!(step.role, StepRole::WarmUp | StepRole::Check) {
            step.generator.engine_cpu = Some(1.0);
            step.outcomes.errors = [(ErrorKind::ClientResource, 3)].into();
            step.completed.busy_us = 0;
        }
    }
    assert_eq!(findings(&report), []);
}

#[test]
fn lost_keep_alive_and_cut_requests_are_notices() {
    let lost = after(|step| step.connections = step.outcomes.ok);
    assert_eq!((lost[0].code.as_str(), lost[0].severity), ("keep_alive_lost", Severity::Notice));
    // A service that lost a fifth of its connections during the ramp-up and the edges, which the measured part lacks.
    let edges = after(|step| {
        let all: u64 = step.windows.iter().map(|window| window.ok).sum();
        step.connections = u64::from(step.workers) + all / 5;
        assert!(all / 5 > step.outcomes.ok / 5 + 50, "{all} of {}", step.outcomes.ok);
    });
    assert_eq!(edges, []);
    let mut report = healthy();
    report.plan.service.keep_alive = false;
    soak(&mut report).connections = 10_000;
    assert_eq!(findings(&report), []);
    // Every refused connection is an error, not a lost keep-alive.
    assert_eq!(
        after(|step| {
            step.outcomes.errors = [(ErrorKind::ConnectRefused, 900)].into();
            step.connections = 924;
        }),
        []
    );
    let cut = after(|step| (step.outcomes.cut, step.oldest_cut_us) = (3, Some(61_000_000)));
    assert_eq!((cut[0].code.as_str(), cut[0].severity), ("cut", Severity::Notice));
    assert!(cut[0].message.contains("the oldest after 61.0\u{202f}s"), "{cut:?}");
}

#[test]
fn what_voids_comes_first() {
    let found = after(|step| {
        step.outcomes.cut = 1;
        step.generator.engine_cpu = Some(0.9);
    });
    assert_eq!(found.iter().map(|finding| finding.code.as_str()).collect::<Vec<_>>(), ["engine_cpu", "cut"]);
}

//! Whole runs against a small real server.

mod support;

use std::time::Duration;

use plimsoll_domain::figures::Figures;
use plimsoll_domain::report::{LoadChoice, PhaseKind, Status, StepRole};
use support::{Server, ok, run, spec};

#[tokio::test]
async fn a_run_finds_what_the_service_carries() {
    let server = Server::start(6, Duration::from_millis(10), |_| ok(r#"{"label":"positive"}"#));
    let report = run(spec(server.address)).await.unwrap();
    assert_eq!(report.status, Status::Complete);
    let kinds: Vec<_> = report.phases.iter().map(|phase| phase.kind).collect();
    assert_eq!(kinds, [PhaseKind::Smoke, PhaseKind::WarmUp, PhaseKind::Staircase, PhaseKind::Stability]);
    let figures = Figures::of(&report);
    for step in &figures.steps {
        println!(
            "{:?} {} tps {:?} p50 {:?} n {} little {:?} conns {} lag {:?}",
            step.role,
            step.workers,
            step.tps,
            step.p50_ms,
            step.requests,
            step.little_deviation,
            step.connections,
            step.engine_cpu
        );
    }
    println!("{:?}", figures.capacity);
    println!(
        "{:#?}",
        report.stability().map(|s| (
            &s.windows,
            &s.slices,
            s.duration_ms,
            s.measured_from_ms,
            s.measured_to_ms,
            &s.generator
        ))
    );
    let _ = (LoadChoice::OwnKnee, StepRole::Soak);
}

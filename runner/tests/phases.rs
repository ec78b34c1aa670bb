//! Whole runs against a small real server.

mod support;

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use plimsoll_domain::figures::Figures;
use plimsoll_domain::outcome::ErrorKind;
use plimsoll_domain::plan::{Assertion, Profile};
use plimsoll_domain::report::{LoadChoice, PhaseKind, Report, Status, StepRole};
use plimsoll_runner::phases::{self, Cause};
use plimsoll_runner::progress::Event;
use plimsoll_runner::spec::PinnedLoad;
use serde_json::json;
use support::{Reply, Server, ok, run, spec, status};
use tokio::sync::watch;

/// The roles and workers of a phase's steps.
fn steps(report: &Report, kind: PhaseKind) -> Vec<(StepRole, u32)> {
    let phase = report.phase(kind).map_or(&[][..], |phase| &phase.steps);
    phase.iter().map(|step| (step.role, step.workers)).collect()
}

#[tokio::test]
async fn a_run_finds_what_the_service_carries() {
    // 6 at a time, 20 ms each: 300 TPS from 6 workers on.
    let server = Server::start(6, Duration::from_millis(20), |_| ok(r#"{"label":"positive"}"#));
    let report = run(spec(server.address)).await.unwrap();
    assert_eq!(report.status, Status::Complete);
    let kinds: Vec<_> = report.phases.iter().map(|phase| phase.kind).collect();
    assert_eq!(kinds, [PhaseKind::Smoke, PhaseKind::WarmUp, PhaseKind::Staircase, PhaseKind::Stability]);
    assert_eq!(steps(&report, PhaseKind::Smoke), [(StepRole::Check, 1), (StepRole::Single, 1)]);
    let climbed = steps(&report, PhaseKind::Staircase);
    assert_eq!(climbed[..3], [(StepRole::Planned, 2), (StepRole::Planned, 4), (StepRole::Beyond, 8)]);
    let figures = Figures::of(&report);
    let capacity = figures.capacity.unwrap();
    // Loose, since other tests share the machine; accuracy has tests of its own.
    assert!((200.0..310.0).contains(&capacity.tps) && !capacity.lower_bound, "{capacity:?}");
    assert!((4..=8).contains(&capacity.workers), "{capacity:?}");
    assert_eq!(report.load_choice, Some(LoadChoice::OwnKnee));
    assert_eq!(report.stability().unwrap().workers, (f64::from(capacity.workers) * 0.75).round() as u32);
    for step in figures.steps.iter().chain(figures.stability.iter().map(|stability| &stability.step)) {
        assert_eq!(step.error_rate, Some(0.0), "{} workers", step.workers);
        assert!(step.little_deviation.unwrap().abs() < 0.05, "{} workers: {:?}", step.workers, step.little_deviation);
    }
    // One connection a worker, kept: no more than one per worker that was ever added.
    let opened: u64 = report.phases.iter().flat_map(|phase| &phase.steps).map(|step| step.connections).sum();
    assert_eq!(opened, server.connections.load(Ordering::Relaxed));
}

#[tokio::test]
async fn cold_answers_stay_out_of_the_figures() {
    let server = Server::start(50, Duration::ZERO, |seen| {
        // The first answers of the service are slow, whoever asks.
        std::thread::sleep(Duration::from_millis(if seen.number < 12 { 60 } else { 1 }));
        ok("{}")
    });
    let report = run(spec(server.address)).await.unwrap();
    let check = &report.phase(PhaseKind::Smoke).unwrap().steps[0];
    assert!(check.latency.max_ms().unwrap() >= 60.0);
    let smoke = Figures::of(&report).smoke.unwrap();
    assert!(smoke.latency_ms < 30.0, "{smoke:?}");
    let slow = report.stability().unwrap().latency.bins().filter(|(us, _)| *us > 300_000).count();
    assert_eq!(slow, 0);
}

#[tokio::test]
async fn a_smoke_phase_that_fails_says_what_went_over_the_wire() {
    let server =
        Server::start(
            10,
            Duration::ZERO,
            |seen| if seen.number == 1 { status(500, "no such shape") } else { ok("{}") },
        );
    let mut plan = spec(server.address);
    plan.requests.bodies = vec![b"{\"a\":1}".to_vec(), b"{\"b\":2}".to_vec(), b"{}".to_vec()];
    let error = run(plan).await.unwrap_err();
    assert_eq!(error.cause, Cause::Service);
    assert_eq!(
        error.message,
        format!(
            "Request 2 of 3, POST http://{}/predict, failed in the smoke phase: status 500 instead of 200; the body is \
             no such shape. Sent: {{\"b\":2}}",
            server.address
        )
    );
    assert_eq!(error.advice.as_deref(), Some("The service fails on this request: its own log says why."));
    let report = error.report.unwrap();
    report.check().unwrap();
    assert_eq!(report.status, Status::Failed);
    assert_eq!(report.phases[0].steps[0].outcomes.errors[&ErrorKind::Http5xx], 1);
}

#[tokio::test]
async fn a_wrong_output_ends_the_run_and_so_does_nobody() {
    let server = Server::start(10, Duration::ZERO, |_| ok(r#"{"label":"negative"}"#));
    let mut plan = spec(server.address);
    plan.plan.workload.expect.json.insert("/label".to_owned(), Assertion::Equals(json!("positive")));
    let error = run(plan).await.unwrap_err();
    assert!(error.message.contains(r#"/label is "negative", expected "positive""#), "{}", error.message);

    let listener = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
    let address = listener.local_addr().unwrap();
    drop(listener);
    let error = run(spec(address)).await.unwrap_err();
    assert_eq!(error.cause, Cause::Service);
    assert!(error.message.contains(&format!("cannot connect to {address}")), "{}", error.message);
    assert_eq!(error.advice.as_deref(), Some("Start the service, or correct `url` in `[service]`."));

    // It waits for the end of a request, which a TLS greeting never has.
    let server = Server::start(10, Duration::ZERO, |_| ok("{}"));
    let mut plan = spec(server.address);
    plan.requests.url = format!("https://{}/predict", server.address).parse().unwrap();
    let error = run(plan).await.unwrap_err();
    assert!(error.message.contains("no TLS handshake within 1000 ms"), "{}", error.message);

    let mut plan = spec(address);
    plan.requests.url = "http://no-such-host.invalid/predict".parse().unwrap();
    let error = run(plan).await.unwrap_err();
    assert!(error.message.contains("cannot resolve no-such-host.invalid"), "{}", error.message);
}

#[tokio::test]
async fn a_stop_keeps_what_was_measured() {
    let server = Server::start(10, Duration::from_millis(2), |_| ok("{}"));
    let mut plan = spec(server.address);
    plan.plan.phases.staircase.step_ms = 60_000;
    let (stop, stopped) = watch::channel(false);
    let mut ticks = 0;
    let mut observer = |event: Event<'_>| match event {
        Event::Tick(live) if live.phase == PhaseKind::Staircase => {
            ticks += 1;
            assert!(live.left > Some(Duration::from_secs(60)) && (0.0..0.5).contains(&live.done), "{live:?}");
            assert!(live.tps.is_some() && live.p50_ms.is_some() && live.errors == 0, "{live:?}");
            let _ = stop.send(true);
        }
        _ => {}
    };
    let report = phases::run(plan, &mut observer, stopped).await.unwrap();
    report.check().unwrap();
    assert!(report.status == Status::Interrupted && ticks > 0, "{:?} after {ticks} ticks", report.status);
    assert!(report.smoke().is_some() && !report.is_valid());
    let step = &report.phase(PhaseKind::Staircase).unwrap().steps[0];
    assert!(step.duration_ms < 30_000, "{} ms", step.duration_ms);
    assert_eq!(report.stability(), None);
}

#[tokio::test]
async fn a_soak_that_extends_itself_tells_no_time_left() {
    let server = Server::start(10, Duration::from_millis(50), |_| ok("{}"));
    let mut plan = spec(server.address);
    plan.plan.phases.staircase.workers = vec![1];
    plan.plan.phases.staircase.search = false;
    plan.plan.phases.stability.workers = Some(1);
    // Far too few answers for a P99: it takes twice as long.
    plan.plan.phases.stability.duration_ms = 3_000;
    let mut left = Vec::new();
    let mut observer = |event: Event<'_>| {
        if let Event::Tick(live) = event
            && live.phase == PhaseKind::Stability
        {
            left.push(live.left);
        }
    };
    let (_stop, stopped) = watch::channel(false);
    let report = phases::run(plan, &mut observer, stopped).await.unwrap();
    assert!(report.stability().unwrap().duration_ms > 5_000);
    let known = left.iter().take_while(|left| left.is_some()).count();
    assert!((1..left.len()).contains(&known), "{left:?}");
}

#[tokio::test]
async fn each_finished_phase_is_told_as_it_will_stand_in_the_report() {
    let server = Server::start(10, Duration::from_millis(2), |_| ok("{}"));
    let (_stop, stopped) = watch::channel(false);
    let mut told: Vec<Report> = Vec::new();
    let mut observer = |event: Event<'_>| {
        if let Event::Partial(report) = event {
            told.push(report.clone());
        }
    };
    let report = phases::run(spec(server.address), &mut observer, stopped).await.unwrap();
    assert_eq!(told.iter().map(|partial| partial.phases.len()).collect::<Vec<_>>(), [1, 2, 3, 4]);
    for partial in &told {
        assert_eq!((partial.status, partial.run_id), (Status::Interrupted, report.run_id));
        assert_eq!(partial.phases, report.phases[..partial.phases.len()]);
        assert_eq!(&Report::from_json(partial.to_json().as_bytes()).unwrap(), partial);
    }
    assert_eq!((told[2].load_choice, told[3].load_choice), (Some(LoadChoice::OwnKnee), report.load_choice));
}

#[tokio::test]
async fn a_service_that_dies_ends_the_run_and_is_said_to_have() {
    let dead = Arc::new(AtomicBool::new(false));
    let answer = dead.clone();
    let server = Server::start(10, Duration::from_millis(2), move |_| {
        if answer.load(Ordering::Relaxed) { Reply::Reset(String::new()) } else { ok("{}") }
    });
    let (_stop, stopped) = watch::channel(false);
    let mut remarks = Vec::new();
    let mut observer = |event: Event<'_>| match event {
        Event::PhaseFinished { phase: PhaseKind::WarmUp, .. } => dead.store(true, Ordering::Relaxed),
        Event::Remark(remark) => remarks.push(remark.to_owned()),
        _ => {}
    };
    let mut plan = spec(server.address);
    plan.plan.service.response_timeout_ms = 500;
    let report = phases::run(plan, &mut observer, stopped).await.unwrap();
    let [remark] = &remarks[..] else { panic!("{remarks:?}") };
    assert!(
        remark.starts_with("no request succeeded at 2 workers: waiting for the open ones, at most 2 s"),
        "{remark}"
    );
    report.check().unwrap();
    assert_eq!(report.status, Status::Failed);
    let found = report.findings.iter().find(|finding| finding.code == "service_gone").unwrap();
    assert!(found.message.starts_with("the service stopped answering at 2 workers: "), "{}", found.message);
    assert!(found.message.contains("× reset"), "{}", found.message);
    assert!(report.died_under_load().is_some() && !report.is_valid());
    assert_eq!(steps(&report, PhaseKind::Staircase), [(StepRole::Planned, 2)]);
}

#[tokio::test]
async fn an_overloaded_service_that_answers_when_left_alone_is_measured_on() {
    let server =
        Server::start(
            50,
            Duration::from_millis(5),
            |seen| {
                if seen.open > 10 { status(503, "too many") } else { ok("{}") }
            },
        );
    let mut plan = spec(server.address);
    plan.plan.phases.staircase.workers = vec![2, 4, 16, 32];
    plan.plan.phases.staircase.ramp_up_ms = 0;
    plan.plan.phases.staircase.search = false;
    plan.pinned = Some(PinnedLoad { workers: 2, choice: LoadChoice::Pinned, capacity_workers: None });
    let report = run(plan).await.unwrap();
    assert_eq!((report.status, report.load_choice), (Status::Complete, Some(LoadChoice::Pinned)));
    // 32 would tell nothing that 16 has not told.
    assert_eq!(steps(&report, PhaseKind::Staircase).last(), Some(&(StepRole::Planned, 16)));
    let overloaded = report.phase(PhaseKind::Staircase).unwrap().steps.last().unwrap();
    assert_eq!((overloaded.outcomes.ok, overloaded.outcomes.error_rate()), (0, Some(1.0)));
    assert_eq!(report.stability().unwrap().outcomes.error_rate(), Some(0.0));
    assert_eq!(Figures::of(&report).capacity.unwrap().workers, 4);
}

#[tokio::test]
async fn the_pr_profile_measures_the_known_capacity_only() {
    let server = Server::start(6, Duration::from_millis(5), |_| ok("{}"));
    let mut plan = spec(server.address);
    plan.plan.profile = Profile::Pr;
    plan.pinned = Some(PinnedLoad { workers: 4, choice: LoadChoice::Baseline, capacity_workers: Some(8) });
    let report = run(plan).await.unwrap();
    assert_eq!(steps(&report, PhaseKind::Staircase), [(StepRole::Capacity, 8)]);
    assert_eq!(steps(&report, PhaseKind::WarmUp), [(StepRole::WarmUp, 1), (StepRole::WarmUp, 8)]);
    assert_eq!((report.stability().unwrap().workers, report.load_choice), (4, Some(LoadChoice::Baseline)));
    assert!(!Figures::of(&report).capacity.unwrap().lower_bound);
}

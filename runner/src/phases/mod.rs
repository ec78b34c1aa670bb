//! What runs when: smoke, warm-up, staircase, stability.
//!
//! Workers are never drained between steps. A step whose requests all failed does not end the run by itself: the workers
//! rest, and requests alone decide whether the service was overloaded (the search goes on below) or is gone (the run ends
//! with status `failed` and says so).

mod error;
mod host_cpu;
mod session;
mod setup;
mod smoke;
mod stability;
mod stable;
mod staircase;
mod warm_up;

use std::time::Duration;

use jiff::Timestamp;
use plimsoll_domain::finding::Finding;
use plimsoll_domain::format::workers;
use plimsoll_domain::outcome::ErrorKind;
use plimsoll_domain::percentile::MIN_FOR_P99;
use plimsoll_domain::report::{Generator, Report, SCHEMA, SERVICE_GONE, Status, Step};
use plimsoll_domain::validity;
use tokio::sync::watch;

use crate::load::{Clock, Engine};
use crate::progress::{Event, Observer};
use crate::spec::RunSpec;
use session::{Halt, Session};

pub use error::{Cause, RunError};

/// Carries out one run. The observer hears what is measured so far whenever a phase has finished. `stop` turning true ends it cleanly: the report then has status `interrupted` and holds what
/// was measured until then. A run during which the service stops answering altogether has status `failed`.
///
/// # Errors
/// The smoke phase failed (unreachable service, wrong status, wrong output), the plan asks for something that cannot be
/// sent, or the engine could not start.
pub async fn run(
    spec: RunSpec,
    observer: &mut (dyn Observer + Send),
    mut stop: watch::Receiver<bool>,
) -> Result<Report, RunError> {
    let started_at = Timestamp::now();
    let setup = tokio::select! {
        setup = setup::prepare(&spec) => setup?,
        () = session::stopped(&mut stop) => {
            return Ok(draft(&spec, started_at, false));
        }
    };
    let clock = Clock::start();
    let engine = Engine::start(setup.target, setup.transport, clock)
        .map_err(|error| RunError::new(Cause::Ours, format!("the load engine could not start: {error}")))?;
    let mut session = Session::new(engine, clock, observer, stop, draft(&spec, started_at, setup.shares_host));
    let halt = all_phases(&mut session, &spec).await.err();
    let mut report = session.close().await.map_err(|gone| RunError::new(Cause::Ours, gone.to_string()))?;
    report.status = match &halt {
        None => Status::Complete,
        Some(Halt::Stopped) => Status::Interrupted,
        Some(_) => Status::Failed,
    };
    match halt {
        Some(Halt::Engine(gone)) => {
            let error = RunError::new(Cause::Ours, gone.to_string());
            return Err(RunError { report: Some(Box::new(report)), ..error });
        }
        Some(Halt::Smoke(error)) => return Err(RunError { report: Some(Box::new(report)), ..*error }),
        Some(Halt::ServiceGone(message)) => report.findings.push(
            Finding::notice(SERVICE_GONE, message)
                .with_advice("The run stopped there: see in the service's own log what ended it."),
        ),
        Some(Halt::Stopped) | None => {}
    }
    let judged = validity::findings(&report);
    report.findings.extend(judged);
    report.findings.iter().for_each(|finding| observer.observe(Event::Found(finding)));
    Ok(report)
}

async fn all_phases(session: &mut Session<'_>, spec: &RunSpec) -> Result<(), Halt> {
    let after_warm_up = staircase::expected(spec) + stability::expected(spec);
    smoke::run(session, spec, warm_up::expected(spec) + after_warm_up).await?;
    warm_up::run(session, spec, after_warm_up).await?;
    let capacity = staircase::run(session, spec).await?;
    let (workers, choice) = stability::load(spec, capacity);
    session.chose(choice);
    stability::run(session, spec, workers).await?;
    // The last requests are followed to their end, or to their timeout.
    session.rest(longest_request(spec)).await?;
    Ok(())
}

/// The report before anything is measured.
fn draft(spec: &RunSpec, started_at: Timestamp, shares_host: bool) -> Report {
    Report {
        schema: SCHEMA,
        run_id: spec.run_id,
        project: spec.project.clone(),
        revision: spec.revision.clone(),
        testbed: spec.testbed.clone(),
        plan_digest: spec.plan.digest(),
        plan: spec.plan.clone(),
        generator: Generator {
            name: "plimsoll".to_owned(),
            version: env!("CARGO_PKG_VERSION").to_owned(),
            shares_host,
        },
        started_at,
        finished_at: Timestamp::now().max(started_at),
        status: Status::Interrupted,
        load_choice: None,
        phases: Vec::new(),
        findings: Vec::new(),
    }
}

/// Enough successes to show a P99 and a throughput.
fn enough_for_p99(workers: u32) -> u64 {
    MIN_FOR_P99.max(enough_for_tps(workers))
}

/// Enough successes for a throughput: completions come in up to one burst of all workers, so with twenty rounds the
/// edges of the measured part decide about 5 % at most.
fn enough_for_tps(workers: u32) -> u64 {
    20 * u64::from(workers)
}

/// Successes that were issued or completed in the step's measured part, so far.
fn successes(step: &Step) -> u64 {
    step.outcomes.ok.max(step.completed.ok)
}

/// How long a request takes until it has failed, if it never ends.
fn longest_request(spec: &RunSpec) -> Duration {
    let service = &spec.plan.service;
    Duration::from_millis(service.connect_timeout_ms + service.response_timeout_ms)
}

/// After a step without a success: lets the workers rest and asks alone, for long enough that a queue of requests which
/// nobody waits for any more can drain.
async fn still_alive(session: &mut Session<'_>, spec: &RunSpec, step: &Step) -> Result<(), Halt> {
    session.remark(&format!(
        "no request succeeded at {}: waiting for the open ones, at most {:.0} s, then asking alone",
        workers(step.workers),
        longest_request(spec).as_secs_f64().ceil()
    ));
    session.rest(longest_request(spec)).await?;
    let timeout_ms = spec.plan.service.response_timeout_ms;
    let patience = Duration::from_millis((2 * timeout_ms).clamp(2_000, 30_000));
    let until = session.elapsed() + patience;
    loop {
        if session.probe(0).await?.result.is_ok() {
            return Ok(());
        }
        if session.elapsed() >= until {
            return Err(service_gone(step));
        }
        session.pass(Duration::from_millis(100)).await?;
    }
}

fn service_gone(step: &Step) -> Halt {
    let kinds: Vec<String> = step
        .outcomes
        .errors
        .iter()
        .map(|(kind, count): (&ErrorKind, &u64)| format!("{count} × {}", kind.name()))
        .collect();
    let how = if kinds.is_empty() { "no request ended".to_owned() } else { kinds.join(", ") };
    Halt::ServiceGone(format!("the service stopped answering at {}: {how}", workers(step.workers)))
}

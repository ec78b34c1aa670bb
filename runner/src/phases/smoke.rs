//! Smoke: every request shape once, outputs checked; then one worker, measured.

use std::time::Duration;

use plimsoll_domain::outcome::ErrorKind;
use plimsoll_domain::report::{PhaseKind, StepRole};

use super::error::{Cause, RunError};
use super::session::{Halt, Session, measured, open_ended};
use super::stable::is_stable;
use super::{service_gone, successes};
use crate::protocol::Fault;
use crate::spec::RunSpec;

/// The first answers of a cold service do not belong to the single-request latency: so many requests at most are spent
/// on waiting until it is stable.
const MAX_SETTLING: usize = 30;
/// The median of fewer would say little; the step extends itself to get there.
const MIN_SINGLE: u64 = 20;

/// The one-worker step. The run goes on for about `after` when the phase is over.
pub(super) async fn run(session: &mut Session<'_>, spec: &RunSpec, after: Duration) -> Result<(), Halt> {
    let length_ms = spec.plan.phases.smoke.duration_ms;
    session.start_phase(PhaseKind::Smoke);
    session.expect(Duration::from_millis(length_ms) + after);
    session.begin(open_ended(StepRole::Check, 1, 0, true), 0).await?;
    let checked = check(session, spec).await;
    let ended = session.end_step().await;
    checked?;
    ended?;
    session.expect(after);
    let single = session.bounded(spec, after, measured(StepRole::Single, 1, length_ms, 0, MIN_SINGLE));
    let step = session.step(single).await?;
    session.finish_phase();
    if successes(&step) == 0 { Err(service_gone(&step)) } else { Ok(()) }
}

async fn check(session: &mut Session<'_>, spec: &RunSpec) -> Result<(), Halt> {
    let shapes = spec.requests.bodies.len() as u64;
    let mut latencies = Vec::new();
    for number in 0..shapes {
        let probe = session.probe(number).await?;
        if let Err(fault) = probe.result {
            return Err(Halt::Smoke(Box::new(failed(spec, number, &fault))));
        }
        latencies.push(probe.latency);
    }
    let until = session.elapsed() + Duration::from_millis(spec.plan.phases.warm_up.max_duration_ms);
    let most = latencies.len() + MAX_SETTLING;
    while !is_stable(&latencies) && latencies.len() < most && session.elapsed() < until {
        // What fails now is counted in the step's outcomes; every shape has been answered rightly once.
        let number = latencies.len() as u64;
        latencies.push(session.probe(number).await?.latency);
    }
    Ok(())
}

/// What was sent where, what came back, what to do.
fn failed(spec: &RunSpec, number: u64, fault: &Fault) -> RunError {
    let service = &spec.plan.service;
    let to = format!("{} {}{}", service.method, service.origin, service.path);
    let shapes = spec.requests.bodies.len();
    let which = if shapes > 1 { format!("Request {} of {shapes}", number + 1) } else { "The request".to_owned() };
    let body = spec.requests.bodies.get(number as usize).map_or(&[][..], Vec::as_slice);
    let sent = if body.is_empty() { String::new() } else { format!(" Sent: {}", crate::protocol::excerpt(body)) };
    let message = format!("{which}, {to}, failed in the smoke phase: {}.{sent}", fault.reason);
    let cause = if fault.kind.is_ours() { Cause::Ours } else { Cause::Service };
    RunError::new(cause, message).with_advice(advice(fault.kind))
}

fn advice(kind: ErrorKind) -> &'static str {
    match kind {
        ErrorKind::ClientResource => "This machine ran out of sockets, ports or file handles: see `ulimit -n`.",
        ErrorKind::ConnectRefused => "Start the service, or correct `url` in `[service]`.",
        ErrorKind::ConnectTimeout => {
            "Check `url` in `[service]` and what lies between this machine and the service, or raise `connect_timeout`."
        }
        ErrorKind::Dns => "Check `url` in `[service]`, and that this machine can resolve the name.",
        ErrorKind::Tls => "Check the service's certificate and that `url` in `[service]` should be https.",
        ErrorKind::ResponseTimeout => {
            "See why the service does not answer, or raise `response_timeout` in `[service]`."
        }
        ErrorKind::Http429 => "The service limits the rate of requests: exempt the load test.",
        ErrorKind::Http4xx => "Check `url`, `method` and `headers` in `[service]` and the body in `[workload]`.",
        ErrorKind::Http5xx => "The service fails on this request: its own log says why.",
        ErrorKind::BadOutput => "Correct the service, or what `[workload]` expects of it.",
        ErrorKind::Reset | ErrorKind::StreamError | ErrorKind::StreamTruncated => {
            "The service broke the exchange off, or does not speak HTTP/1.1 there: its own log says why."
        }
    }
}

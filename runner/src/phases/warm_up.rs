//! Warm-up: requests until latency is stable, then a moment at the highest concurrency. It enters no figure.

use std::time::Duration;

use plimsoll_domain::plan::Profile;
use plimsoll_domain::report::{PhaseKind, StepRole};

use super::session::{Halt, Session, open_ended};
use super::stable::is_stable;
use super::{still_alive, successes};
use crate::spec::RunSpec;

/// How long to wait between looks at whether the highest concurrency answers at all.
const LOOK: Duration = Duration::from_millis(500);

/// How long the phase takes at least.
pub(super) fn expected(spec: &RunSpec) -> Duration {
    Duration::from_millis(spec.plan.phases.warm_up.top_ms)
}

/// The run goes on for about `after` when the phase is over.
pub(super) async fn run(session: &mut Session<'_>, spec: &RunSpec, after: Duration) -> Result<(), Halt> {
    let plan = &spec.plan.phases.warm_up;
    session.start_phase(PhaseKind::WarmUp);
    session.expect(expected(spec) + after);
    let longest = Duration::from_millis(plan.max_duration_ms);
    let until = session.elapsed() + longest;
    session.begin(open_ended(StepRole::WarmUp, 1, 0, true), 0).await?;
    let mut latencies = Vec::new();
    while (latencies.len() < plan.min_requests as usize || !is_stable(&latencies)) && session.elapsed() < until {
        latencies.push(session.probe(latencies.len() as u64).await?.latency);
    }
    session.end_step().await?;

    let workers = highest(spec);
    let top = expected(spec);
    session.expect(after);
    session.begin(open_ended(StepRole::WarmUp, workers, plan.top_ms / 4, false), plan.top_ms).await?;
    let until = session.elapsed() + top.max(longest);
    session.pass(top).await?;
    // A cold service may need longer for its first answer at this concurrency.
    while session.recent().tps.is_none() && session.elapsed() < until {
        session.pass(LOOK).await?;
    }
    let step = session.end_step().await?;
    session.finish_phase();
    if successes(&step) == 0 { still_alive(session, spec, &step).await } else { Ok(()) }
}

/// The most workers that a planned step of this run will have.
fn highest(spec: &RunSpec) -> u32 {
    let phases = &spec.plan.phases;
    let staircase = phases.staircase.workers.iter().copied().max().unwrap_or(1);
    match spec.pinned {
        Some(pinned) => match (spec.plan.profile, pinned.capacity_workers) {
            (Profile::Pr, Some(capacity)) => pinned.workers.max(capacity),
            _ => staircase.max(pinned.workers),
        },
        None => staircase.max(phases.stability.workers.unwrap_or(1)),
    }
}

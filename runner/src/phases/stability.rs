//! Stability: one load, held for long.

use std::time::Duration;

use plimsoll_domain::knee::Capacity;
use plimsoll_domain::report::{LoadChoice, PhaseKind, StepRole};

use super::session::{Halt, Session, measured};
use super::{enough_for_p99, still_alive, successes};
use crate::load::ramp_up_ms;
use crate::spec::RunSpec;

/// The workers of the soak, and why so many.
pub(super) fn load(spec: &RunSpec, capacity: Option<Capacity>) -> (u32, LoadChoice) {
    let plan = &spec.plan.phases.stability;
    match (spec.pinned, plan.workers) {
        (Some(pinned), _) => (pinned.workers, pinned.choice),
        (None, Some(workers)) => (workers, LoadChoice::Plan),
        (None, None) => {
            let knee = capacity.map_or(1, |found| found.workers);
            let share = (f64::from(knee) * plan.knee_fraction).round().max(1.0);
            (share as u32, LoadChoice::OwnKnee)
        }
    }
}

/// How long the phase takes as planned.
pub(super) fn expected(spec: &RunSpec) -> Duration {
    Duration::from_millis(spec.plan.executed_stability_ms())
}

pub(super) async fn run(session: &mut Session<'_>, spec: &RunSpec, workers: u32) -> Result<(), Halt> {
    let plan = &spec.plan.phases.stability;
    session.start_phase(PhaseKind::Stability);
    session.expect(Duration::ZERO);
    let length_ms = spec.plan.executed_stability_ms();
    let soak =
        measured(StepRole::Soak, workers, length_ms, ramp_up_ms(plan.ramp_up_ms, length_ms), enough_for_p99(workers));
    let step = session.step(session.bounded(spec, Duration::ZERO, soak)).await?;
    session.finish_phase();
    // Alive, it has failed every request of the soak: that is judged.
    if successes(&step) == 0 { still_alive(session, spec, &step).await } else { Ok(()) }
}

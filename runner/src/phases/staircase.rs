//! Staircase: rising workers, then the search for plateau and knee.

use std::time::Duration;

use plimsoll_domain::figures;
use plimsoll_domain::knee::{self, Capacity, Point};
use plimsoll_domain::plan::{Profile, Staircase};
use plimsoll_domain::report::{PhaseKind, Step, StepRole};

use super::session::{Halt, Session, measured};
use super::{enough_for_p99, enough_for_tps, still_alive, successes};
use crate::load::ramp_up_ms;
use crate::spec::RunSpec;

/// The search ends by itself long before; a defect in it must not keep a service under load.
const MAX_STEPS: usize = 60;
/// How many bisecting steps are expected when the time left is estimated.
const EXPECTED_BISECTS: u64 = 3;

/// Where the capacity lies, as far as the steps say; `None` when no step answered.
pub(super) async fn run(session: &mut Session<'_>, spec: &RunSpec) -> Result<Option<Capacity>, Halt> {
    session.start_phase(PhaseKind::Staircase);
    let mut climb = Climb { session, spec };
    match planned_capacity(spec) {
        Some(workers) => {
            let step = spec.plan.executed_step_ms();
            climb.step(StepRole::Capacity, workers, step, 0).await?;
        }
        None => climb.all().await?,
    }
    let found = climb.capacity();
    session.finish_phase();
    Ok(found)
}

/// How long the phase takes as planned.
pub(super) fn expected(spec: &RunSpec) -> Duration {
    let plan = &spec.plan.phases.staircase;
    if planned_capacity(spec).is_some() {
        return Duration::from_millis(spec.plan.executed_step_ms());
    }
    Duration::from_millis(plan.step_ms * plan.workers.len() as u64 + search_ms(plan))
}

/// Of the `pr` profile, when the baseline's capacity is known: one step instead of all.
fn planned_capacity(spec: &RunSpec) -> Option<u32> {
    spec.pinned.filter(|_| spec.plan.profile == Profile::Pr)?.capacity_workers
}

fn search_ms(plan: &Staircase) -> u64 {
    if plan.search { EXPECTED_BISECTS * plan.search_step_ms } else { 0 }
}

struct Climb<'a, 'b> {
    session: &'a mut Session<'b>,
    spec: &'a RunSpec,
}

impl Climb<'_, '_> {
    fn plan(&self) -> &Staircase {
        &self.spec.plan.phases.staircase
    }

    async fn all(&mut self) -> Result<(), Halt> {
        let plan = self.plan().clone();
        for (i, workers) in plan.workers.iter().enumerate() {
            let ahead = plan.step_ms * (plan.workers.len() - i - 1) as u64 + search_ms(&plan);
            if !self.step(StepRole::Planned, *workers, plan.step_ms, ahead).await? {
                // It answers one request but none of this many: higher steps would tell nothing.
                break;
            }
        }
        if !plan.search {
            return Ok(());
        }
        let ahead = search_ms(&plan);
        while let Some(workers) = self.next(|points| knee::beyond(points, plan.max_workers)) {
            self.step(StepRole::Beyond, workers, plan.step_ms, ahead).await?;
        }
        while let Some(workers) = self.next(knee::bisect) {
            self.step(StepRole::Bisect, workers, plan.search_step_ms, 0).await?;
        }
        Ok(())
    }

    /// Carries out a step; false when nothing succeeded in it, although the service still answers when left alone.
    async fn step(&mut self, role: StepRole, workers: u32, length_ms: u64, ahead_ms: u64) -> Result<bool, Halt> {
        let planned = matches!(role, StepRole::Planned | StepRole::Capacity);
        // Only the planned steps show a P99; the search asks about throughput.
        let enough = if planned { enough_for_p99(workers) } else { enough_for_tps(workers) };
        let ramp = ramp_up_ms(self.plan().ramp_up_ms, length_ms);
        let after = Duration::from_millis(ahead_ms) + super::stability::expected(self.spec);
        self.session.expect(after);
        let plan = self.session.bounded(self.spec, after, measured(role, workers, length_ms, ramp, enough));
        let step = self.session.step(plan).await?;
        let answered = successes(&step) > 0;
        if !answered {
            still_alive(self.session, self.spec, &step).await?;
        }
        Ok(answered)
    }

    fn next(&self, question: impl Fn(&[Point]) -> Option<u32>) -> Option<u32> {
        let points = self.points();
        question(&points).filter(|_| points.len() < MAX_STEPS)
    }

    /// The one-worker step and what has been climbed, by their final figures where there are any: in a summary at the end
    /// of a step its last requests are missing, the slow ones and the failures among them.
    fn points(&self) -> Vec<Point> {
        let counts = |step: &&Step| !matches!(step.role, StepRole::Check | StepRole::WarmUp | StepRole::Soak);
        let steps: Vec<&Step> = self.session.steps().filter(counts).collect();
        figures::points(&steps, self.plan().max_error_rate)
    }

    /// Without a step inside the error limit the knee is looked for among all: the soak still has to run somewhere, and
    /// its error rate is judged there.
    fn capacity(&self) -> Option<Capacity> {
        let mut points = self.points();
        knee::capacity(&points).or_else(|| {
            points.iter_mut().for_each(|point| point.within_limit = true);
            knee::capacity(&points)
        })
    }
}

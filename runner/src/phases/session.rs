//! A run in progress: the engine, the phases measured so far, and who is told.

use std::time::Duration;

use jiff::Timestamp;
use plimsoll_domain::plan::Profile;
use plimsoll_domain::report::{LoadChoice, Phase, PhaseKind, Report, Step, StepRole};
use plimsoll_domain::validity;
use tokio::sync::{oneshot, watch};

use super::host_cpu::HostCpu;
use crate::load::{Clock, Engine, Event, Gone, Nanos, Probe, Recent, StepId, StepPlan};
use crate::progress::{Event as Progress, Live, Observer};
use crate::spec::RunSpec;

pub(super) struct Session<'a> {
    engine: Engine,
    clock: Clock,
    observer: &'a mut (dyn Observer + Send),
    stop: watch::Receiver<bool>,
    /// The report without its phases.
    draft: Report,
    phases: Vec<Recorded>,
    /// How many of them have been told.
    told: usize,
    host: HostCpu,
    /// When the running step, and with `ahead` the whole run, is expected to end.
    step_ends: Nanos,
    /// The running step may go on for longer.
    may_extend: bool,
    /// How long the step will take that waits for surplus workers to stop.
    waits: Option<Nanos>,
    ahead: Duration,
    recent: Recent,
}

/// What the `pr` profile takes at most as planned; no extension goes past it.
const PR_LONGEST: Duration = Duration::from_secs(8 * 60);

/// Why the phases do not go on.
#[derive(Debug)]
pub(super) enum Halt {
    /// Somebody asked for the end.
    Stopped,
    /// The service no longer answers.
    ServiceGone(String),
    /// The smoke phase failed.
    Smoke(Box<super::error::RunError>),
    Engine(Gone),
}

impl From<Gone> for Halt {
    fn from(gone: Gone) -> Self {
        Self::Engine(gone)
    }
}

/// A phase with its steps; those that are not final hold their summary.
struct Recorded {
    kind: PhaseKind,
    start: Nanos,
    end: Option<Nanos>,
    steps: Vec<Kept>,
}

struct Kept {
    id: StepId,
    step: Step,
    /// Its last requests have been followed to their end.
    is_final: bool,
}

impl Recorded {
    /// As it goes into the report, at `now`.
    fn phase(&self, now: Nanos) -> Phase {
        let millis = |nanos: Nanos| nanos / 1_000_000;
        Phase {
            kind: self.kind,
            start_ms: millis(self.start),
            duration_ms: millis(self.end.unwrap_or(now)) - millis(self.start),
            steps: self.steps.iter().map(|kept| kept.step.clone()).collect(),
        }
    }

    fn is_complete(&self) -> bool {
        self.end.is_some() && self.steps.iter().all(|kept| kept.is_final)
    }
}

impl<'a> Session<'a> {
    pub(super) fn new(
        engine: Engine,
        clock: Clock,
        observer: &'a mut (dyn Observer + Send),
        stop: watch::Receiver<bool>,
        draft: Report,
    ) -> Self {
        let host = HostCpu::new();
        Self {
            engine,
            clock,
            observer,
            stop,
            draft,
            phases: Vec::new(),
            told: 0,
            host,
            step_ends: 0,
            may_extend: false,
            waits: None,
            ahead: Duration::ZERO,
            recent: Recent::default(),
        }
    }

    /// How long the run has been going on.
    pub(super) fn elapsed(&self) -> Duration {
        Duration::from_nanos(self.clock.now())
    }

    /// Figures of the last seconds.
    pub(super) fn recent(&self) -> &Recent {
        &self.recent
    }

    pub(super) fn start_phase(&mut self, kind: PhaseKind) {
        self.phases.push(Recorded { kind, start: self.clock.now(), end: None, steps: Vec::new() });
        self.observer.observe(Progress::PhaseStarted { phase: kind });
    }

    pub(super) fn finish_phase(&mut self) {
        let now = self.clock.now();
        let Some(phase) = self.phases.last_mut() else { return };
        phase.end = Some(now);
        let took = Duration::from_nanos(now - phase.start);
        self.observer.observe(Progress::PhaseFinished { phase: phase.kind, took });
        self.tell_partial();
    }

    /// How the load of the stability phase came about.
    pub(super) fn chose(&mut self, choice: LoadChoice) {
        self.draft.load_choice = Some(choice);
    }

    /// Says something about the run that figures do not.
    pub(super) fn remark(&mut self, remark: &str) {
        self.observer.observe(Progress::Remark(remark));
    }

    /// The steps so far, in their order; those whose last requests are still open without these.
    pub(super) fn steps(&self) -> impl Iterator<Item = &Step> {
        self.phases.iter().flat_map(|phase| &phase.steps).map(|kept| &kept.step)
    }

    /// Says how long the run is expected to go on after the running step.
    pub(super) fn expect(&mut self, ahead: Duration) {
        self.ahead = ahead;
    }

    /// `plan`, extended only as far as the `pr` profile may take: who waits for it is told how long that is. `after` is
    /// what still follows the step.
    pub(super) fn bounded(&self, spec: &RunSpec, after: Duration, plan: StepPlan) -> StepPlan {
        let left = PR_LONGEST.saturating_sub(self.elapsed() + after);
        match spec.plan.profile {
            Profile::Pr => StepPlan { longest_ms: extension(plan, left), ..plan },
            Profile::Standard | Profile::Quick => plan,
        }
    }

    /// Carries out a step and returns its figures at its end, without histograms and without its last requests.
    pub(super) async fn step(&mut self, plan: StepPlan) -> Result<Step, Halt> {
        self.begin(plan, plan.duration_ms).await?;
        self.step_end().await
    }

    /// Starts a step that is expected to take `expected_ms`.
    pub(super) async fn begin(&mut self, plan: StepPlan, expected_ms: u64) -> Result<(), Halt> {
        let expected = expected_ms.saturating_mul(1_000_000);
        self.waits = Some(expected);
        let begun = self.engine.begin(plan).await?;
        self.until(begun).await?;
        self.waits = None;
        self.step_ends = self.clock.now() + expected;
        self.may_extend = plan.longest_ms > plan.duration_ms;
        Ok(())
    }

    /// Ends a step before its time.
    pub(super) async fn end_step(&mut self) -> Result<Step, Halt> {
        self.engine.end().await?;
        self.step_end().await
    }

    /// Waits for the end of the running step.
    pub(super) async fn step_end(&mut self) -> Result<Step, Halt> {
        loop {
            if let Some(summary) = self.next_event().await? {
                return Ok(summary);
            }
        }
    }

    /// Waits until the running step ends or `time` has passed.
    pub(super) async fn pass(&mut self, time: Duration) -> Result<(), Halt> {
        let until = tokio::time::Instant::now() + time;
        while let Ok(event) = tokio::time::timeout_at(until, self.next_event()).await {
            if event?.is_some() {
                break;
            }
        }
        Ok(())
    }

    /// Sends one request alone.
    pub(super) async fn probe(&mut self, number: u64) -> Result<Probe, Halt> {
        let answer = self.engine.probe(number).await?;
        self.until(answer).await
    }

    /// Lets the workers stop after their current requests; false when some did not `within` that time.
    pub(super) async fn rest(&mut self, within: Duration) -> Result<bool, Halt> {
        let rested = self.engine.rest(within).await?;
        self.until(rested).await
    }

    /// Cuts what is open and closes the record: the report of what was measured, as one that was interrupted.
    pub(super) async fn close(mut self) -> Result<Report, Gone> {
        let mut closed = self.engine.cut().await?;
        loop {
            tokio::select! {
                biased;
                event = self.engine.event() => { self.take(event?); }
                _ = &mut closed => break,
            }
        }
        Ok(self.report(self.phases.len()))
    }

    /// The report of the first phases.
    fn report(&self, phases: usize) -> Report {
        let now = self.clock.now();
        Report {
            phases: self.phases.iter().take(phases).map(|phase| phase.phase(now)).collect(),
            // The wall clock may have been set back meanwhile.
            finished_at: Timestamp::now().max(self.draft.started_at),
            ..self.draft.clone()
        }
    }

    /// Tells what is measured so far, once there is another phase of which nothing is open any more.
    fn tell_partial(&mut self) {
        let complete = self.phases.iter().take_while(|phase| phase.is_complete()).count();
        if complete > self.told {
            self.told = complete;
            let mut report = self.report(complete);
            report.findings = validity::findings(&report);
            self.observer.observe(Progress::Partial(&report));
        }
    }

    /// Waits for an answer of the engine, taking its events meanwhile.
    async fn until<T>(&mut self, mut answer: oneshot::Receiver<T>) -> Result<T, Halt> {
        loop {
            tokio::select! {
                biased;
                answer = &mut answer => return answer.map_err(|_| Halt::Engine(Gone)),
                event = self.next_event() => { event?; }
            }
        }
    }

    /// Takes one event; the summary when it ends the running step.
    async fn next_event(&mut self) -> Result<Option<Step>, Halt> {
        tokio::select! {
            biased;
            event = self.engine.event() => Ok(self.take(event?)),
            () = stopped(&mut self.stop) => Err(Halt::Stopped),
        }
    }

    fn take(&mut self, event: Event) -> Option<Step> {
        match event {
            Event::Tick { recent, workers } => {
                self.tick(&recent, workers);
                self.recent = recent;
            }
            Event::Measuring => self.host.start(),
            Event::Ended { id, summary } => {
                self.may_extend = false;
                let mut summary = *summary;
                summary.generator.host_cpu = self.host.used();
                if let Some(phase) = self.phases.last_mut() {
                    phase.steps.push(Kept { id, step: summary.clone(), is_final: false });
                }
                return Some(summary);
            }
            Event::Failed(fault) => {
                self.observer.observe(Progress::FirstFailure { kind: fault.kind, reason: &fault.reason });
            }
            Event::Final { id, record } => self.finish_step(id, record.into_step()),
        }
        None
    }

    fn finish_step(&mut self, id: StepId, mut step: Step) {
        let kept = |phase: &mut Recorded| phase.steps.iter().position(|kept| kept.id == id);
        let found = self.phases.iter_mut().find_map(|phase| Some((kept(phase)?, phase)));
        let Some((at, phase)) = found else { return };
        let kept = &mut phase.steps[at];
        step.generator.host_cpu = kept.step.generator.host_cpu;
        *kept = Kept { id, step, is_final: true };
        self.observer.observe(Progress::StepFinished { phase: phase.kind, step: &kept.step });
        self.tell_partial();
    }

    fn tick(&mut self, recent: &Recent, workers: u32) {
        let Some(phase) = self.phases.last() else { return };
        let now = self.clock.now();
        let step = self.waits.unwrap_or_else(|| self.step_ends.saturating_sub(now));
        let left = Duration::from_nanos(step) + self.ahead;
        let is_extended = self.waits.is_none() && self.may_extend && is_past(self.step_ends, now);
        let elapsed = Duration::from_nanos(now);
        let live = Live {
            phase: phase.kind,
            workers,
            left: (!is_extended).then_some(left),
            done: elapsed.as_secs_f64() / (elapsed + left).as_secs_f64().max(f64::MIN_POSITIVE),
            tps: recent.tps,
            p50_ms: recent.p50_ms,
            p99_ms: recent.p99_ms,
            errors: recent.errors,
        };
        self.observer.observe(Progress::Tick(&live));
    }
}

/// Ends when the flag turns true. A flag that nobody can turn any more never does.
pub(super) async fn stopped(stop: &mut watch::Receiver<bool>) {
    if stop.wait_for(|stop| *stop).await.is_err() {
        std::future::pending::<()>().await;
    }
}

/// A step whose edges are cut, and which may extend itself to twice its length.
pub(super) fn measured(role: StepRole, workers: u32, duration_ms: u64, ramp_ms: u64, min_successes: u64) -> StepPlan {
    let longest_ms = duration_ms.saturating_mul(2);
    StepPlan { role, workers, duration_ms, longest_ms, ramp_ms, min_successes, trimmed: true, by_hand: false }
}

/// Whether a step goes on after its planned end; its last word may take a moment.
fn is_past(end: Nanos, now: Nanos) -> bool {
    const MOMENT: Nanos = 500_000_000;
    now > end.saturating_add(MOMENT)
}

/// How long a step may become with `left` to spend on it: never shorter than planned.
fn extension(plan: StepPlan, left: Duration) -> u64 {
    let left_ms = u64::try_from(left.as_millis()).unwrap_or(u64::MAX);
    plan.longest_ms.min(left_ms).max(plan.duration_ms)
}

/// A step that is never measured and ends when it is told to, at the latest after a day.
pub(super) fn open_ended(role: StepRole, workers: u32, ramp_ms: u64, by_hand: bool) -> StepPlan {
    let duration_ms = 24 * 3_600_000;
    let longest_ms = duration_ms;
    StepPlan { role, workers, duration_ms, longest_ms, ramp_ms, min_successes: 0, trimmed: false, by_hand }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_extension_never_shortens_a_step_nor_takes_more_than_is_left() {
        let plan = measured(StepRole::Soak, 4, 300_000, 0, 662);
        for (left_s, longest_ms) in [(0, 300_000), (299, 300_000), (330, 330_000), (599, 599_000), (900, 600_000)] {
            assert_eq!(extension(plan, Duration::from_secs(left_s)), longest_ms, "{left_s}");
        }
    }
}

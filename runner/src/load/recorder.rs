//! Counts what happens, without locks: one recorder on each engine thread, fed with times by its workers.
//!
//! A request belongs to the step in whose measured part it was *issued*, and is followed to its end while later steps
//! run; it counts as a *completion* in the step in whose measured part it ended. A step is final when no request is open
//! that was issued before the end of its measured part.

use std::collections::VecDeque;

use plimsoll_domain::outcome::ErrorKind;
use plimsoll_domain::report::{GeneratorUse, Step};

use super::clock::Nanos;
use super::live::{Live, Recent};
use super::step::{Finished, Record, StepPlan};
use crate::protocol::Fault;

/// Names a step within its run.
pub type StepId = u64;

#[derive(Debug)]
pub struct Recorder {
    /// Steps that are not final, the running one last.
    steps: VecDeque<Record>,
    /// The id of `steps[0]`.
    first: StepId,
    /// One per worker: its open request.
    slots: Vec<Option<Ticket>>,
    free: Vec<usize>,
    timeout_us: u64,
    live: Live,
    /// The kinds of failure that have occurred, and the first examples that nobody has taken yet.
    failed: Vec<ErrorKind>,
    examples: Vec<Fault>,
}

#[derive(Debug, Clone, Copy)]
struct Ticket {
    issued: Nanos,
    /// The step in whose measured part it was issued.
    step: Option<StepId>,
}

impl Recorder {
    pub fn new(timeout_us: u64) -> Self {
        Self {
            steps: VecDeque::new(),
            first: 0,
            slots: Vec::new(),
            free: Vec::new(),
            timeout_us,
            live: Live::default(),
            failed: Vec::new(),
            examples: Vec::new(),
        }
    }

    /// A place for a worker's open request. At most one is open in it at a time.
    pub fn add_slot(&mut self) -> usize {
        self.free.pop().unwrap_or_else(|| {
            self.slots.push(None);
            self.slots.len() - 1
        })
    }

    /// The worker is gone; its last request has finished.
    pub fn remove_slot(&mut self, slot: usize) {
        self.free.push(slot);
    }

    /// Starts a step at `now`; the one before must be over.
    pub fn begin(&mut self, plan: StepPlan, now: Nanos) -> StepId {
        self.steps.push_back(Record::new(plan, now));
        self.first + self.steps.len() as StepId - 1
    }

    pub fn issue(&mut self, slot: usize, now: Nanos) {
        self.advance(now);
        let running = self.steps.back().filter(|step| step.measures(now));
        let step = running.map(|_| self.first + self.steps.len() as StepId - 1);
        self.slots[slot] = Some(Ticket { issued: now, step });
    }

    pub fn opened_connection(&mut self) {
        if let Some(step) = self.steps.back_mut() {
            step.connections += 1;
        }
    }

    pub fn finish(&mut self, slot: usize, done: &Finished) {
        self.advance(done.end);
        let Some(ticket) = self.slots[slot].take() else { return };
        if let Some(step) = ticket.step.and_then(|id| Self::at(&mut self.steps, self.first, id)) {
            step.count_issued(done, self.timeout_us);
        }
        for step in &mut self.steps {
            step.count_completed(done);
        }
        self.live.count(done);
    }

    /// Keeps the first example of each kind of failure.
    pub fn explain(&mut self, fault: &Fault) {
        if !self.failed.contains(&fault.kind) {
            self.failed.push(fault.kind);
            self.examples.push(fault.clone());
        }
    }

    /// Examples of kinds of failure that are new since the last time.
    pub fn take_examples(&mut self) -> Vec<Fault> {
        std::mem::take(&mut self.examples)
    }

    /// Brings the running step's decisions up to `now`.
    pub fn advance(&mut self, now: Nanos) {
        let Some(step) = self.steps.back() else { return };
        if step.decided || now < step.measured_to() {
            return;
        }
        let id = self.first + self.steps.len() as StepId - 1;
        let open = self.slots.iter().flatten().filter(|ticket| ticket.step == Some(id)).count();
        if let Some(step) = self.steps.back_mut() {
            step.decide_extension(now, open as u64);
        }
    }

    /// Start and end of the running step's measured part, and its end, as far as they are decided.
    pub fn running(&self) -> Option<[Nanos; 3]> {
        self.steps.back().map(|step| [step.measured_from(), step.measured_to(), step.end()])
    }

    /// Ends the running step before its time.
    pub fn end_step(&mut self, now: Nanos) {
        if let Some(step) = self.steps.back_mut() {
            step.end_at(now);
        }
    }

    /// The running step's figures so far, without histograms.
    pub fn summary(&self) -> Option<Step> {
        self.steps.back().map(Record::summary)
    }

    /// How late a timer fired.
    pub fn timer_lag(&mut self, now: Nanos, lag_us: u64) {
        if let Some(step) = self.steps.back_mut().filter(|step| step.measures(now)) {
            step.lag.record_us(lag_us);
        }
    }

    /// What the generator used during the running step.
    pub fn set_generator(&mut self, engine_cpu: Option<f64>) {
        if let Some(step) = self.steps.back_mut() {
            let timer_lag_p99_us = step.lag.quantile_ms(0.99).map(|ms| (ms * 1_000.0).round() as u64);
            step.generator = GeneratorUse { engine_cpu, host_cpu: None, timer_lag_p99_us };
        }
    }

    /// Steps that became final by `now`, in order.
    pub fn take_final(&mut self, now: Nanos) -> Vec<(StepId, Record)> {
        let oldest = self.slots.iter().flatten().map(|ticket| ticket.issued).min();
        let mut done = Vec::new();
        while let Some(step) = self.steps.front() {
            let last = step.measured_to();
            if now < step.end() || oldest.is_some_and(|issued| issued < last) {
                break;
            }
            if let Some(step) = self.steps.pop_front() {
                done.push((self.first, step));
                self.first += 1;
            }
        }
        done
    }

    /// The run ends: what is open is cut, and every step is final.
    pub fn cut(&mut self, now: Nanos) -> Vec<(StepId, Record)> {
        self.end_step(now);
        self.free.clear();
        for ticket in std::mem::take(&mut self.slots).into_iter().flatten() {
            for step in &mut self.steps {
                step.add_busy(ticket.issued, now);
            }
            if let Some(step) = ticket.step.and_then(|id| Self::at(&mut self.steps, self.first, id)) {
                step.count_cut(now.saturating_sub(ticket.issued));
            }
        }
        self.take_final(Nanos::MAX)
    }

    /// Figures of the last seconds; to be asked about once a second.
    pub fn recent(&mut self, now: Nanos) -> Recent {
        self.live.roll(now)
    }

    fn at(steps: &mut VecDeque<Record>, first: StepId, id: StepId) -> Option<&mut Record> {
        steps.get_mut(usize::try_from(id.checked_sub(first)?).ok()?)
    }
}

//! The record of one step while requests of it are open.

use plimsoll_domain::histogram::Histogram;
use plimsoll_domain::outcome::{ErrorKind, Outcomes};
use plimsoll_domain::report::{Completed, GeneratorUse, Step, StepRole, Window};

use super::clock::{MS, Nanos, SECOND};
use super::schedule::{measured_part, ms, trim_ms};

/// A concurrency level to hold.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct StepPlan {
    pub role: StepRole,
    pub workers: u32,
    pub duration_ms: u64,
    /// How long it may become when it extends itself.
    pub longest_ms: u64,
    /// Over how long added workers start.
    pub ramp_ms: u64,
    /// A step with fewer successes issued in its measured part extends itself, up to `longest_ms`; 0: never.
    pub min_successes: u64,
    /// Whether edges are cut. Steps that are not measured (checks, warm-up) keep everything.
    pub trimmed: bool,
    /// Without workers: its requests are asked for one by one.
    pub by_hand: bool,
}

/// A finished request.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Finished {
    /// Start of connecting or sending.
    pub issued: Nanos,
    pub first_byte: Option<Nanos>,
    /// The last byte, or the moment at which the failure was known.
    pub end: Nanos,
    /// Until when the worker waits before its next request; `end` unless the connection failed.
    pub busy_until: Nanos,
    pub result: Result<(), ErrorKind>,
}

/// Everything counted for one step.
#[derive(Debug)]
pub struct Record {
    plan: StepPlan,
    pub(super) start: Nanos,
    duration_ms: u64,
    from_ms: u64,
    to_ms: u64,
    /// Whether the extension has been decided.
    pub(super) decided: bool,
    slice_ms: u64,
    pub(super) connections: u64,
    outcomes: Outcomes,
    completed: Completed,
    /// Failures only; the successes are in the slices.
    censored: Histogram,
    first_byte: Histogram,
    slices: Vec<Histogram>,
    windows: Vec<Window>,
    oldest_cut_us: Option<u64>,
    pub(super) lag: Histogram,
    pub(super) generator: GeneratorUse,
}

impl Record {
    pub(super) fn new(plan: StepPlan, start: Nanos) -> Self {
        let (from_ms, to_ms) =
            if plan.trimmed { measured_part(plan.duration_ms, plan.ramp_ms) } else { (0, plan.duration_ms) };
        Self {
            plan,
            start,
            duration_ms: plan.duration_ms,
            from_ms,
            to_ms,
            decided: plan.min_successes == 0,
            slice_ms: plan.role.slice_ms(plan.duration_ms),
            connections: 0,
            outcomes: Outcomes::default(),
            completed: Completed::default(),
            censored: Histogram::new(),
            first_byte: Histogram::new(),
            slices: Vec::new(),
            windows: Vec::new(),
            oldest_cut_us: None,
            lag: Histogram::new(),
            generator: GeneratorUse::default(),
        }
    }

    pub(super) fn end(&self) -> Nanos {
        self.start + ms(self.duration_ms)
    }

    pub(super) fn measured_from(&self) -> Nanos {
        self.start + ms(self.from_ms)
    }

    pub(super) fn measured_to(&self) -> Nanos {
        self.start + ms(self.to_ms)
    }

    pub(super) fn measures(&self, at: Nanos) -> bool {
        (self.measured_from()..self.measured_to()).contains(&at)
    }

    /// At the end of the measured part: whether the step must first go on, with `open` requests still to come.
    pub(super) fn decide_extension(&mut self, now: Nanos, open: u64) {
        let longest = self.plan.longest_ms.max(self.plan.duration_ms);
        while !self.decided && now >= self.measured_to() {
            let have = self.outcomes.ok + open;
            // Without a single success more time brings nothing. Where one request takes longer than the measured part,
            // those that completed in it were issued before.
            let hopeless = self.outcomes.ok == 0 && self.completed.ok == 0;
            if have >= self.plan.min_successes || hopeless || self.duration_ms >= longest {
                self.decided = true;
                break;
            }
            let (from, to) = (self.from_ms as f64, self.to_ms as f64);
            let wanted = from + (to - from) * self.plan.min_successes as f64 / (have as f64).max(1.0) * 1.1;
            let trim = trim_ms(self.plan.duration_ms);
            self.duration_ms = (wanted as u64 + trim).clamp(self.duration_ms + 1, longest);
            self.to_ms = self.duration_ms - trim;
        }
    }

    /// Ends the step before its time.
    pub(super) fn end_at(&mut self, now: Nanos) {
        let elapsed = now.saturating_sub(self.start) / MS;
        if elapsed < self.duration_ms {
            self.duration_ms = elapsed;
            self.to_ms = self.to_ms.min(elapsed);
            self.from_ms = self.from_ms.min(self.to_ms);
        }
        self.decided = true;
    }

    /// Counts a request that was issued in the measured part.
    pub(super) fn count_issued(&mut self, done: &Finished, timeout_us: u64) {
        self.outcomes.count(done.result);
        let latency_us = micros(done.end - done.issued);
        if done.result.is_err() {
            self.censored.record_us(latency_us.max(timeout_us));
            return;
        }
        let slice = (done.issued - self.measured_from()) / ms(self.slice_ms);
        let slice = usize::try_from(slice).unwrap_or(usize::MAX);
        while self.slices.len() <= slice {
            self.slices.push(Histogram::new());
        }
        self.slices[slice].record_us(latency_us);
        if let Some(first) = done.first_byte {
            self.first_byte.record_us(micros(first - done.issued));
        }
    }

    /// Counts a request by the time of its end, whenever it was issued.
    pub(super) fn count_completed(&mut self, done: &Finished) {
        self.add_busy(done.issued, done.busy_until);
        if self.measures(done.end) {
            match done.result {
                Ok(()) => self.completed.ok += 1,
                Err(_) => self.completed.failed += 1,
            }
        }
        if done.end < self.start || done.end >= self.end() {
            return;
        }
        let second = usize::try_from((done.end - self.start) / SECOND).unwrap_or(usize::MAX);
        while self.windows.len() <= second {
            self.windows.push(Window::default());
        }
        let window = &mut self.windows[second];
        match done.result {
            Ok(()) => {
                let latency_us = micros(done.end - done.issued);
                window.ok += 1;
                window.latency_sum_us += latency_us;
                window.latency_max_us = window.latency_max_us.max(latency_us);
            }
            Err(kind) => *window.errors.entry(kind).or_default() += 1,
        }
    }

    /// Counts a request that is still open when the run ends.
    pub(super) fn count_cut(&mut self, age: Nanos) {
        self.outcomes.cut += 1;
        self.oldest_cut_us = self.oldest_cut_us.max(Some(micros(age)));
    }

    pub(super) fn add_busy(&mut self, from: Nanos, to: Nanos) {
        let (from, to) = (from.max(self.measured_from()), to.min(self.measured_to()));
        self.completed.busy_us += to.saturating_sub(from) / 1_000;
    }

    /// The figures so far, without histograms.
    pub(super) fn summary(&self) -> Step {
        Step {
            role: self.plan.role,
            workers: self.plan.workers,
            start_ms: self.start / MS,
            duration_ms: self.duration_ms,
            measured_from_ms: self.from_ms,
            measured_to_ms: self.to_ms,
            connections: self.connections,
            outcomes: self.outcomes.clone(),
            completed: self.completed.clone(),
            latency: Histogram::new(),
            latency_censored: Histogram::new(),
            first_byte: Histogram::new(),
            slice_ms: self.slice_ms,
            slices: Vec::new(),
            windows: Vec::new(),
            ok_per_second: None,
            oldest_cut_us: self.oldest_cut_us,
            generator: self.generator.clone(),
        }
    }

    /// The finished step. Merging takes milliseconds, so this is not done on an engine's thread.
    pub fn into_step(mut self) -> Step {
        let slices = (self.to_ms - self.from_ms).div_ceil(self.slice_ms);
        while (self.slices.len() as u64) < slices {
            self.slices.push(Histogram::new());
        }
        let seconds = self.duration_ms.div_ceil(1_000);
        while (self.windows.len() as u64) < seconds {
            self.windows.push(Window::default());
        }
        let latency = Histogram::merged(&self.slices);
        let latency_censored = Histogram::merged([&latency, &self.censored]);
        Step {
            latency,
            latency_censored,
            first_byte: std::mem::take(&mut self.first_byte),
            slices: std::mem::take(&mut self.slices),
            windows: std::mem::take(&mut self.windows),
            ..self.summary()
        }
    }
}

fn micros(nanos: Nanos) -> u64 {
    (nanos + 500) / 1_000
}

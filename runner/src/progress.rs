//! What a run tells while it goes on.

use std::time::Duration;

use plimsoll_domain::finding::Finding;
use plimsoll_domain::outcome::ErrorKind;
use plimsoll_domain::report::{PhaseKind, Report, Step};

/// Something happened. Events come in order, from one thread.
#[derive(Debug)]
pub enum Event<'a> {
    PhaseStarted {
        phase: PhaseKind,
    },
    /// About once a second.
    Tick(&'a Live),
    /// A step's figures are final (its last requests have been followed to their end).
    StepFinished {
        phase: PhaseKind,
        step: &'a Step,
    },
    PhaseFinished {
        phase: PhaseKind,
        took: Duration,
    },
    /// The first failure of its kind; the reason may quote the service's answer and belongs on the terminal only.
    FirstFailure {
        kind: ErrorKind,
        reason: &'a str,
    },
    Found(&'a Finding),
    /// What is measured so far: the phases that are finished, with status `interrupted`.
    Partial(&'a Report),
    /// What the run does meanwhile, in words.
    Remark(&'a str),
}

/// Live figures of the last few seconds; `None` where nothing finished.
#[derive(Debug, Clone, PartialEq)]
pub struct Live {
    pub phase: PhaseKind,
    /// Those at work; 0 between two steps.
    pub workers: u32,
    /// Time left in the whole run as far as it is known; the search for the knee can add to it. `None` while a step goes on
    /// past its planned end.
    pub left: Option<Duration>,
    /// Share of the whole run that is done, 0 to 1.
    pub done: f64,
    pub tps: Option<f64>,
    pub p50_ms: Option<f64>,
    pub p99_ms: Option<f64>,
    pub errors: u64,
}

/// Takes the events of a run: a progress line, a log, a heartbeat, a test.
pub trait Observer {
    fn observe(&mut self, event: Event<'_>);
}

impl Observer for () {
    fn observe(&mut self, _: Event<'_>) {}
}

impl<F: FnMut(Event<'_>)> Observer for F {
    fn observe(&mut self, event: Event<'_>) {
        self(event);
    }
}

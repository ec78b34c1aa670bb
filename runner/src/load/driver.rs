//! The one task of an engine thread that is no worker: it starts workers, begins and ends steps, and tells.

use std::cell::{Cell, RefCell};
use std::rc::Rc;
use std::sync::Arc;
use std::time::Duration;

use rustix::time::{ClockId, clock_gettime};
use tokio::sync::{Notify, mpsc, oneshot};
use tokio::task::JoinSet;

use super::clock::{Clock, MS, Nanos, SECOND};
use super::connection::{Connection, Transport, Wire};
use super::engine::{Command, Event, Probe};
use super::recorder::{Recorder, StepId};
use super::schedule::{due_workers, ms, next_worker_at};
use super::step::StepPlan;
use super::worker::{Shared, request, work};
use crate::protocol::Target;

/// How often steps that are over but not final are looked at.
const HARVEST: Nanos = 50 * MS;

/// Runs until nobody holds the engine any more.
pub(super) async fn drive(
    target: Arc<dyn Target>,
    transport: Transport,
    clock: Clock,
    mut commands: mpsc::Receiver<Command>,
    events: mpsc::Sender<Event>,
) {
    let timeout_us = u64::try_from(transport.response_timeout.as_micros()).unwrap_or(u64::MAX);
    let shared = Rc::new(Shared {
        wire: Wire::new(transport, clock),
        target,
        recorder: RefCell::new(Recorder::new(timeout_us)),
        wanted: Cell::new(0),
        live: Cell::new(0),
        next: Cell::new(0),
        stopped: Notify::new(),
    });
    tokio::task::spawn_local(watch_timers(shared.clone()));
    let next_tick = clock.now() + SECOND;
    let mut driver = Driver {
        shared: shared.clone(),
        clock,
        events,
        tasks: JoinSet::new(),
        prober: Rc::new(tokio::sync::Mutex::new(None)),
        waiting: None,
        running: None,
        resting: None,
        unfinished: 0,
        next_tick,
    };
    loop {
        let wake = clock.instant(driver.next_wake()).into();
        tokio::select! {
            biased;
            command = commands.recv() => match command {
                Some(command) => driver.take(command).await,
                None => break,
            },
            () = shared.stopped.notified() => {}
            () = tokio::time::sleep_until(wake) => {}
        }
        if driver.go_on().await.is_err() {
            break;
        }
    }
}

struct Driver {
    shared: Rc<Shared>,
    clock: Clock,
    events: mpsc::Sender<Event>,
    /// Workers and probes.
    tasks: JoinSet<()>,
    /// The connection of the probes. It closes when a step with workers begins: an idle connection can hold one of the
    /// service's threads.
    prober: Rc<tokio::sync::Mutex<Option<Connection>>>,
    /// A step that waits for surplus workers to stop, until the given moment.
    waiting: Option<(StepPlan, oneshot::Sender<StepId>, Nanos)>,
    running: Option<Running>,
    resting: Option<(oneshot::Sender<bool>, Nanos)>,
    /// Steps that have begun and are not final.
    unfinished: usize,
    next_tick: Nanos,
}

struct Running {
    id: StepId,
    plan: StepPlan,
    start: Nanos,
    /// Workers at the start.
    base: u32,
    /// CPU time of this thread and the moment, at the start of the measured part.
    measuring: Option<(Nanos, Nanos)>,
    over: bool,
}

/// Nobody listens any more.
struct Unheard;

impl Driver {
    async fn take(&mut self, command: Command) {
        match command {
            Command::Begin(plan, reply) => {
                let workers = if plan.by_hand { 0 } else { plan.workers };
                self.shared.wanted.set(workers);
                // Surplus workers end their current requests first: beside them the step would have more workers than
                // it says, and Little's law would not hold.
                let longest = self.shared.wire.transport.longest_turn();
                self.waiting = Some((plan, reply, self.clock.now().saturating_add(longest)));
            }
            Command::End => {
                let now = self.clock.now();
                self.shared.recorder.borrow_mut().end_step(now);
            }
            Command::Probe(number, reply) => self.probe(number, reply),
            Command::Rest(within, reply) => {
                self.shared.wanted.set(0);
                let within = u64::try_from(within.as_nanos()).unwrap_or(Nanos::MAX / 2);
                self.resting = Some((reply, self.clock.now().saturating_add(within)));
            }
            Command::Cut(reply) => {
                self.shared.wanted.set(0);
                self.waiting = None;
                self.tasks.shutdown().await;
                self.shared.live.set(0);
                // Whoever asked may have gone meanwhile; the next event tells.
                let _ = self.end_running(self.clock.now()).await;
                let steps = self.shared.recorder.borrow_mut().cut(self.clock.now());
                for (id, record) in steps {
                    let _ = self.events.send(Event::Final { id, record: Box::new(record) }).await;
                }
                self.unfinished = 0;
                let _ = reply.send(());
            }
        }
    }

    /// Does what is due.
    async fn go_on(&mut self) -> Result<(), Unheard> {
        let now = self.clock.now();
        while self.tasks.try_join_next().is_some() {}
        self.begin_waiting(now);
        self.start_workers(now);
        self.watch_step(now).await?;
        if self.resting.as_ref().is_some_and(|(_, until)| self.shared.live.get() == 0 || now >= *until)
            && let Some((reply, _)) = self.resting.take()
        {
            let _ = reply.send(self.shared.live.get() == 0);
        }
        self.harvest(now).await?;
        if now >= self.next_tick {
            self.next_tick = now + SECOND;
            let examples = self.shared.recorder.borrow_mut().take_examples();
            for fault in examples {
                self.tell(Event::Failed(fault)).await?;
            }
            let recent = self.shared.recorder.borrow_mut().recent(now);
            let by_hand = self.running.as_ref().is_some_and(|running| running.plan.by_hand && !running.over);
            let workers = self.shared.live.get().max(u32::from(by_hand));
            self.tell(Event::Tick { recent, workers }).await?;
        }
        Ok(())
    }

    fn next_wake(&self) -> Nanos {
        let mut wake = self.next_tick;
        let now = self.clock.now();
        if let Some((_, _, until)) = &self.waiting {
            wake = wake.min(*until);
        }
        if let Some((_, until)) = &self.resting {
            wake = wake.min(*until);
        }
        let running = self.running.as_ref().filter(|running| !running.over);
        if let (Some(running), Some([from, _, end])) = (running, self.shared.recorder.borrow().running()) {
            wake = wake.min(if running.measuring.is_none() { from.min(end) } else { end });
            let elapsed = now.saturating_sub(running.start);
            let next = next_worker_at(running.base, self.shared.wanted.get(), ms(running.plan.ramp_ms), elapsed);
            wake = next.map_or(wake, |at| wake.min(running.start + at));
        }
        let over = usize::from(self.running.as_ref().is_some_and(|running| !running.over));
        if self.unfinished > over {
            wake = wake.min(now + HARVEST);
        }
        wake
    }

    fn begin_waiting(&mut self, now: Nanos) {
        let ready = |until: Nanos| self.shared.live.get() <= self.shared.wanted.get() || now >= until;
        if !self.waiting.as_ref().is_some_and(|(_, _, until)| ready(*until)) {
            return;
        }
        let Some((plan, reply, _)) = self.waiting.take() else { return };
        if !plan.by_hand
            && let Ok(mut prober) = self.prober.try_lock()
        {
            *prober = None;
        }
        let base = self.shared.live.get();
        let id = self.shared.recorder.borrow_mut().begin(plan, now);
        self.running = Some(Running { id, plan, start: now, base, measuring: None, over: false });
        self.unfinished += 1;
        let _ = reply.send(id);
    }

    fn start_workers(&mut self, now: Nanos) {
        let Some(running) = &self.running else { return };
        let elapsed = now.saturating_sub(running.start);
        let due = due_workers(running.base, self.shared.wanted.get(), ms(running.plan.ramp_ms), elapsed);
        while self.waiting.is_none() && self.shared.live.get() < due {
            self.shared.live.set(self.shared.live.get() + 1);
            self.tasks.spawn_local(work(self.shared.clone()));
        }
    }

    async fn watch_step(&mut self, now: Nanos) -> Result<(), Unheard> {
        let Some(running) = self.running.as_mut().filter(|running| !running.over) else { return Ok(()) };
        self.shared.recorder.borrow_mut().advance(now);
        let Some([from, _, end]) = self.shared.recorder.borrow().running() else { return Ok(()) };
        if running.measuring.is_none() && now >= from {
            running.measuring = Some((thread_cpu(), now));
            self.tell(Event::Measuring).await?;
        }
        if now >= end { self.end_running(now).await } else { Ok(()) }
    }

    async fn end_running(&mut self, now: Nanos) -> Result<(), Unheard> {
        let Some(running) = self.running.as_mut().filter(|running| !running.over) else { return Ok(()) };
        running.over = true;
        let engine_cpu = running.measuring.and_then(|(cpu, since)| {
            let wall = now.saturating_sub(since);
            (wall > 0).then(|| (thread_cpu().saturating_sub(cpu)) as f64 / wall as f64)
        });
        let id = running.id;
        let summary = {
            let mut recorder = self.shared.recorder.borrow_mut();
            recorder.end_step(now);
            recorder.set_generator(engine_cpu);
            recorder.summary()
        };
        match summary {
            Some(summary) => self.tell(Event::Ended { id, summary: Box::new(summary) }).await,
            None => Ok(()),
        }
    }

    async fn harvest(&mut self, now: Nanos) -> Result<(), Unheard> {
        if self.unfinished == 0 {
            return Ok(());
        }
        // A step whose end has not been told is not over, whatever its clock says.
        if self.unfinished == 1 && self.running.as_ref().is_some_and(|running| !running.over) {
            return Ok(());
        }
        let steps = self.shared.recorder.borrow_mut().take_final(now);
        self.unfinished -= steps.len();
        for (id, record) in steps {
            self.tell(Event::Final { id, record: Box::new(record) }).await?;
        }
        Ok(())
    }

    fn probe(&mut self, number: u64, reply: oneshot::Sender<Probe>) {
        let (shared, prober) = (self.shared.clone(), self.prober.clone());
        self.tasks.spawn_local(async move {
            let mut prober = prober.lock().await;
            let connection = prober.get_or_insert_with(|| Connection::new(shared.wire.clone()));
            let slot = shared.recorder.borrow_mut().add_slot();
            let outcome = request(&shared, connection, slot, number).await;
            shared.recorder.borrow_mut().remove_slot(slot);
            let latency = Duration::from_nanos(outcome.latency);
            let _ = reply.send(Probe { latency, status: outcome.status, result: outcome.result });
        });
    }

    async fn tell(&self, event: Event) -> Result<(), Unheard> {
        self.events.send(event).await.map_err(|_| Unheard)
    }
}

/// Measures how late timers fire beyond the runtime's granularity: a sleep of 10 ms may rightly take up to 1 ms more.
async fn watch_timers(shared: Rc<Shared>) {
    let clock = shared.wire.clock;
    loop {
        let due = clock.now() + 10 * MS;
        tokio::time::sleep_until(clock.instant(due).into()).await;
        let now = clock.now();
        let lag = now.saturating_sub(due).saturating_sub(MS);
        shared.recorder.borrow_mut().timer_lag(now, lag / 1_000);
    }
}

/// CPU time of the calling thread.
fn thread_cpu() -> Nanos {
    let time = clock_gettime(ClockId::ThreadCPUTime);
    u64::try_from(time.tv_sec).unwrap_or(0) * SECOND + u64::try_from(time.tv_nsec).unwrap_or(0)
}

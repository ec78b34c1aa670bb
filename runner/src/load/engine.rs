//! The handle to a load engine on its own thread.

use std::sync::Arc;
use std::time::Duration;

use plimsoll_domain::report::Step;
use tokio::sync::{mpsc, oneshot};

use super::clock::Clock;
use super::connection::Transport;
use super::driver;
use super::live::Recent;
use super::recorder::StepId;
use super::step::{Record, StepPlan};
use crate::protocol::{Fault, Target};

/// One engine thread. It ends when this is dropped.
#[derive(Debug)]
pub struct Engine {
    commands: mpsc::Sender<Command>,
    events: mpsc::Receiver<Event>,
}

/// What an engine tells. They must be taken: an engine whose events pile up stands still.
#[derive(Debug)]
pub enum Event {
    /// About once a second.
    Tick { recent: Recent, workers: u32 },
    /// The running step's measured part begins.
    Measuring,
    /// The running step is over; its figures so far, without histograms and without its last requests. The workers go
    /// on until the next command.
    Ended { id: StepId, summary: Box<Step> },
    /// The first failure of its kind in this run.
    Failed(Fault),
    /// All requests of a step have ended.
    Final { id: StepId, record: Box<Record> },
}

/// The answer to a single request.
#[derive(Debug, Clone)]
pub struct Probe {
    pub latency: Duration,
    /// Of a complete answer.
    pub status: Option<u16>,
    pub result: Result<(), Fault>,
}

/// The engine's thread has ended: a defect of ours.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("the load engine stopped unexpectedly")]
pub struct Gone;

#[derive(Debug)]
pub(super) enum Command {
    Begin(StepPlan, oneshot::Sender<StepId>),
    End,
    Probe(u64, oneshot::Sender<Probe>),
    Rest(Duration, oneshot::Sender<bool>),
    Cut(oneshot::Sender<()>),
}

/// A minute and more of events, should nobody look.
const EVENTS: usize = 1_024;

impl Engine {
    /// Starts the thread. `clock` is the run's.
    ///
    /// # Errors
    /// No thread or no reactor could be had.
    pub fn start(target: Arc<dyn Target>, transport: Transport, clock: Clock) -> std::io::Result<Self> {
        let (commands, inbox) = mpsc::channel(16);
        let (outbox, events) = mpsc::channel(EVENTS);
        let runtime = tokio::runtime::Builder::new_current_thread().enable_io().enable_time().build()?;
        std::thread::Builder::new().name("plimsoll-load".to_owned()).spawn(move || {
            let local = tokio::task::LocalSet::new();
            local.block_on(&runtime, driver::drive(target, transport, clock, inbox, outbox));
        })?;
        Ok(Self { commands, events })
    }

    /// The next event.
    pub async fn event(&mut self) -> Result<Event, Gone> {
        self.events.recv().await.ok_or(Gone)
    }

    /// Starts a step, at once when workers are added, else as soon as the surplus workers have stopped. The receiver
    /// hears its id when it starts.
    pub async fn begin(&self, plan: StepPlan) -> Result<oneshot::Receiver<StepId>, Gone> {
        self.command(|reply| Command::Begin(plan, reply)).await
    }

    /// Ends the running step before its time: [`Event::Ended`] follows.
    pub async fn end(&self) -> Result<(), Gone> {
        self.commands.send(Command::End).await.map_err(|_| Gone)
    }

    /// Sends request `number` alone, apart from the workers.
    pub async fn probe(&self, number: u64) -> Result<oneshot::Receiver<Probe>, Gone> {
        self.command(|reply| Command::Probe(number, reply)).await
    }

    /// Stops all workers after their current requests; the receiver hears whether they ended `within` that time.
    pub async fn rest(&self, within: Duration) -> Result<oneshot::Receiver<bool>, Gone> {
        self.command(|reply| Command::Rest(within, reply)).await
    }

    /// Cuts what is open and makes every step final, which [`Event::Final`] tells before the receiver hears.
    pub async fn cut(&self) -> Result<oneshot::Receiver<()>, Gone> {
        self.command(Command::Cut).await
    }

    async fn command<T>(&self, make: impl FnOnce(oneshot::Sender<T>) -> Command) -> Result<oneshot::Receiver<T>, Gone> {
        let (reply, answer) = oneshot::channel();
        self.commands.send(make(reply)).await.map_err(|_| Gone)?;
        Ok(answer)
    }
}

//! A closed-loop worker: send, wait for the whole answer, judge it, send again.

use std::cell::{Cell, RefCell};
use std::rc::Rc;
use std::sync::Arc;
use std::time::Duration;

use tokio::sync::Notify;

use super::clock::{MS, Nanos};
use super::connection::{Connection, Wire};
use super::recorder::Recorder;
use super::step::Finished;
use crate::protocol::{Fault, Target};

/// How long a worker waits after a connection could not be opened, so that a dead service is not hammered.
pub(super) const PAUSE: Nanos = 100 * MS;

/// What everything on one engine thread shares.
#[derive(Debug)]
pub(super) struct Shared {
    pub(super) wire: Rc<Wire>,
    pub(super) target: Arc<dyn Target>,
    pub(super) recorder: RefCell<Recorder>,
    /// How many workers there should be; surplus ones stop after their current request.
    pub(super) wanted: Cell<u32>,
    /// How many there are.
    pub(super) live: Cell<u32>,
    /// The number of the next request.
    pub(super) next: Cell<u64>,
    /// A worker has stopped.
    pub(super) stopped: Notify,
}

/// How a request went and what the answer was worth.
#[derive(Debug)]
pub(super) struct Outcome {
    pub(super) latency: Nanos,
    pub(super) status: Option<u16>,
    pub(super) result: Result<(), Fault>,
    unconnected: bool,
}

/// Runs until there are more workers than wanted.
pub(super) async fn work(shared: Rc<Shared>) {
    let slot = shared.recorder.borrow_mut().add_slot();
    let mut connection = Connection::new(shared.wire.clone());
    while shared.live.get() <= shared.wanted.get() {
        let number = shared.next.get();
        shared.next.set(number + 1);
        let outcome = request(&shared, &mut connection, slot, number).await;
        if outcome.unconnected {
            tokio::time::sleep(Duration::from_nanos(PAUSE)).await;
        }
    }
    shared.recorder.borrow_mut().remove_slot(slot);
    shared.live.set(shared.live.get() - 1);
    shared.stopped.notify_one();
}

/// One request, recorded.
pub(super) async fn request(shared: &Shared, connection: &mut Connection, slot: usize, number: u64) -> Outcome {
    let target = &*shared.target;
    connection.refresh().await;
    let issued = shared.wire.clock.now();
    shared.recorder.borrow_mut().issue(slot, issued);
    let exchange = connection.exchange(target.request(number), target.answers_head(), issued).await;
    let answered = exchange.result.is_ok();
    let result = exchange.result.and_then(|()| target.judge(number, connection.status(), connection.body()));
    let done = Finished {
        issued,
        first_byte: exchange.first_byte,
        end: exchange.end,
        busy_until: if exchange.unconnected { exchange.end + PAUSE } else { exchange.end },
        result: result.as_ref().copied().map_err(|fault| fault.kind),
    };
    let mut recorder = shared.recorder.borrow_mut();
    if exchange.opened {
        recorder.opened_connection();
    }
    if let Err(fault) = &result {
        recorder.explain(fault);
    }
    recorder.finish(slot, &done);
    Outcome {
        latency: exchange.end - issued,
        status: answered.then(|| connection.status()),
        result,
        unconnected: exchange.unconnected,
    }
}

//! The load engine: workers in closed loops, one connection each, on a thread of its own.
//!
//! It knows the [`Target`](crate::protocol::Target) trait and no protocol, holds steps and reports what they measured;
//! what comes next is decided elsewhere. Everything on the thread is single-threaded: no lock is taken between a request
//! and its record. Several engines can run side by side and have their records merged.

mod clock;
mod connection;
mod deadline;
mod driver;
mod engine;
mod framing;
pub mod http;
mod live;
mod recorder;
mod schedule;
mod step;
mod stream;
mod worker;

pub use clock::{Clock, Nanos};
pub use connection::Transport;
pub use engine::{Engine, Event, Gone, Probe};
pub use live::Recent;
pub use recorder::{Recorder, StepId};
pub use schedule::{measured_part, ramp_up_ms};
pub use step::{Finished, Record, StepPlan};
pub use stream::{Endpoint, Tls};

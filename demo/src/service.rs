//! The sample model service: a real HTTP server with a bounded queue in front of a worker pool in front of one
//! accelerator that runs batches.
//!
//! Every duration ends at an absolute deadline: the next one starts where the last one should have ended, not where the
//! operating system woke the thread. So capacity and knee follow from the [`Parameters`] by arithmetic.

mod accelerator;
mod answer;
mod clock;
mod fate;
mod http;
mod machine;
mod metrics;
mod parameters;

pub use http::{Running, start};
pub use parameters::{Expected, Parameters, expected_capacity};

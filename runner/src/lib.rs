//! The runner: reads a plan, makes the load, measures, reports.
//!
//! The load engine (`load`) knows the [`protocol`] trait and no protocol; `phases` decides what runs when; `plan` turns
//! a file into a [`spec::RunSpec`]; the command line (`cli`) ties them together.

#[cfg(target_os = "linux")]
pub mod agent;
pub mod cli;
pub mod exit;
pub mod git;
pub mod host;
pub mod load;
pub mod outbox;
pub mod phases;
mod pin;
pub mod plan;
pub mod progress;
pub mod protocol;
pub mod report;
pub mod spec;
pub mod spool;
pub mod sse;
pub mod telemetry;
pub mod upload;

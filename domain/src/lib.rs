//! The vocabulary and the arithmetic of Plimsoll: what a run reports, and what is concluded from it.
//!
//! Nothing here does I/O, reads a clock, or draws unseeded randomness: the same inputs give the same bytes, on the
//! runner, on the server and in a test.

pub mod baseline;
pub mod bootstrap;
pub mod comparison;
pub mod course;
pub mod figures;
pub mod finding;
pub mod format;
pub mod histogram;
pub mod ids;
pub mod job;
pub mod knee;
pub mod little;
pub mod markdown;
pub mod noise;
pub mod outcome;
pub mod percentile;
pub mod plan;
#[cfg(feature = "plan-file")]
pub mod plan_file;
pub mod policy;
pub mod proportion;
pub mod prose;
pub mod report;
pub mod revision;
pub mod row;
pub mod sentence;
#[cfg(any(test, feature = "synthetic"))]
pub mod synthetic;
pub mod testbed;
pub mod validity;
pub mod verdict;

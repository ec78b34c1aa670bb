//! The real programs against each other: sample service, runner, server, browser. Tolerances, no exact counts.
//!
//! Those that measure and those that keep the machine busy take turns: see [`support::measures`].

#[cfg(target_os = "linux")]
mod agent;
mod browser;
mod chromium;
mod cut;
mod demo;
#[cfg(target_os = "linux")]
mod killed;
mod plateaus;
mod signed_in;
mod support;
mod tail;
mod warm_up;

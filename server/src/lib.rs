//! The server: stores performance snapshots in Postgres, judges them against their baseline, and shows them.

pub mod access;
pub mod api;
pub mod charts;
pub mod config;
pub mod doctor;
pub mod error;
pub mod github;
mod hex;
pub mod metrics;
pub mod outgoing;
pub mod postgres;
pub mod router;
pub mod serve;
pub mod state;
pub mod store;
pub mod tasks;
pub mod web;

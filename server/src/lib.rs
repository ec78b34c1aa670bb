//! The server: stores performance snapshots in Postgres, judges them against their baseline, and shows them.

pub mod auth;
pub mod charts;
pub mod error;
pub mod state;
pub mod store;
pub mod tasks;
pub mod web;

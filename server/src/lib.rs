//! The server: stores performance snapshots in Postgres, judges them against their baseline, and shows them.

pub mod charts;
pub mod state;
pub mod web;

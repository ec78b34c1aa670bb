//! What the server works out, apart from answering.

mod backfill;
pub mod background;
mod bounds;
pub mod deliveries;
mod error;
pub mod gating;
pub mod github;
pub mod hub;
pub mod ingest;
pub mod jobs;
pub mod leases;
pub mod links;
pub mod pack;
pub mod policy;
pub mod prune;
mod retry;
pub mod verdict;
pub mod webhooks;

pub use error::{Error, Result};

//! What the server works out, apart from answering.

pub mod background;
mod bounds;
pub mod deliveries;
pub mod ingest;
pub mod pack;
pub mod verdict;

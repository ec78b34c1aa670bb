//! What the server works out, apart from answering.

mod bounds;
pub mod ingest;
pub mod pack;
pub mod verdict;

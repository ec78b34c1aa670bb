//! What the server works out, apart from answering.

pub mod ingest;
pub mod pack;
pub mod verdict;

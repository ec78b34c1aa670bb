//! What the server works out, apart from answering.

pub mod pack;
pub mod verdict;

//! What somebody may send who means no good: the server refuses it, stays small, and serves the others.

mod bodies;
mod headers;
mod limits;
mod program;
mod slow;
mod strings;
mod target;
mod tricks;

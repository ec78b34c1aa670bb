//! Requests to addresses that people configure. Whoever may set one must not reach through the server what only the
//! server can reach: only public addresses, checked after the name is resolved and on the connection that is used.

mod address;
mod client;

pub use address::is_public;
pub use client::{Outgoing, Refused, SendError, Target};

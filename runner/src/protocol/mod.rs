//! What is sent, and what counts as a right answer: the load engine's view of a protocol.

mod expect;
mod json;
mod render;

use std::fmt;

use plimsoll_domain::outcome::ErrorKind;

pub(crate) use expect::excerpt;
pub use json::Json;
pub use render::BadRequest;

/// A service under load: gives the bytes of each request and judges each answer. Both are called on the engine's
/// thread, outside of what is timed.
pub trait Target: Send + Sync + fmt::Debug {
    /// How many different requests there are, at least one.
    fn shapes(&self) -> u64;

    /// The bytes of request `number`, head and body; numbers count up over the run.
    fn request(&self, number: u64) -> &[u8];

    /// Whether answers have no body whatever their headers say (`HEAD`).
    fn answers_head(&self) -> bool;

    /// How many bytes of an answer's body [`judge`](Self::judge) wants to see.
    fn wants_body(&self) -> usize;

    /// Judges a complete answer to request `number`.
    fn judge(&self, number: u64, status: u16, body: &[u8]) -> Result<(), Fault>;
}

/// Why a request failed: its kind, and a phrase for people, bounded.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Fault {
    pub kind: ErrorKind,
    pub reason: String,
}

impl Fault {
    pub fn new(kind: ErrorKind, reason: impl Into<String>) -> Self {
        Self { kind, reason: reason.into() }
    }
}

//! What people and programs read: pure functions from a report or a comparison to text or JSON, 80 columns wide.

pub mod comparison;
pub mod markdown;
pub mod paint;
pub mod plan;
pub mod progress;
mod stairs;
pub mod summary;
#[cfg(test)]
mod tests;
mod text;
pub mod watch;

pub(crate) use text::labelled;

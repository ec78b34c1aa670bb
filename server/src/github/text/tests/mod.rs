//! What GitHub is told, and what it must never be.

mod conclusion;
mod fixture;
mod hostile;
mod limits;
mod shown_checks;
mod shown_comments;

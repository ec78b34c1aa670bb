//! GitHub: what it told us, what we know of it, and what it is to be told.

pub mod checks;
pub mod comments;
pub mod condition;
pub mod inbox;
pub mod links;
pub mod pace;
pub mod pulls;
pub mod repositories;
pub mod standing;
pub mod tags;
pub mod writes;

//! What GitHub shows, made of values: nothing here asks the store or the network, so that the same state always reads
//! the same.

mod blocks;
mod check;
mod comment;
mod conclusion;
mod tables;
mod told;

use plimsoll_domain::markdown as outside;

pub use check::{check, check_name};
pub use comment::{comment, marker};
pub use conclusion::{Standing, conclusion};
pub use plimsoll_domain::markdown::escaped;
pub use told::{
    Acceptance, Action, Backfill, CheckText, Earlier, Images, Links, PullTold, State, Status, Told, Unmeasured,
};

#[cfg(test)]
mod tests;

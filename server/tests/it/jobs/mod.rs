//! Runs that somebody asks for, from the request to the verdict.

pub(crate) mod actor;
mod asking;
mod backfill;
mod chaos;
mod live;
mod model;
mod outcome;
mod sound;
mod stream;

//! Runs that somebody asks for, from the request to the verdict.

mod actor;
mod asking;
mod backfill;
mod live;
mod outcome;
mod stream;

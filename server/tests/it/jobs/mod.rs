//! Runs that somebody asks for, from the request to the verdict.

mod actor;
mod asking;
mod outcome;

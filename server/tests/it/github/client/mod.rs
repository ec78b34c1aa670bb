//! The client against the fake: what it asks, what it makes of the answers, and what it does not do.

mod configured;
mod faults;
mod reads;
mod tokens;
mod writes;

use plimsoll_domain::ids::CommitSha;

use super::fake::FakeGitHub;

fn sha(text: &str) -> CommitSha {
    text.parse().expect("a commit")
}

/// How many requests there were that fit.
fn count(github: &FakeGitHub, on: &str) -> usize {
    github.requests().iter().filter(|request| request.fits(on)).count()
}

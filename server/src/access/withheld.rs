//! What of a run only those are told who have a scope for its project: who asked for it, and on which host it is
//! measured. Readers of a public project need neither.

use plimsoll_domain::ids::ProjectSlug;
use plimsoll_domain::job::{Live, LiveEvent, Run};

use super::caller::{Caller, Scope};

/// What is told to a caller about runs.
pub trait Told: Sized {
    fn withhold(&mut self);

    /// As this caller may see it. Everything that tells of runs passes here.
    #[must_use]
    fn to(mut self, caller: &Caller, project: &ProjectSlug) -> Self {
        if !caller.may(Scope::Read, project) {
            self.withhold();
        }
        self
    }
}

impl Told for Run {
    fn withhold(&mut self) {
        self.requested_by = None;
        self.runner = None;
    }
}

impl Told for LiveEvent {
    fn withhold(&mut self) {
        if let Live::State { runner, .. } = &mut self.what {
            *runner = None;
        }
    }
}

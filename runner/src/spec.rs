//! Everything that one run needs, resolved: the bridge from the plan file and the flags to the engine.

use plimsoll_domain::ids::{ProjectSlug, RunId};
use plimsoll_domain::plan::Plan;
use plimsoll_domain::report::LoadChoice;
use plimsoll_domain::revision::Revision;
use plimsoll_domain::testbed::Testbed;
use url::Url;

/// One run, ready to start. Secrets live only in [`Requests`] and never reach the report.
#[derive(Debug, Clone)]
pub struct RunSpec {
    pub run_id: RunId,
    pub project: ProjectSlug,
    pub revision: Revision,
    pub testbed: Testbed,
    /// What the report will carry.
    pub plan: Plan,
    pub requests: Requests,
    /// The load at which stability is to run, when the server, a baseline, the plan or a flag says so.
    pub pinned: Option<PinnedLoad>,
}

/// What goes over the wire.
#[derive(Clone)]
pub struct Requests {
    pub url: Url,
    pub method: String,
    /// In the order of the plan, `${NAME}` expanded.
    pub headers: Vec<(String, String)>,
    /// One or more request bodies; an empty body is sent without one.
    pub bodies: Vec<Vec<u8>>,
}

impl std::fmt::Debug for Requests {
    /// Header values and the query may be secret.
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let names: Vec<_> = self.headers.iter().map(|(name, _)| name).collect();
        let url = &self.url[..url::Position::AfterPath];
        write!(f, "{} {url} headers {names:?}, {} bodies", self.method, self.bodies.len())
    }
}

/// The load of the stability phase and, for the `pr` profile, of its one capacity step.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct PinnedLoad {
    pub workers: u32,
    pub choice: LoadChoice,
    /// The workers at which the baseline reached its capacity.
    pub capacity_workers: Option<u32>,
}

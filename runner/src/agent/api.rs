//! What the agent asks of the server: a job, that its lease goes on, and that it ended without a report.

use std::time::Duration;

use plimsoll_domain::ids::RunId;
use plimsoll_domain::job::{Assignment, Claim, Ended, Heartbeat, HeartbeatAnswer, Reach, RunRequest};
use reqwest::{Method, header};
use serde::Serialize;

use crate::upload::{Server, ServerError, parse};

/// How long an answer may take beyond what was asked to be waited.
const TIMEOUT: Duration = Duration::from_secs(10);
/// The longest answer that is read.
const MAX_ANSWER: usize = 64 << 10;
/// A member may have many projects.
const MAX_REACH: usize = 4 << 20;

impl Server {
    /// Waits for a job; `None` when there is none in that time.
    pub(super) async fn claim(&self, claim: &Claim) -> Result<Option<Assignment>, ServerError> {
        let timeout = Duration::from_secs(claim.wait_s.into()) + TIMEOUT;
        match self.tell("api/v1/agent/claim", claim, timeout).await?.as_slice() {
            [] => Ok(None),
            bytes => parse(bytes).map(Some),
        }
    }

    /// Whether the token may ask for jobs. A request without content is refused for that only once its token is accepted;
    /// it takes no job and gives none back. For which projects, [`Self::reach`] tells. One try.
    pub(super) async fn may_claim(&self) -> Result<(), ServerError> {
        let request = self.request(Method::POST, self.url("api/v1/agent/claim")?).timeout(TIMEOUT);
        let request = request.header(header::CONTENT_TYPE, "application/json");
        match self.once_within(request, MAX_ANSWER).await.map_err(|tried| tried.error) {
            Err(ServerError::Refused { status: 400 | 415 | 422, .. }) => Ok(()),
            Err(error) => Err(error),
            Ok(_) => Err(ServerError::Strange("it takes a request for a job without content".to_owned())),
        }
    }

    /// The projects whose runs the token may carry out; `None`: this server does not say. One try.
    pub(super) async fn reach(&self) -> Result<Option<Reach>, ServerError> {
        let request = self.request(Method::GET, self.url("api/v1/agent/reach")?).timeout(TIMEOUT);
        match self.once_within(request, MAX_REACH).await.map_err(|tried| tried.error) {
            Ok(bytes) => parse(&bytes).map(Some),
            Err(ServerError::Refused { status: 404 | 405, .. }) => Ok(None),
            Err(error) => Err(error),
        }
    }

    pub(super) async fn heartbeat(&self, run: RunId, heartbeat: &Heartbeat) -> Result<HeartbeatAnswer, ServerError> {
        parse(&self.tell(&format!("api/v1/agent/runs/{run}/heartbeat"), heartbeat, TIMEOUT).await?)
    }

    pub(super) async fn end(&self, run: RunId, ended: &Ended) -> Result<(), ServerError> {
        self.tell(&format!("api/v1/agent/runs/{run}/end"), ended, TIMEOUT).await.map(drop)
    }

    /// One try: who asks knows when to ask again.
    async fn tell(&self, path: &str, said: &impl Serialize, timeout: Duration) -> Result<Vec<u8>, ServerError> {
        let request = self.request(Method::POST, self.url(path)?).timeout(timeout).json(said);
        self.once_within(request, MAX_ANSWER).await.map_err(|tried| tried.error)
    }
}

/// Whether an assignment can be carried out: it comes over the network, and nothing in it is taken on trust.
pub(super) fn check(assignment: &Assignment) -> Result<(), String> {
    let request = RunRequest {
        project: assignment.project.clone(),
        revision: assignment.revision.clone(),
        plan: assignment.plan.clone(),
        plan_commit: assignment.plan_commit.clone(),
        profile: assignment.profile,
        labels: Default::default(),
        priority: None,
        supersedes: None,
        run_id: None,
    };
    request.check()?;
    match assignment.lease_s {
        2..=3_600 => Ok(()),
        odd => Err(format!("lease_s: {odd} is no length for a lease")),
    }
}

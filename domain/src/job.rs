//! A run that somebody asked for: its states, and what server and runner say to each other about it.
//!
//! Everything that another program sends is refused with unknown fields and checked by [`RunRequest::check`] or the
//! type's own bounds.

mod request;
pub mod say;

use std::collections::BTreeMap;

use jiff::Timestamp;
use serde::{Deserialize, Serialize};
use uuid::Uuid;

use crate::comparison::Verdict;
use crate::ids::{CommitSha, ProjectSlug, RunId};
use crate::plan::Profile;
use crate::report::PhaseKind;

pub use request::{Priority, RunRequest, Wanted, check_labels, check_name, check_path, check_ref};

/// Why a run is carried out.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
pub enum Kind {
    /// Somebody asked for this revision.
    Measure,
    /// The baseline of another run was missing.
    Backfill,
}

/// Where a job stands. `docs/architecture.md` draws the way from one to the next.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
pub enum State {
    /// Waits for a runner.
    Queued,
    /// A runner has it and prepares.
    Leased,
    /// The service is being measured.
    Running,
    /// Its snapshot is stored.
    Done,
    /// The runner says that it cannot be measured, and why.
    Failed,
    Cancelled,
    /// Its runner was lost as often as is tried, or none took it in time.
    Expired,
}

impl State {
    pub const ALL: [Self; 7] =
        [Self::Queued, Self::Leased, Self::Running, Self::Done, Self::Failed, Self::Cancelled, Self::Expired];

    pub fn name(self) -> &'static str {
        match self {
            Self::Queued => "queued",
            Self::Leased => "leased",
            Self::Running => "running",
            Self::Done => "done",
            Self::Failed => "failed",
            Self::Cancelled => "cancelled",
            Self::Expired => "expired",
        }
    }

    /// Whether nothing follows.
    pub fn is_final(self) -> bool {
        matches!(self, Self::Done | Self::Failed | Self::Cancelled | Self::Expired)
    }

    /// Whether a job may go from this state to `next` in one step. A report that arrives ends a job in any state that
    /// is not final: what was measured counts, whoever had the lease by then; an expired job too, since its report may
    /// have been waiting on the disk of a lost runner.
    pub fn may_become(self, next: Self) -> bool {
        match (self, next) {
            (Self::Expired, Self::Done) => true,
            (from, _) if from.is_final() => false,
            (Self::Queued, Self::Leased) | (Self::Leased, Self::Running) => true,
            // Released by its runner, or the runner was lost.
            (Self::Leased | Self::Running, Self::Queued) => true,
            (Self::Leased | Self::Running, Self::Failed) => true,
            (_, Self::Done | Self::Cancelled | Self::Expired) => true,
            _ => false,
        }
    }
}

/// One lease of one job: what a runner shows to be the one that has it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(transparent)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
pub struct LeaseId(pub Uuid);

/// A runner as it introduces itself.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, expecting = "an object with id, name, version, labels and projects")]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
pub struct RunnerFacts {
    /// Chosen once and kept on its disk.
    pub id: Uuid,
    pub name: String,
    pub version: String,
    pub labels: BTreeMap<String, String>,
    /// The projects it has a recipe for.
    pub projects: Vec<ProjectSlug>,
}

/// `POST /api/v1/agent/claim`: give me a job. Whatever the runner had before counts as given back: it has one at a
/// time, and asks only when it has none. One without projects only gives back.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, expecting = "an object with runner and wait_s")]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
pub struct Claim {
    pub runner: RunnerFacts,
    /// How long to wait for one, in seconds; the server may wait less.
    pub wait_s: u32,
}

/// The answer to a claim; without a job it is 204.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
pub struct Assignment {
    pub run_id: RunId,
    pub lease: LeaseId,
    /// The lease ends this long after the last heartbeat.
    pub lease_s: u32,
    pub attempt: u32,
    pub kind: Kind,
    pub project: ProjectSlug,
    pub revision: Wanted,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub plan: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub plan_commit: Option<CommitSha>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub profile: Option<Profile>,
}

/// `POST /api/v1/agent/runs/{run}/heartbeat`: renews the lease and tells how the run goes.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, expecting = "an object with lease, progress and draining")]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
pub struct Heartbeat {
    pub lease: LeaseId,
    /// What happened since the last one, in order; at most [`MAX_PROGRESS`].
    #[serde(default)]
    pub progress: Vec<Progress>,
    /// The runner was told to end, and takes no run after this one.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub draining: bool,
}

/// `GET /api/v1/agent/reach`: the projects whose runs the caller's token may carry out.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
pub struct Reach {
    /// All, also those that are not there yet.
    pub everywhere: bool,
    /// Else these.
    pub projects: Vec<ProjectSlug>,
}

impl Reach {
    pub fn covers(&self, project: &ProjectSlug) -> bool {
        self.everywhere || self.projects.contains(project)
    }
}

/// Entries of one heartbeat.
pub const MAX_PROGRESS: usize = 60;

/// How a run goes, about once a second. What is not known is absent.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, expecting = "an object with elapsed_ms, stage and figures")]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
pub struct Progress {
    /// Since the runner began with this attempt.
    pub elapsed_ms: u64,
    pub stage: Stage,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub workers: Option<u32>,
    /// Time left, as far as it is known.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub left_ms: Option<u64>,
    /// Share of the run that is done, 0 to 1.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub done: Option<f64>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub tps: Option<f64>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub p50_ms: Option<f64>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub p99_ms: Option<f64>,
    /// Failed requests of the last seconds.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub errors: Option<u64>,
    /// Of the busiest GPU of the service, 0 to 1.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub gpu_utilisation: Option<f64>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub gpu_memory_bytes: Option<u64>,
}

impl Progress {
    /// Of which only the stage is known.
    pub fn at(elapsed_ms: u64, stage: Stage) -> Self {
        Self {
            elapsed_ms,
            stage,
            workers: None,
            left_ms: None,
            done: None,
            tps: None,
            p50_ms: None,
            p99_ms: None,
            errors: None,
            gpu_utilisation: None,
            gpu_memory_bytes: None,
        }
    }

    /// Whether every figure is one.
    pub fn is_sound(&self) -> bool {
        let share = |value: Option<f64>| value.is_none_or(|v| (0.0..=1.0).contains(&v));
        let amount = |value: Option<f64>| value.is_none_or(|v| v.is_finite() && v >= 0.0);
        share(self.done)
            && share(self.gpu_utilisation)
            && [self.tps, self.p50_ms, self.p99_ms].into_iter().all(amount)
            && self.left_ms.is_none_or(|ms| ms <= MAX_MS)
            && self.elapsed_ms <= MAX_MS
    }
}

const MAX_MS: u64 = 30 * 24 * 3_600_000;

/// What a runner is doing with a job.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
pub enum Stage {
    Checkout,
    /// The service starts.
    Start,
    Smoke,
    WarmUp,
    Staircase,
    Stability,
    /// The service ends, the host is checked.
    CleanUp,
    Upload,
}

impl Stage {
    pub fn name(self) -> &'static str {
        match self {
            Self::Checkout => "checkout",
            Self::Start => "start of the service",
            Self::Smoke => PhaseKind::Smoke.name(),
            Self::WarmUp => PhaseKind::WarmUp.name(),
            Self::Staircase => PhaseKind::Staircase.name(),
            Self::Stability => PhaseKind::Stability.name(),
            Self::CleanUp => "clean-up",
            Self::Upload => "upload",
        }
    }

    /// Whether load is put on the service.
    pub fn is_measuring(self) -> bool {
        matches!(self, Self::Smoke | Self::WarmUp | Self::Staircase | Self::Stability)
    }
}

impl From<PhaseKind> for Stage {
    fn from(phase: PhaseKind) -> Self {
        match phase {
            PhaseKind::Smoke => Self::Smoke,
            PhaseKind::WarmUp => Self::WarmUp,
            PhaseKind::Staircase => Self::Staircase,
            PhaseKind::Stability => Self::Stability,
        }
    }
}

/// The answer to a heartbeat; 409 when the lease is another's or over, and the runner stops.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
pub struct HeartbeatAnswer {
    pub lease_s: u32,
    /// Why the runner should stop; then it says so by [`Ended`].
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub cancel: Option<String>,
}

/// `POST /api/v1/agent/runs/{run}/end`: it ends without a report. With one, the upload of the report ends it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, expecting = "an object with lease, how and reason")]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
pub struct Ended {
    pub lease: LeaseId,
    pub how: Ending,
    /// In a sentence, for people.
    pub reason: String,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
pub enum Ending {
    /// Another try would end the same way: the checkout, the service or the plan is at fault.
    Failed,
    /// The runner itself must stop or cannot: the job goes back to the queue and the attempt does not count.
    Released,
    /// As the server asked.
    Cancelled,
}

/// A run as the API and the pages tell it.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
pub struct Run {
    pub run_id: RunId,
    pub project: ProjectSlug,
    pub kind: Kind,
    pub state: State,
    /// What people call the revision.
    pub label: String,
    pub revision: Wanted,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub reason: Option<String>,
    pub attempt: u32,
    pub max_attempts: u32,
    pub labels: BTreeMap<String, String>,
    /// Only for those who have a scope for the project.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub requested_by: Option<String>,
    /// The name of the runner that has or had it; only for the same.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub runner: Option<String>,
    #[cfg_attr(feature = "openapi", schema(value_type = String, format = DateTime))]
    pub created_at: Timestamp,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[cfg_attr(feature = "openapi", schema(value_type = Option<String>, format = DateTime))]
    pub started_at: Option<Timestamp>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[cfg_attr(feature = "openapi", schema(value_type = Option<String>, format = DateTime))]
    pub finished_at: Option<Timestamp>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub progress: Option<Progress>,
    /// The newest live event.
    pub last_seq: u64,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub verdict: Option<Verdict>,
    /// The verdict in one sentence.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub sentence: Option<String>,
    /// The run's page, as a path: the snapshot's once there is one.
    pub path: String,
}

/// One thing that happened to a run, as `GET /api/v1/runs/{run}/events` streams it: `id` is `seq`, `event` the variant,
/// `data` this as JSON.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
pub struct LiveEvent {
    pub seq: u64,
    #[cfg_attr(feature = "openapi", schema(value_type = String, format = DateTime))]
    pub at: Timestamp,
    #[serde(flatten)]
    pub what: Live,
}

#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(tag = "type", rename_all = "snake_case")]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
pub enum Live {
    State {
        state: State,
        attempt: u32,
        /// Only for those who have a scope for the project.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        runner: Option<String>,
        #[serde(default, skip_serializing_if = "Option::is_none")]
        reason: Option<String>,
    },
    Progress(Progress),
    /// The snapshot is stored and judged.
    Verdict {
        verdict: Verdict,
        sentence: String,
        /// The snapshot's page.
        path: String,
    },
}

impl Live {
    /// The name of the variant on the wire.
    pub fn name(&self) -> &'static str {
        match self {
            Self::State { .. } => "state",
            Self::Progress(_) => "progress",
            Self::Verdict { .. } => "verdict",
        }
    }

    /// Whether nothing more is to be expected after it. A job that is `done` is followed by its verdict.
    pub fn is_last(&self) -> bool {
        match self {
            Self::State { state, .. } => state.is_final() && *state != State::Done,
            Self::Verdict { .. } => true,
            Self::Progress(_) => false,
        }
    }
}

#[cfg(test)]
mod tests;

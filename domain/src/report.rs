//! The report: everything one run measured, as versioned JSON. The runner writes it, the server stores it unchanged.
//!
//! Times are milliseconds since the start of the run unless the name says otherwise; latencies are microseconds in
//! histograms. What was not measured is absent, never 0.

mod check;
mod weight;

use std::collections::BTreeMap;

use jiff::Timestamp;
use serde::{Deserialize, Serialize};

use crate::finding::{Finding, Severity};
use crate::histogram::Histogram;
use crate::ids::{Digest, ProjectSlug, RunId};
use crate::outcome::{ErrorKind, Outcomes};
use crate::plan::Plan;
use crate::revision::Revision;
use crate::testbed::Testbed;

pub use check::ReportError;

/// The version this code writes, and the newest it reads.
pub const SCHEMA: u32 = 1;
/// A report larger than this is refused, on disk and on the wire.
pub const MAX_BYTES: usize = 64 << 20;
/// The code of the finding that the service stopped answering, which ended the run.
pub const SERVICE_GONE: &str = "service_gone";

#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
#[serde(deny_unknown_fields)]
pub struct Report {
    pub schema: u32,
    pub run_id: RunId,
    pub project: ProjectSlug,
    pub revision: Revision,
    pub testbed: Testbed,
    pub plan: Plan,
    /// [`Plan::digest`] of `plan`, repeated for readers without this code.
    pub plan_digest: Digest,
    pub generator: Generator,
    #[cfg_attr(feature = "openapi", schema(value_type = String, format = DateTime))]
    pub started_at: Timestamp,
    #[cfg_attr(feature = "openapi", schema(value_type = String, format = DateTime))]
    pub finished_at: Timestamp,
    pub status: Status,
    /// How the workers of the stability phase were chosen; absent when it did not run.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub load_choice: Option<LoadChoice>,
    pub phases: Vec<Phase>,
    #[serde(default)]
    pub findings: Vec<Finding>,
}

impl Report {
    /// Whether the figures may be compared: the run is complete and nothing outside the service spoiled it.
    pub fn is_valid(&self) -> bool {
        self.status == Status::Complete && self.findings.iter().all(|finding| finding.severity != Severity::Voids)
    }

    /// The finding that the service stopped answering under load, after a smoke phase that it passed. Such a run is
    /// complete in what it says about the service: it is judged, though never a baseline.
    pub fn died_under_load(&self) -> Option<&Finding> {
        let loaded = self.phases.iter().any(|phase| phase.kind != PhaseKind::Smoke);
        let gone = self.findings.iter().find(|finding| finding.code == SERVICE_GONE);
        gone.filter(|_| loaded && self.status == Status::Failed)
    }

    /// Lets go of the windows, which only show the course of a run. Figures, histograms and slices stay, and of each
    /// second of the steps that are judged the successes: a verdict against this report comes out as before.
    pub fn thin(&mut self) {
        for phase in &mut self.phases {
            let judged = phase.kind != PhaseKind::WarmUp;
            for step in phase.steps.iter_mut().filter(|step| step.ok_per_second.is_none()) {
                let windows = std::mem::take(&mut step.windows);
                let seconds = windows.iter().map(|window| window.ok);
                step.ok_per_second = Some(if judged { seconds.collect() } else { Vec::new() });
            }
        }
    }

    pub fn is_thinned(&self) -> bool {
        self.phases.iter().flat_map(|phase| &phase.steps).any(|step| step.ok_per_second.is_some())
    }

    pub fn phase(&self, kind: PhaseKind) -> Option<&Phase> {
        self.phases.iter().find(|phase| phase.kind == kind)
    }

    /// The soak's step.
    pub fn stability(&self) -> Option<&Step> {
        self.phase(PhaseKind::Stability)?.steps.first()
    }

    /// The measured one-worker step of the smoke phase.
    pub fn smoke(&self) -> Option<&Step> {
        self.phase(PhaseKind::Smoke)?.steps.iter().find(|step| step.role == StepRole::Single)
    }

    /// All steps that tell TPS against workers, by rising workers: the one-worker step and the staircase.
    pub fn staircase(&self) -> Vec<&Step> {
        let steps = self.phase(PhaseKind::Staircase).map_or(&[][..], |phase| &phase.steps);
        let mut all: Vec<&Step> = self.smoke().into_iter().chain(steps).collect();
        all.sort_by_key(|step| step.workers);
        all
    }
}

/// The program that made the load.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
#[serde(deny_unknown_fields)]
pub struct Generator {
    pub name: String,
    pub version: String,
    /// Whether it ran on the service's own host.
    pub shares_host: bool,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
#[serde(rename_all = "snake_case")]
pub enum Status {
    Complete,
    /// Stopped by a person or a signal; what was measured until then is kept.
    Interrupted,
    /// The service failed in a way that ended the run, for example in the smoke phase.
    Failed,
}

/// Why stability ran at the load at which it ran.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
#[serde(rename_all = "snake_case")]
pub enum LoadChoice {
    /// By the project's pinned load, asked of the server.
    Pinned,
    /// By the baseline report's load.
    Baseline,
    /// By the plan or a flag.
    Plan,
    /// As a fraction of this run's own knee.
    OwnKnee,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
#[serde(rename_all = "snake_case")]
pub enum PhaseKind {
    Smoke,
    WarmUp,
    Staircase,
    Stability,
}

impl PhaseKind {
    pub fn name(self) -> &'static str {
        match self {
            Self::Smoke => "smoke",
            Self::WarmUp => "warm-up",
            Self::Staircase => "staircase",
            Self::Stability => "stability",
        }
    }
}

#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
#[serde(deny_unknown_fields)]
pub struct Phase {
    pub kind: PhaseKind,
    pub start_ms: u64,
    pub duration_ms: u64,
    /// In the order in which they ran.
    pub steps: Vec<Step>,
}

/// Why a step was run.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
#[serde(rename_all = "snake_case")]
pub enum StepRole {
    /// Every request shape once, outputs checked; includes the cold start.
    Check,
    /// One worker, measured.
    Single,
    /// Warm-up, whatever the number of workers.
    WarmUp,
    /// Named by the plan.
    Planned,
    /// Past the plan's last step, in search of the plateau.
    Beyond,
    /// Between two others, in search of the knee.
    Bisect,
    /// The one capacity step of the `pr` profile.
    Capacity,
    /// The stability phase.
    Soak,
}

impl StepRole {
    /// How long the slices of a step are: a second in short steps, else ten. On those of the soak and of one worker a
    /// verdict rests, which wants many of them: these steps count as short up to ten minutes, all others up to one.
    pub fn slice_ms(self, duration_ms: u64) -> u64 {
        let short_ms = match self {
            Self::Single | Self::Soak => 600_000,
            Self::Check | Self::WarmUp | Self::Planned | Self::Beyond | Self::Bisect | Self::Capacity => 60_000,
        };
        if duration_ms < short_ms { 1_000 } else { 10_000 }
    }
}

/// One concurrency level held for a while.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
#[serde(deny_unknown_fields)]
pub struct Step {
    pub role: StepRole,
    /// Closed-loop workers, each on one connection.
    pub workers: u32,
    pub start_ms: u64,
    pub duration_ms: u64,
    /// The part that counts, in ms since the start of the step: after the ramp-up, without the edges.
    pub measured_from_ms: u64,
    pub measured_to_ms: u64,
    /// Connections opened during the step, the measured part or not.
    pub connections: u64,
    /// Requests *issued* in the measured part, followed to their end.
    pub outcomes: Outcomes,
    /// Requests *completed* in the measured part.
    pub completed: Completed,
    /// Latency of the successes among `outcomes`.
    pub latency: Histogram,
    /// Latency of all finished requests among `outcomes`, failures counted at the response timeout if they took less.
    pub latency_censored: Histogram,
    /// Time to the first byte of the successes.
    pub first_byte: Histogram,
    /// Length of a slice.
    pub slice_ms: u64,
    /// `latency` cut by the time of issue, from `measured_from_ms` on; the last slice may be shorter.
    pub slices: Vec<Histogram>,
    /// One per second from the start of the step, by the time of completion, edges included.
    pub windows: Vec<Window>,
    /// What is left of `windows` in a report that was thinned out: the successes of each second, from which the
    /// uncertainty of a throughput is computed.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub ok_per_second: Option<Vec<u64>>,
    /// Age of the oldest request that was cut, in µs.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub oldest_cut_us: Option<u64>,
    pub generator: GeneratorUse,
}

impl Step {
    /// Length of the measured part in seconds.
    pub fn measured_s(&self) -> f64 {
        self.measured_to_ms.saturating_sub(self.measured_from_ms) as f64 / 1_000.0
    }

    /// Successes of each whole second of the measured part, as far as they are known.
    pub fn measured_seconds(&self) -> Vec<u64> {
        let from = usize::try_from(self.measured_from_ms.div_ceil(1_000)).unwrap_or(usize::MAX);
        let to = usize::try_from(self.measured_to_ms / 1_000).unwrap_or(usize::MAX);
        match &self.ok_per_second {
            Some(seconds) => seconds.get(from..to.min(seconds.len())).unwrap_or_default().to_vec(),
            None => {
                let windows = self.windows.get(from..to.min(self.windows.len())).unwrap_or_default();
                windows.iter().map(|window| window.ok).collect()
            }
        }
    }

    /// Successes completed per second of the measured part; `None` when it has no length.
    pub fn tps(&self) -> Option<f64> {
        let seconds = self.measured_s();
        (seconds > 0.0).then(|| self.completed.ok as f64 / seconds)
    }
}

/// Completions inside the measured part, for throughput and Little's law.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
#[serde(deny_unknown_fields)]
pub struct Completed {
    pub ok: u64,
    pub failed: u64,
    /// Sum of the time that all of them were in the system (request and pause after a failed connect), in µs, each
    /// counted only for its part inside the measured part. Requests still open at the end of it count too.
    pub busy_us: u64,
}

/// One second of a step.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
#[serde(deny_unknown_fields)]
pub struct Window {
    pub ok: u64,
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub errors: BTreeMap<ErrorKind, u64>,
    /// Over the successes.
    pub latency_sum_us: u64,
    pub latency_max_us: u64,
}

/// What the load generator itself used during a step; `None` where it could not be read.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
#[serde(deny_unknown_fields)]
pub struct GeneratorUse {
    /// Busiest engine thread, fraction of one core.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub engine_cpu: Option<f64>,
    /// The whole host, fraction of all its cores, whoever used them.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub host_cpu: Option<f64>,
    /// How late the engine's timers fired, 99th percentile in µs.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub timer_lag_p99_us: Option<u64>,
}

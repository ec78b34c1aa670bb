//! What is sent to the service, and in which phases, with every default filled in.
//!
//! The file that people write (`plimsoll.toml`) is read by the runner; this is what it means. The report carries it
//! without request bodies and without secret header values.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

use crate::ids::Digest;

/// A plan as it was carried out.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
#[serde(deny_unknown_fields)]
pub struct Plan {
    pub profile: Profile,
    pub service: Service,
    pub workload: Workload,
    pub phases: Phases,
}

impl Plan {
    /// The digest that two runs must share to be comparable. It covers the workload, how requests are sent and the
    /// phases; not the service's origin (hosts differ) and not the profile: `pr` runs a part of the standard plan and
    /// keeps its digest.
    pub fn digest(&self) -> Digest {
        let Service { path, method, headers, connect_timeout_ms, response_timeout_ms, keep_alive, .. } = &self.service;
        Digest::of(&(
            (path, method, headers, connect_timeout_ms, response_timeout_ms, keep_alive),
            &self.workload,
            &self.phases,
        ))
    }

    /// How long stability lasts when this plan is carried out: `pr` cuts it to five minutes.
    pub fn executed_stability_ms(&self) -> u64 {
        self.cut_for_pr(self.phases.stability.duration_ms, 5 * 60_000)
    }

    /// How long the one capacity step of `pr` lasts; any other profile's steps have their full length.
    pub fn executed_step_ms(&self) -> u64 {
        self.cut_for_pr(self.phases.staircase.step_ms, 60_000)
    }

    fn cut_for_pr(&self, planned_ms: u64, most_ms: u64) -> u64 {
        if self.profile == Profile::Pr { planned_ms.min(most_ms) } else { planned_ms }
    }
}

/// How much of the plan is carried out, and how long its steps are.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
#[serde(rename_all = "snake_case")]
pub enum Profile {
    /// All phases in full.
    Standard,
    /// Stability at the pinned load and one capacity step: what a pull request waits for.
    Pr,
    /// All phases, short: about two minutes.
    Quick,
}

/// Where and how requests are sent.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
#[serde(deny_unknown_fields)]
pub struct Service {
    /// Scheme, host and port.
    pub origin: String,
    /// Path and query.
    pub path: String,
    pub method: String,
    /// As written in the plan (`${NAME}` unexpanded); values of headers that carry secrets are masked.
    pub headers: BTreeMap<String, String>,
    pub connect_timeout_ms: u64,
    pub response_timeout_ms: u64,
    pub keep_alive: bool,
}

/// The requests, by digest: bodies may be large and may be confidential.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
#[serde(deny_unknown_fields)]
pub struct Workload {
    /// Different request bodies; each is sent once in the smoke phase.
    pub requests: u32,
    /// SHA-256 over all bodies in order, each preceded by its length, as hexadecimal digits.
    pub sha256: String,
    pub expect: Expect,
}

/// What a right answer looks like.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
#[serde(deny_unknown_fields)]
pub struct Expect {
    pub status: u16,
    /// JSON pointer (RFC 6901) → what must be there.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub json: BTreeMap<String, Assertion>,
}

/// What must be found at a JSON pointer.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
#[serde(rename_all = "snake_case")]
pub enum Assertion {
    /// Anything, null included.
    Exists,
    /// This value; numbers compare by value.
    Equals(serde_json::Value),
    /// An array, object or string of this length.
    Length(u64),
}

#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
#[serde(deny_unknown_fields)]
pub struct Phases {
    pub smoke: Smoke,
    pub warm_up: WarmUp,
    pub staircase: Staircase,
    pub stability: Stability,
}

/// One worker: every request shape once, then measured for a while.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
#[serde(deny_unknown_fields)]
pub struct Smoke {
    pub duration_ms: u64,
}

/// Requests until latency is stable, then a moment at the highest concurrency. Kept apart from every figure.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
#[serde(deny_unknown_fields)]
pub struct WarmUp {
    pub min_requests: u32,
    pub max_duration_ms: u64,
    /// How long the highest concurrency of the staircase is held.
    pub top_ms: u64,
}

#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
#[serde(deny_unknown_fields)]
pub struct Staircase {
    /// Rising worker counts.
    pub workers: Vec<u32>,
    pub step_ms: u64,
    /// Over how long the workers that a step adds are started.
    pub ramp_up_ms: u64,
    /// Whether to go on doubling past the last step until TPS is flat, and to bisect the knee.
    pub search: bool,
    /// Length of a bisecting step.
    pub search_step_ms: u64,
    /// The search never goes above this.
    pub max_workers: u32,
    /// The fraction of failed requests past which a step does not count towards capacity.
    pub max_error_rate: f64,
}

#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
#[serde(deny_unknown_fields)]
pub struct Stability {
    pub duration_ms: u64,
    pub ramp_up_ms: u64,
    /// Workers, when the plan pins them itself.
    pub workers: Option<u32>,
    /// Fraction of the knee, when nothing pins the load.
    pub knee_fraction: f64,
}

//! The thresholds of a project, and what to do when in doubt (`[gate]` in `plimsoll.toml`).

use serde::{Deserialize, Serialize};

/// Relative changes are fractions in the metric's bad direction: P99 may rise by `p99_increase`, capacity may fall by
/// `capacity_decrease`. The error rate may rise by `error_rate_points`, an absolute difference.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
#[serde(deny_unknown_fields, expecting = "p99_increase, capacity_decrease and error_rate_points")]
pub struct Policy {
    pub p99_increase: f64,
    pub capacity_decrease: f64,
    pub error_rate_points: f64,
}

impl Default for Policy {
    fn default() -> Self {
        Self { p99_increase: 0.10, capacity_decrease: 0.05, error_rate_points: 0.001 }
    }
}

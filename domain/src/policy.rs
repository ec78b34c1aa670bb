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
    /// What a merge is told while the data do not decide. Left out where it is the default, so that older servers read it.
    #[serde(default, skip_serializing_if = "Doubt::is_default")]
    pub when_in_doubt: Doubt,
}

/// What becomes of a merge when there is no verdict on it: the figures do not decide, something outside the service spoiled
/// them, there is no baseline, or the run was lost.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
#[serde(rename_all = "snake_case")]
pub enum Doubt {
    /// It is blocked.
    #[default]
    Fail,
    /// It goes on, and is told so.
    Pass,
}

impl Doubt {
    pub const ALL: [Self; 2] = [Self::Fail, Self::Pass];

    pub fn name(self) -> &'static str {
        match self {
            Self::Fail => "fail",
            Self::Pass => "pass",
        }
    }

    fn is_default(&self) -> bool {
        *self == Self::default()
    }
}

impl Default for Policy {
    fn default() -> Self {
        Self { p99_increase: 0.10, capacity_decrease: 0.05, error_rate_points: 0.001, when_in_doubt: Doubt::default() }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_policy_of_an_earlier_version_fails_in_doubt_and_the_default_reads_as_one() {
        let json = r#"{"p99_increase":0.1,"capacity_decrease":0.05,"error_rate_points":0.001}"#;
        assert_eq!(serde_json::from_str::<Policy>(json).unwrap(), Policy::default());
        assert_eq!(serde_json::to_string(&Policy::default()).unwrap(), json);
        let lenient = Policy { when_in_doubt: Doubt::Pass, ..Policy::default() };
        let json = serde_json::to_string(&lenient).unwrap();
        assert!(json.contains(r#""when_in_doubt":"pass""#), "{json}");
        assert_eq!(serde_json::from_str::<Policy>(&json).unwrap(), lenient);
    }
}

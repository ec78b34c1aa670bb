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

/// A threshold that is none.
#[derive(Debug, Clone, Copy, PartialEq, thiserror::Error)]
#[error("{name}: {value} is not a fraction from 0 to {most}")]
pub struct NoThreshold {
    /// The field.
    pub name: &'static str,
    pub value: f64,
    pub most: f64,
}

impl Policy {
    /// The largest thresholds: a capacity falls by all of it at most, and no more requests fail than there are.
    pub const MOST: Self =
        Self { p99_increase: 100.0, capacity_decrease: 1.0, error_rate_points: 1.0, when_in_doubt: Doubt::Fail };

    pub fn check(&self) -> Result<(), NoThreshold> {
        let fields = [
            ("p99_increase", self.p99_increase, Self::MOST.p99_increase),
            ("capacity_decrease", self.capacity_decrease, Self::MOST.capacity_decrease),
            ("error_rate_points", self.error_rate_points, Self::MOST.error_rate_points),
        ];
        match fields.into_iter().find(|(_, value, most)| !(0.0..=*most).contains(value)) {
            None => Ok(()),
            Some((name, value, most)) => Err(NoThreshold { name, value, most }),
        }
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

    #[test]
    fn a_threshold_is_a_fraction_and_the_first_that_is_none_is_named() {
        let with = |p99_increase, capacity_decrease| Policy { p99_increase, capacity_decrease, ..Policy::default() };
        for fits in [Policy::default(), Policy::MOST, with(0.0, 0.0)] {
            assert_eq!(fits.check(), Ok(()));
        }
        for wrong in [-0.1, f64::NAN, f64::INFINITY, 100.1] {
            assert_eq!(with(wrong, 2.0).check().unwrap_err().name, "p99_increase");
        }
        let why = with(0.1, 1.5).check().unwrap_err().to_string();
        assert_eq!(why, "capacity_decrease: 1.5 is not a fraction from 0 to 1");
    }
}

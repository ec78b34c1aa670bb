//! A comparison: one candidate beside its baseline, with the verdict. Page, comment, check, exit code and JSON all
//! render this value.

use serde::{Deserialize, Serialize};

use crate::finding::Finding;
use crate::ids::{Digest, ProjectSlug, RunId};
use crate::policy::Policy;

#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
#[serde(rename_all = "snake_case")]
pub enum Verdict {
    Pass,
    Regressed,
    /// The data do not decide.
    Inconclusive,
    /// Something outside the service spoiled the figures, or the two do not compare.
    Invalid,
    NoBaseline,
}

impl Verdict {
    /// The exit code of every command that ends with a verdict.
    pub fn exit_code(self) -> u8 {
        match self {
            Self::Pass => 0,
            Self::Regressed => 1,
            Self::Invalid => 3,
            Self::Inconclusive => 4,
            Self::NoBaseline => 6,
        }
    }

    /// The heading's word, with its mark so that colour is never alone.
    pub fn mark(self) -> &'static str {
        match self {
            Self::Pass => "●",
            Self::Regressed => "▲",
            Self::Inconclusive => "◇",
            Self::Invalid => "○",
            Self::NoBaseline => "–",
        }
    }

    pub fn word(self) -> &'static str {
        match self {
            Self::Pass => "Pass",
            Self::Regressed => "Regressed",
            Self::Inconclusive => "Inconclusive",
            Self::Invalid => "Invalid",
            Self::NoBaseline => "No baseline",
        }
    }

    /// The name in JSON, URLs and databases.
    pub fn name(self) -> &'static str {
        match self {
            Self::Pass => "pass",
            Self::Regressed => "regressed",
            Self::Inconclusive => "inconclusive",
            Self::Invalid => "invalid",
            Self::NoBaseline => "no_baseline",
        }
    }
}

#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
#[serde(deny_unknown_fields)]
pub struct Comparison {
    pub schema: u32,
    pub verdict: Verdict,
    /// The verdict in one plain sentence.
    pub sentence: String,
    /// With fewer than ten unchanged pairs behind the noise estimate, a `regressed` is provisional.
    pub provisional: bool,
    pub project: ProjectSlug,
    pub baseline: Option<Side>,
    pub candidate: Side,
    /// Gated metrics first, each in a fixed order.
    pub metrics: Vec<MetricComparison>,
    /// Why it is invalid, undecided or different: the evidence beside the figures.
    pub findings: Vec<Finding>,
    pub policy: Policy,
}

/// One side: a run, or several of the same revision pooled.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
#[serde(deny_unknown_fields)]
pub struct Side {
    /// The newest first.
    pub run_ids: Vec<RunId>,
    /// The revision's label.
    pub revision: String,
    pub commit: Option<String>,
    pub testbed: String,
    pub testbed_fingerprint: Digest,
    pub plan_digest: Digest,
    /// Workers of the stability phase.
    pub stability_workers: Option<u32>,
    /// Why this baseline was chosen, as a phrase; absent on the candidate.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub chosen_because: Option<String>,
}

/// A metric's name on the wire, in policies and in tables.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
#[serde(rename_all = "snake_case")]
pub enum Metric {
    /// P99 latency of the stability phase, ms.
    P99,
    /// Highest TPS within the error limit.
    Capacity,
    /// Failed share of the stability phase, a fraction.
    ErrorRate,
    P50,
    P95,
    /// Longest latency of the stability phase, ms.
    Max,
    /// TPS of the stability phase.
    Tps,
    /// The knee: workers that reach 95 % of the capacity.
    Knee,
    /// Median latency of one worker, ms.
    SingleLatency,
}

impl Metric {
    pub fn name(self) -> &'static str {
        match self {
            Self::P99 => "p99",
            Self::Capacity => "capacity",
            Self::ErrorRate => "error_rate",
            Self::P50 => "p50",
            Self::P95 => "p95",
            Self::Max => "max",
            Self::Tps => "tps",
            Self::Knee => "knee",
            Self::SingleLatency => "single_latency",
        }
    }

    /// Which way is better.
    pub fn better(self) -> Better {
        match self {
            Self::Capacity | Self::Tps | Self::Knee => Better::Higher,
            Self::P99 | Self::ErrorRate | Self::P50 | Self::P95 | Self::Max | Self::SingleLatency => Better::Lower,
        }
    }

    pub fn unit(self) -> Unit {
        match self {
            Self::P99 | Self::P50 | Self::P95 | Self::Max | Self::SingleLatency => Unit::Ms,
            Self::Capacity | Self::Tps => Unit::Tps,
            Self::ErrorRate => Unit::Fraction,
            Self::Knee => Unit::Workers,
        }
    }
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
#[serde(rename_all = "snake_case")]
pub enum Better {
    Higher,
    Lower,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
#[serde(rename_all = "snake_case")]
pub enum Unit {
    Ms,
    Tps,
    Fraction,
    Workers,
}

#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
#[serde(deny_unknown_fields)]
pub struct MetricComparison {
    pub name: Metric,
    pub phase: crate::report::PhaseKind,
    pub unit: Unit,
    pub better: Better,
    /// Gated metrics decide the verdict; the others are shown.
    pub gated: bool,
    pub baseline: Option<f64>,
    pub candidate: Option<f64>,
    /// candidate / baseline − 1, a fraction; for the error rate the difference of the two fractions. Absent when it
    /// cannot be formed, for example from a baseline of 0.
    pub change: Option<f64>,
    /// Two-sided 90 % interval of `change`: its worse end is the one-sided 95 % bound that the gate asks about.
    pub interval: Option<[f64; 2]>,
    /// The allowed change, signed in the metric's bad direction; absent on observed metrics.
    pub threshold: Option<f64>,
    pub verdict: MetricVerdict,
    /// The standard deviation between runs of the same code (log scale) that went into the interval.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub sigma: Option<f64>,
    /// Why a figure is missing or undecided.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub note: Option<String>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
#[serde(rename_all = "snake_case")]
pub enum MetricVerdict {
    Pass,
    Regressed,
    Inconclusive,
    /// Shown, not judged.
    Observed,
}

/// A change in words: never colour or sign alone.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Trend {
    Better,
    Worse,
    WithinNoise,
    Undecided,
}

impl Trend {
    pub fn word(self) -> &'static str {
        match self {
            Self::Better => "better",
            Self::Worse => "worse",
            Self::WithinNoise => "within noise",
            Self::Undecided => "undecided",
        }
    }
}

impl MetricComparison {
    /// What the interval says about the change: outside no-change on the bad or the good side, across it, or, for a
    /// gated metric whose data do not decide, undecided. `None` without a change.
    pub fn trend(&self) -> Option<Trend> {
        let [low, high] = self.interval?;
        let (worse, better) = match self.better {
            Better::Lower => (low > 0.0, high < 0.0),
            Better::Higher => (high < 0.0, low > 0.0),
        };
        Some(match (worse, better) {
            (true, _) => Trend::Worse,
            (_, true) => Trend::Better,
            _ if self.verdict == MetricVerdict::Inconclusive => Trend::Undecided,
            _ => Trend::WithinNoise,
        })
    }
}

//! How much runs of the same code differ from each other on one testbed and plan.

use serde::{Deserialize, Serialize};

/// The standard deviation of one run around the truth, on the log scale, with the number of unchanged pairs behind it.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
pub struct Sigma {
    pub value: f64,
    pub pairs: u32,
}

/// Per gated metric. The default is the floor with nothing learnt yet.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
pub struct Noise {
    pub latency: Sigma,
    pub throughput: Sigma,
}

/// No testbed is believed to be quieter than this for latencies.
pub const LATENCY_FLOOR: f64 = 0.02;
/// No testbed is believed to be quieter than this for throughput.
pub const THROUGHPUT_FLOOR: f64 = 0.005;
/// Until a testbed's noise is learnt, runs of the same code may differ by this much on it for all that is known: a
/// regression must then stand out of three times as much, or of three times σ if that is more.
pub const LATENCY_UNLEARNT: f64 = 0.04;
/// The same for throughput.
pub const THROUGHPUT_UNLEARNT: f64 = 0.025;
/// With fewer unchanged pairs than this a `regressed` is provisional.
pub const ENOUGH_PAIRS: u32 = 10;

impl Default for Noise {
    fn default() -> Self {
        Self {
            latency: Sigma { value: LATENCY_FLOOR, pairs: 0 },
            throughput: Sigma { value: THROUGHPUT_FLOOR, pairs: 0 },
        }
    }
}

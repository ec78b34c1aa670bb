//! `plimsoll compare`: the verdict on two reports, without a server.

use plimsoll_domain::comparison::Comparison;
use plimsoll_domain::noise::Noise;
use plimsoll_domain::policy::Policy;
use plimsoll_domain::report::Report;
use plimsoll_domain::verdict::{Baseline, judge};

use super::Done;
use super::args::CompareArgs;
use crate::exit::{Exit, Failure};
use crate::plan;
use crate::report::comparison;
use crate::report::paint::Paint;
use crate::spool;

pub(super) fn execute(args: &CompareArgs, paint: Paint) -> Result<Done, Failure> {
    let policy = match &args.plan {
        Some(path) => plan::load_gate(path)?.1,
        None => Policy::default(),
    };
    let baseline = spool::read(&args.baseline)?;
    let candidate = spool::read(&args.candidate)?;
    let comparison = two(&baseline, &candidate, &policy);
    let exit = Exit::from(comparison.verdict);
    let text = format!("{}\nExit        {}\n", comparison::text(&comparison, paint), exit.ends());
    Ok(Done { exit, text, json: serde_json::to_value(&comparison).expect("wire types serialize") })
}

/// Judges one run against another. Nothing is known of how much runs differ on their testbed.
pub(super) fn two(baseline: &Report, candidate: &Report, policy: &Policy) -> Comparison {
    let baseline = Baseline { runs: vec![baseline], chosen_because: None };
    judge(Some(&baseline), candidate, policy, &Noise::default())
}

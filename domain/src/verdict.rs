//! The verdict rule.

use crate::comparison::{Comparison, Side, Verdict};
use crate::noise::Noise;
use crate::policy::Policy;
use crate::report::Report;

/// What a candidate is compared with: runs of one revision, the newest first.
#[derive(Debug, Clone)]
pub struct Baseline<'a> {
    pub runs: Vec<&'a Report>,
    pub chosen_because: Option<String>,
}

/// Judges `candidate` against `baseline`.
pub fn judge(baseline: Option<&Baseline<'_>>, candidate: &Report, policy: &Policy, _noise: &Noise) -> Comparison {
    let side = |runs: &[&Report], chosen_because| {
        let newest = runs[0];
        Side {
            run_ids: runs.iter().map(|run| run.run_id).collect(),
            revision: newest.revision.label_or_unnamed(),
            commit: newest.revision.commit.as_ref().map(ToString::to_string),
            testbed: newest.testbed.label(),
            testbed_fingerprint: newest.testbed.fingerprint(),
            plan_digest: newest.plan_digest.clone(),
            stability_workers: newest.stability().map(|step| step.workers),
            chosen_because,
        }
    };
    Comparison {
        schema: 1,
        verdict: Verdict::NoBaseline,
        sentence: String::new(),
        provisional: false,
        project: candidate.project.clone(),
        baseline: baseline.map(|baseline| side(&baseline.runs, baseline.chosen_because.clone())),
        candidate: side(&[candidate], None),
        metrics: Vec::new(),
        findings: Vec::new(),
        policy: policy.clone(),
    }
}

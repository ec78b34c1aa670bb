//! The verdict rule. `docs/methodology.md` tells it in prose.

mod comparable;
mod errors;
mod gate;
mod measure;
mod ratio;
mod row;
mod shift;
#[cfg(test)]
mod tests;

use crate::comparison::{Comparison, MetricVerdict, Side, Verdict};
use crate::finding::{Finding, Severity};
use crate::noise::{ENOUGH_PAIRS, Noise};
use crate::policy::Policy;
use crate::report::Report;
use crate::{format, sentence};

pub use measure::{PREPARED, Run};

/// What a candidate is compared with: runs of one revision, the newest first.
#[derive(Debug, Clone)]
pub struct Baseline<'a> {
    pub runs: Vec<&'a Report>,
    pub chosen_because: Option<String>,
}

/// Judges `candidate` against `baseline`. Runs of the baseline that are invalid or do not compare are left out; when
/// none is left, or the candidate itself is invalid, the verdict is [`Verdict::Invalid`] with the reasons as findings.
/// A candidate whose service died under load is [`Verdict::Regressed`], without any metric to show it.
pub fn judge(baseline: Option<&Baseline<'_>>, candidate: &Report, policy: &Policy, noise: &Noise) -> Comparison {
    let runs: Vec<Run> = baseline.iter().flat_map(|baseline| &baseline.runs).map(|run| Run::of(run)).collect();
    let because = baseline.and_then(|baseline| baseline.chosen_because.clone());
    judge_runs(&runs.iter().collect::<Vec<_>>(), because, &Run::of(candidate), policy, noise)
}

/// The same of runs that are prepared; without any in `given` there is no baseline.
pub fn judge_runs(
    given: &[&Run],
    chosen_because: Option<String>,
    candidate: &Run,
    policy: &Policy,
    noise: &Noise,
) -> Comparison {
    let fit = comparable::fit(given, candidate);
    let used = if fit.is_empty() { &given[..given.len().min(1)] } else { &fit[..] };
    let mut findings = comparable::findings(given, candidate);
    let invalid = findings.iter().any(|finding| finding.severity == Severity::Voids);
    let died = !invalid && comparable::died(given, candidate);
    let metrics = if invalid || died || used.is_empty() {
        let unjudged = invalid.then_some("not judged: the runs do not compare");
        let why = unjudged.or(died.then_some("not judged: the service stopped answering before the end"));
        gate::listed(used, candidate, policy, why)
    } else {
        gate::judged(used, candidate, policy, noise)
    };
    let any = |verdict| metrics.iter().any(|metric| metric.gated && metric.verdict == verdict);
    let verdict = if invalid {
        Verdict::Invalid
    } else if used.is_empty() {
        Verdict::NoBaseline
    } else if died || any(MetricVerdict::Regressed) {
        Verdict::Regressed
    } else if any(MetricVerdict::Inconclusive) {
        Verdict::Inconclusive
    } else {
        Verdict::Pass
    };
    // An error rate needs no noise between runs to be learnt first.
    let firm = metrics
        .iter()
        .filter(|metric| metric.verdict == MetricVerdict::Regressed)
        .any(|metric| row::sigma(metric.name, noise).is_none_or(|sigma| sigma.pairs >= ENOUGH_PAIRS));
    let provisional = verdict == Verdict::Regressed && !firm && !died;
    if provisional {
        findings.push(unlearnt(noise));
    }
    let mut comparison = Comparison {
        schema: 1,
        verdict,
        sentence: String::new(),
        provisional,
        project: candidate.head.project.clone(),
        baseline: (!used.is_empty()).then(|| side(used, candidate, chosen_because)),
        candidate: side(&[candidate], candidate, None),
        metrics,
        findings,
        policy: policy.clone(),
    };
    comparison.sentence = sentence::of(&comparison);
    comparison
}

fn side(runs: &[&Run], candidate: &Run, chosen_because: Option<String>) -> Side {
    let newest = &runs[0].head;
    // Of a pool measured at several loads, the one that compares.
    let like = runs.iter().find(|run| run.workers == candidate.workers).unwrap_or(&runs[0]);
    Side {
        run_ids: runs.iter().map(|run| run.head.run_id).collect(),
        revision: newest.revision.label_or_unnamed(),
        commit: newest.revision.commit.as_ref().map(ToString::to_string),
        testbed: newest.testbed.label(),
        testbed_fingerprint: newest.testbed.fingerprint(),
        plan_digest: newest.plan_digest.clone(),
        stability_workers: like.workers,
        chosen_because,
    }
}

fn unlearnt(noise: &Noise) -> Finding {
    let pairs = noise.latency.pairs.min(noise.throughput.pairs);
    Finding::notice(
        "provisional",
        format!(
            "How much runs of the same code differ on this testbed is learnt from {} unchanged pairs; {} make a \
             regression more than provisional",
            format::count(pairs.into()),
            ENOUGH_PAIRS
        ),
    )
    .with_advice("Measure both revisions once more if the change is a surprise.")
}

//! Which runs may be compared at all.

use super::measure::Run;
use crate::finding::{Finding, Severity};
use crate::report::{Report, Status};

/// The runs of the baseline that are valid and compare with the candidate, in their order.
pub(super) fn fit<'a>(baseline: &[&'a Run], candidate: &Run) -> Vec<&'a Run> {
    baseline
        .iter()
        .copied()
        .filter(|run| run.head.is_valid() && difference(&run.head, &candidate.head).is_none())
        .collect()
}

/// Whether the service died under the candidate's load while a run of the baseline that compares went to its end.
pub(super) fn died(baseline: &[&Run], candidate: &Run) -> bool {
    candidate.died && !fit(baseline, candidate).is_empty()
}

/// What stands in the way first (it voids the comparison), then what the candidate's run noticed.
pub(super) fn findings(baseline: &[&Run], candidate: &Run) -> Vec<Finding> {
    let head = &candidate.head;
    let own = |severity| head.findings.iter().filter(move |finding| finding.severity == severity).cloned();
    let mut all: Vec<Finding> = own(Severity::Voids).collect();
    let incomplete_run = incomplete(head.status).filter(|_| !died(baseline, candidate));
    all.extend(incomplete_run.map(|how| {
        let advice = match head.status {
            Status::Failed => "See in the service's log what ended it, then measure again.",
            Status::Complete | Status::Interrupted => "Measure again and let it finish.",
        };
        Finding::voids(status_code(head.status), format!("the run {how}"), advice)
    }));
    if let Some(newest) = baseline.first()
        && fit(baseline, candidate).is_empty()
    {
        all.extend(unfit(&newest.head, head));
    }
    all.extend(own(Severity::Notice));
    all
}

/// Why the newest run of the baseline is of no use.
fn unfit(run: &Report, candidate: &Report) -> Option<Finding> {
    let label = run.revision.label_or_unnamed();
    if let Some(finding) = difference(run, candidate) {
        return Some(finding);
    }
    let why = run.findings.iter().find(|finding| finding.severity == Severity::Voids).map(|f| f.message.clone());
    let why = why.or_else(|| incomplete(run.status).map(|how| format!("it {how}")))?;
    let message = format!("the baseline {label} is invalid: {}", why.trim_end_matches('.'));
    Some(Finding::voids("baseline_invalid", message, format!("Measure {label} again, or choose another baseline.")))
}

fn difference(run: &Report, candidate: &Report) -> Option<Finding> {
    if run.project != candidate.project {
        let message = format!("the runs belong to two projects, {} and {}", run.project, candidate.project);
        return Some(Finding::voids("different_project", message, "Compare two runs of one project."));
    }
    if run.plan_digest != candidate.plan_digest {
        let message = format!("the runs follow two plans, {} and {}", run.plan_digest, candidate.plan_digest);
        return Some(Finding::voids("different_plan", message, "Measure both revisions with the same plan."));
    }
    if run.testbed.fingerprint() != candidate.testbed.fingerprint() {
        let (one, two) = (run.testbed.label(), candidate.testbed.label());
        let named = if one == two {
            format!("{one} ({}) and {two} ({})", run.testbed.fingerprint(), candidate.testbed.fingerprint())
        } else {
            format!("{one} and {two}")
        };
        let message = format!("the runs come from two testbeds, {named}");
        return Some(Finding::voids("different_testbed", message, "Measure both revisions on the same testbed."));
    }
    None
}

fn incomplete(status: Status) -> Option<&'static str> {
    match status {
        Status::Complete => None,
        Status::Interrupted => Some("was interrupted before its end"),
        Status::Failed => Some("ended in a failure of the service"),
    }
}

fn status_code(status: Status) -> &'static str {
    match status {
        Status::Complete => "complete",
        Status::Interrupted => "interrupted",
        Status::Failed => "failed",
    }
}

//! What differs between two runs besides their figures.

use plimsoll_domain::format::{self, NARROW};
use plimsoll_domain::verdict::Run;

use crate::charts::Datum;
use crate::web::view::minute;

pub(super) struct Changes {
    pub(super) groups: Vec<Group>,
}

pub(super) struct Group {
    pub(super) title: &'static str,
    pub(super) facts: Vec<Fact>,
}

pub(super) struct Fact {
    pub(super) name: String,
    pub(super) baseline: Datum,
    pub(super) candidate: Datum,
    pub(super) changed: bool,
}

/// Facts by name; `None` is not known.
type Known = Vec<(String, Option<String>)>;

impl Changes {
    pub(super) fn between(base: &Run, cand: &Run) -> Self {
        let facts = |of: fn(&Run) -> Known| pair(of(base), of(cand));
        let groups = vec![
            Group { title: "Revision", facts: facts(revision) },
            Group { title: "Plan", facts: facts(plan) },
            Group { title: "Testbed", facts: facts(testbed) },
            Group { title: "Run", facts: facts(run) },
        ];
        Self { groups }
    }

    /// Which groups hold a change; the runs themselves always differ.
    pub(super) fn lead(&self) -> String {
        let changed = |group: &&Group| group.title != "Run" && group.facts.iter().any(|fact| fact.changed);
        let (changed, same): (Vec<&Group>, Vec<&Group>) = self.groups.iter().partition(changed);
        let names = |groups: &[&Group]| -> String {
            let names: Vec<String> =
                groups.iter().filter(|g| g.title != "Run").map(|g| g.title.to_lowercase()).collect();
            names.join(" and ")
        };
        match (changed.len(), names(&changed), names(&same)) {
            (0, ..) => "Neither revision nor plan nor testbed: both runs measured the same.".to_owned(),
            (_, changed, same) if same.is_empty() => format!("The {} differ.", changed.replace(" and ", ", the ")),
            (1, changed, same) => format!("The {changed} changed; {same} did not."),
            (_, changed, same) => format!("The {changed} changed; the {same} did not."),
        }
    }
}

/// Facts by name, in the order of the baseline, then what only the candidate has.
fn pair(base: Known, cand: Known) -> Vec<Fact> {
    let datum =
        |value: Option<&String>| value.map_or_else(|| Datum::Absent("not known".to_owned()), |v| Datum::Is(v.clone()));
    let find = |list: &[(String, Option<String>)], name: &str| -> Option<String> {
        list.iter().find(|(n, _)| n == name).and_then(|(_, value)| value.clone())
    };
    let extra = cand.iter().filter(|(name, _)| !base.iter().any(|(n, _)| n == name));
    let names: Vec<String> = base.iter().chain(extra).map(|(name, _)| name.clone()).collect();
    let facts = names.into_iter().filter_map(|name| {
        let (old, new) = (find(&base, &name), find(&cand, &name));
        // A fact that neither side knows says nothing.
        (old.is_some() || new.is_some()).then(|| Fact {
            baseline: datum(old.as_ref()),
            candidate: datum(new.as_ref()),
            changed: old != new,
            name,
        })
    });
    facts.collect()
}

fn revision(of: &Run) -> Known {
    let report = of.head();
    let revision = &report.revision;
    let dirty = if revision.dirty { ", with uncommitted changes" } else { "" };
    vec![
        fact("Tag", revision.tag.clone()),
        fact("Commit", revision.commit.as_ref().map(|commit| format!("{}{dirty}", commit.short()))),
        fact("Branch", revision.branch.clone()),
        fact("Pull request", revision.pull_request.map(|number| format!("#{number}"))),
        fact("Engine", revision.engine.clone()),
    ]
}

fn plan(of: &Run) -> Known {
    let report = of.head();
    let (plan, service) = (&report.plan, &report.plan.service);
    let steps: Vec<String> = plan.phases.staircase.workers.iter().map(ToString::to_string).collect();
    let seconds = |ms: u64| format::duration(ms as f64 / 1_000.0);
    vec![
        fact("Digest", Some(report.plan_digest.to_string())),
        fact("Request", Some(format!("{} {}", service.method, service.path))),
        fact("Workload", Some(format!("{} bodies, {}", plan.workload.requests, &short(&plan.workload.sha256)))),
        fact("Staircase", Some(format!("{} workers", steps.join(", ")))),
        fact("Stability", Some(seconds(plan.phases.stability.duration_ms))),
        fact("Pinned load", of.soak().map(|(workers, _)| format::workers(workers))),
    ]
}

fn testbed(of: &Run) -> Known {
    let report = of.head();
    let bed = &report.testbed;
    let gib = |gib: u32| format!("{gib}{NARROW}GiB");
    let gpu = bed.gpu.as_ref();
    let mut facts = vec![
        fact("Fingerprint", Some(bed.fingerprint().to_string())),
        fact("Name", bed.name.clone()),
        fact("GPU", gpu.map(|gpu| format!("{} ×{}", gpu.model, gpu.count))),
        fact("GPU memory", gpu.and_then(|gpu| gpu.memory_gib).map(gib)),
        fact("Driver", gpu.and_then(|gpu| gpu.driver.clone())),
        fact("CPU", bed.cpu_model.clone()),
        fact("Cores", bed.cpu_cores.map(|cores| cores.to_string())),
        fact("Memory", bed.memory_gib.map(gib)),
        fact("System", bed.os.clone()),
    ];
    facts.extend(bed.labels.iter().map(|(name, value)| fact(name, Some(value.clone()))));
    facts
}

fn run(of: &Run) -> Known {
    let report = of.head();
    let generator = &report.generator;
    vec![
        fact("Measured", Some(minute(report.started_at))),
        fact("Load generator", Some(format!("{} {}", generator.name, generator.version))),
    ]
}

fn fact(name: &str, value: Option<String>) -> (String, Option<String>) {
    (name.to_owned(), value)
}

fn short(digits: &str) -> String {
    digits.chars().take(12).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn facts_pair_by_name_and_unknown_ones_are_left_out() {
        let some = |text: &str| Some(text.to_owned());
        let base = vec![fact("Tag", some("v1")), fact("Branch", None), fact("zone", some("a"))];
        let cand = vec![fact("Tag", some("v2")), fact("Branch", None), fact("rack", some("7"))];
        let facts = pair(base, cand);
        let seen: Vec<(&str, bool)> = facts.iter().map(|fact| (fact.name.as_str(), fact.changed)).collect();
        assert_eq!(seen, [("Tag", true), ("zone", true), ("rack", true)]);
        assert_eq!(facts[1].candidate, Datum::Absent("not known".to_owned()));
    }
}

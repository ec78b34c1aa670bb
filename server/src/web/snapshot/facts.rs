//! What was sent, where, by what: pairs of a name and a value.

use plimsoll_domain::figures::Figures;
use plimsoll_domain::format::{self, NARROW};
use plimsoll_domain::plan::Profile;
use plimsoll_domain::report::{LoadChoice, PhaseKind, Report, Status};

use super::Snapshot;
use crate::charts::Datum;
use crate::web::view::{Link, minute};

type Pairs = Vec<(String, Datum)>;

/// The line below the answer.
pub(super) fn headline(of: &Snapshot, compared: Option<&str>) -> Vec<Link> {
    let side = of.comparison.as_ref().and_then(|c| c.baseline.as_ref());
    let compare = compared.zip(side).map(|(href, side)| Link::to(format!("Compare with {}", side.revision), href));
    let state = match (of.report.status, of.row.valid) {
        (Status::Interrupted, _) => "Stopped before its end: what was measured until then",
        (Status::Failed, _) => "The service failed in a way that ended the run",
        (Status::Complete, false) => "An invalid run: its figures count for nothing",
        (Status::Complete, true) => "A valid run: all checks of the load generator passed",
    };
    let gates = (!of.row.gates).then(|| Link::none("Its verdict decides no check, and it is no baseline"));
    compare.into_iter().chain([Link::none(state)]).chain(gates).collect()
}

/// Checks that found nothing.
pub(super) fn in_order(report: &Report, figures: &Figures) -> Pairs {
    let mut pairs = Pairs::new();
    let found = |code: &str| report.findings.iter().any(|finding| finding.code == code);
    if let Some(soak) = figures.stability.as_ref().map(|soak| &soak.step)
        && !found("keep_alive_lost")
    {
        let connections = format!(
            "{} connections for {} requests",
            format::count(soak.connections),
            format::count(soak.outcomes.finished())
        );
        pairs.push(is("Connections", connections));
    }
    if let Some(warm_up) = report.phase(PhaseKind::WarmUp) {
        let requests: u64 = warm_up.steps.iter().map(|step| step.outcomes.finished()).sum();
        let slowest = warm_up.steps.iter().filter_map(|step| step.latency.max_ms()).reduce(f64::max);
        let slowest = slowest.map(|ms| format!(", the slowest took {}", format::latency(ms))).unwrap_or_default();
        pairs.push(is("Warm-up kept apart", format!("{} requests{slowest}", format::count(requests))));
    }
    let counted =
        || report.phases.iter().filter(|phase| phase.kind != PhaseKind::WarmUp).flat_map(|phase| &phase.steps);
    let cpu = counted().filter_map(|step| step.generator.engine_cpu).reduce(f64::max);
    let lag = counted().filter_map(|step| step.generator.timer_lag_p99_us).max();
    let at_fault = ["engine_cpu", "host_cpu", "timer_lag", "client_resource"].into_iter().any(found);
    if let Some(cpu) = cpu.filter(|_| !at_fault) {
        let lag = lag.map(|us| format!("; timers late by {} at P99", format::latency(us as f64 / 1_000.0)));
        let text = format!("{}{NARROW}% of a core at most{}", format::percent(cpu), lag.unwrap_or_default());
        pairs.push(is("Load generator", text));
    }
    pairs
}

pub(super) fn plan(report: &Report) -> Pairs {
    let plan = &report.plan;
    let (service, phases) = (&plan.service, &plan.phases);
    let seconds = |ms: u64| format::duration(ms as f64 / 1_000.0);
    let steps: Vec<String> = phases.staircase.workers.iter().map(ToString::to_string).collect();
    let profile = match plan.profile {
        Profile::Standard => "standard",
        Profile::Pr => "pr: stability at the pinned load and one capacity step",
        Profile::Quick => "quick",
    };
    let load = match report.load_choice {
        Some(LoadChoice::Pinned) => "the project’s pinned load",
        Some(LoadChoice::Baseline) => "the baseline’s load",
        Some(LoadChoice::Plan) => "as the plan says",
        Some(LoadChoice::OwnKnee) => "a fraction of its own knee",
        None => "not carried out",
    };
    let soak = report.stability().map(|step| format!("{}, ", format::workers(step.workers))).unwrap_or_default();
    let assertions = match plan.workload.expect.json.len() {
        0 => String::new(),
        1 => ", 1 assertion on the output".to_owned(),
        n => format!(", {n} assertions on the output"),
    };
    vec![
        is("Request", format!("{} {}", service.method, service.path)),
        is("Service", service.origin.clone()),
        is(
            "Workload",
            format!(
                "{} different bodies; status {} expected{assertions}",
                plan.workload.requests, plan.workload.expect.status
            ),
        ),
        is(
            "Connection",
            format!(
                "keep-alive {}, connect timeout {}, response timeout {}",
                if service.keep_alive { "on" } else { "off" },
                seconds(service.connect_timeout_ms),
                seconds(service.response_timeout_ms)
            ),
        ),
        is("Staircase", format!("{} workers, {} each", steps.join(", "), seconds(phases.staircase.step_ms))),
        is("Stability", format!("{soak}{}: {load}", seconds(phases.stability.duration_ms))),
        is("Profile", profile.to_owned()),
        is("Plan digest", report.plan_digest.to_string()),
    ]
}

pub(super) fn testbed(report: &Report) -> Pairs {
    let bed = &report.testbed;
    let gpu = bed.gpu.as_ref().map(|gpu| {
        let memory = gpu.memory_gib.map(|gib| format!(", {gib}{NARROW}GiB")).unwrap_or_default();
        let driver = gpu.driver.as_ref().map(|driver| format!(", driver {driver}")).unwrap_or_default();
        format!("{} ×{}{memory}{driver}", gpu.model, gpu.count)
    });
    let cpu = match (&bed.cpu_model, bed.cpu_cores) {
        (Some(model), Some(cores)) => Some(format!("{model}, {cores} cores")),
        (Some(model), None) => Some(model.clone()),
        (None, cores) => cores.map(|cores| format!("{cores} cores")),
    };
    let mut pairs = vec![
        is("Testbed", bed.label()),
        maybe("GPU", gpu, "none was found or named"),
        maybe("CPU", cpu, "not known"),
        maybe("Memory", bed.memory_gib.map(|gib| format!("{gib}{NARROW}GiB")), "not known"),
        maybe("System", bed.os.clone(), "not known"),
    ];
    pairs.extend(bed.labels.iter().map(|(name, value)| is(name, value.clone())));
    pairs.push(is("Fingerprint", bed.fingerprint().to_string()));
    pairs
}

pub(super) fn revision(report: &Report) -> Pairs {
    let revision = &report.revision;
    let dirty = if revision.dirty { ", with uncommitted changes" } else { "" };
    let commit = revision.commit.as_ref().map(|commit| format!("{commit}{dirty}"));
    let pull = revision.pull_request.map(|number| format!("#{number}"));
    vec![
        maybe("Tag", revision.tag.clone(), "none"),
        maybe("Commit", commit, "measured without a checkout"),
        maybe("Branch", revision.branch.clone(), "not known"),
        maybe("Pull request", pull, "none"),
        maybe("Engine", revision.engine.clone(), "not named"),
    ]
}

pub(super) fn run(report: &Report) -> Pairs {
    let generator = &report.generator;
    let host = if generator.shares_host { "on the service’s own host" } else { "on a host of its own" };
    let took = report.finished_at.as_second() - report.started_at.as_second();
    let status = match report.status {
        Status::Complete => "complete",
        Status::Interrupted => "interrupted",
        Status::Failed => "failed",
    };
    let mut pairs = vec![
        is("Run", report.run_id.to_string()),
        is("Measured", format!("{}, {}", minute(report.started_at), format::duration(took as f64))),
        is("Status", status.to_owned()),
        is("Load generator", format!("{} {}, {host}", generator.name, generator.version)),
    ];
    if report.is_thinned() {
        pairs.push(is("Windows", "thinned out by age: of each second only the successes are left".to_owned()));
    }
    pairs
}

fn is(name: &str, value: String) -> (String, Datum) {
    (name.to_owned(), Datum::Is(value))
}

fn maybe(name: &str, value: Option<String>, reason: &str) -> (String, Datum) {
    (name.to_owned(), value.map_or_else(|| Datum::Absent(reason.to_owned()), Datum::Is))
}

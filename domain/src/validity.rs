//! Whether a run's figures may be believed: causes outside the service that void them, and notices beside them.
//!
//! Pure: the runner asks after the run and puts the answers into the report. Warm-up and check steps are exempt, since
//! no figure rests on them.

use crate::finding::Finding;
use crate::format::{self, NARROW};
use crate::little;
use crate::outcome::ErrorKind;
use crate::report::{Report, Step, StepRole};

/// Above this share of a core (an engine thread) or of all cores (its host) the generator measures itself.
pub const MAX_CPU: f64 = 0.85;
/// Timers may be this late at their 99th percentile …
pub const MAX_LAG_US: f64 = 2_000.0;
/// … or this share of the step's median latency, if that is more.
pub const MAX_LAG_SHARE: f64 = 0.05;
/// Connections beyond one a worker, per request, from which keep-alive counts as lost.
const LOST_KEEP_ALIVE: f64 = 0.2;

/// One cause, looked for in the counted steps.
type Rule = fn(&Report, &[&Step]) -> Option<Finding>;

/// Everything that the report's own figures say about its validity, what voids it first. Findings that are in the
/// report already are not looked at.
pub fn findings(report: &Report) -> Vec<Finding> {
    let steps: Vec<&Step> = counted(report).collect();
    let rules: [Rule; 7] = [client_resource, engine_cpu, host_cpu, timer_lag, little_law, keep_alive, cut];
    let mut all: Vec<Finding> = rules.iter().filter_map(|rule| rule(report, &steps)).collect();
    all.sort_by_key(|finding| finding.severity);
    all
}

/// The steps whose figures count.
fn counted(report: &Report) -> impl Iterator<Item = &Step> {
    let all = report.phases.iter().flat_map(|phase| &phase.steps);
    all.filter(|step| !matches!(step.role, StepRole::Check | StepRole::WarmUp))
}

fn engine_cpu(_: &Report, steps: &[&Step]) -> Option<Finding> {
    let (share, from) = past(steps, MAX_CPU, |step| step.generator.engine_cpu)?;
    Some(Finding::voids(
        "engine_cpu",
        format!(
            "the load generator used {} of a core from {from} on, limit {}: latency then measures \
             the generator",
            whole(share),
            whole(MAX_CPU)
        ),
        "Run it from a faster or a second host, or lower the load.",
    ))
}

fn host_cpu(report: &Report, steps: &[&Step]) -> Option<Finding> {
    let (share, from) = past(steps, MAX_CPU, |step| step.generator.host_cpu)?;
    let used = format!("{} CPU from {from} on", whole(share));
    let limit = format!("limit {}", whole(MAX_CPU));
    Some(if report.generator.shares_host {
        // The service is meant to fill its host; only its share of the cores is in doubt.
        Finding::notice("shared_host_cpu", format!("generator and service share one host, which used {used}"))
            .with_advice("Cores are shared: split them between service and generator (taskset), or use a second host.")
    } else {
        Finding::voids(
            "host_cpu",
            format!("the load generator's host used {used}, {limit}"),
            "Stop what else runs on it, run from a second host, or lower the load.",
        )
    })
}

fn timer_lag(_: &Report, steps: &[&Step]) -> Option<Finding> {
    let limit = |step: &Step| {
        let median_us = step.latency.quantile_ms(0.5).unwrap_or(0.0) * 1_000.0;
        MAX_LAG_US.max(MAX_LAG_SHARE * median_us)
    };
    let excess = |step: &Step| step.generator.timer_lag_p99_us.map(|lag| lag as f64 / limit(step));
    let worst = worst(steps, 1.0, excess)?;
    let lag = worst.generator.timer_lag_p99_us? as f64 / 1_000.0;
    Some(Finding::voids(
        "timer_lag",
        format!(
            "the load generator's timers fired up to {} late (P99) at {}, limit {}: its latencies are wrong by as much",
            format::latency(lag),
            workers(worst),
            format::latency(limit(worst) / 1_000.0)
        ),
        "Give it a core of its own, or run it from a second host.",
    ))
}

/// `busy_us` counts requests and the pause of 100 ms after a failed connect alike, so a service that refuses
/// connections keeps the law: what breaks it is a generator that did not keep its workers busy, or counted wrongly.
fn little_law(_: &Report, steps: &[&Step]) -> Option<Finding> {
    let deviation = |step: &Step| little::deviation(step.completed.busy_us, step.measured_s(), step.workers);
    let worst = worst(steps, little::MAX_DEVIATION, |step| deviation(step).map(f64::abs))?;
    let off = deviation(worst)?;
    Some(Finding::voids(
        "little",
        format!(
            "Little's law does not hold at {}: TPS × latency imply {} workers ({})",
            workers(worst),
            format::number(f64::from(worst.workers) * (1.0 + off)),
            format::change(off)
        ),
        "The generator was held up: give it a core of its own, or run it from a second host.",
    ))
}

fn client_resource(_: &Report, steps: &[&Step]) -> Option<Finding> {
    let ours = |step: &Step| step.outcomes.errors.get(&ErrorKind::ClientResource).copied().unwrap_or(0);
    let total: u64 = steps.iter().map(|step| ours(step)).sum();
    let first = steps.iter().find(|step| ours(step) > 0)?;
    Some(Finding::voids(
        "client_resource",
        format!(
            "the load generator ran out of sockets, ports or file handles {} times, first at {}",
            format::count(total),
            workers(first)
        ),
        "Raise `ulimit -n` and the range of local ports, or spread the load over two hosts.",
    ))
}

fn keep_alive(report: &Report, steps: &[&Step]) -> Option<Finding> {
    if !report.plan.service.keep_alive {
        return None;
    }
    // Connections are counted over the whole step, ramp-up and edges included: so are the requests and failures beside
    // them. A failed request may cost its connection; that is counted as an error already.
    let failed = |step: &Step| {
        let whole: u64 = step.windows.iter().flat_map(|window| window.errors.values()).sum();
        whole.max(step.outcomes.failed())
    };
    let requests = |step: &Step| {
        let whole: u64 = step.windows.iter().map(|window| window.ok).sum();
        (whole + failed(step)).max(step.outcomes.finished())
    };
    let needless = |step: &Step| step.connections.saturating_sub(u64::from(step.workers) + failed(step));
    let share = |step: &Step| {
        let requests = requests(step);
        (requests > 0).then(|| needless(step) as f64 / requests as f64)
    };
    let worst = worst(steps, LOST_KEEP_ALIVE, share)?;
    Some(
        Finding::notice(
            "keep_alive_lost",
            format!(
                "keep-alive is lost: {} connections for {} requests at {}",
                format::count(worst.connections),
                format::count(requests(worst)),
                workers(worst)
            ),
        )
        .with_advice("The service, or a proxy before it, closes connections: 20 to 30 % of TPS may lie there."),
    )
}

fn cut(_: &Report, steps: &[&Step]) -> Option<Finding> {
    let total: u64 = steps.iter().map(|step| step.outcomes.cut).sum();
    if total == 0 {
        return None;
    }
    let issued: u64 = total + steps.iter().map(|step| step.outcomes.finished()).sum::<u64>();
    let oldest = steps.iter().filter_map(|step| step.oldest_cut_us).max();
    let oldest = oldest.map(|us| format!(", the oldest after {}", format::latency(us as f64 / 1_000.0)));
    Some(Finding::notice(
        "cut",
        format!(
            "{} requests ({}{NARROW}%) were still open when the run ended{}: they count neither as success nor as error",
            format::count(total),
            format::percent(total as f64 / issued as f64),
            oldest.unwrap_or_default()
        ),
    ))
}

/// The step that goes furthest past `limit`.
fn worst<'a>(steps: &[&'a Step], limit: f64, value: impl Fn(&Step) -> Option<f64>) -> Option<&'a Step> {
    let over = steps.iter().filter_map(|step| Some((*step, value(step)?))).filter(|(_, v)| *v > limit);
    over.max_by(|a, b| a.1.total_cmp(&b.1)).map(|(step, _)| step)
}

/// The highest value past `limit`, and the smallest number of workers at which the limit was passed.
fn past(steps: &[&Step], limit: f64, value: impl Fn(&Step) -> Option<f64>) -> Option<(f64, String)> {
    let highest = value(worst(steps, limit, &value)?)?;
    let over = steps.iter().filter(|step| value(step).is_some_and(|v| v > limit));
    over.min_by_key(|step| step.workers).map(|step| (highest, workers(step)))
}

fn whole(share: f64) -> String {
    format!("{:.0}{NARROW}%", share * 100.0)
}

fn workers(step: &Step) -> String {
    format::workers(step.workers)
}

#[cfg(test)]
mod tests;

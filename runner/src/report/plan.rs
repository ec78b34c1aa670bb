//! What `plimsoll check` prints: what would be sent, and how long it would take.

use std::fmt::Write as _;

use plimsoll_domain::format::{NARROW, count, counted, duration, workers};
use plimsoll_domain::plan::{Phases, Plan, Profile};
use serde_json::{Value, json};

use super::text::{labelled, round};
use crate::plan::{Loaded, profile_name};

/// The longest part of a body that is shown.
const SHOWN: usize = 400;

/// A phase with what it does and the time it takes, in ms.
struct Row {
    name: &'static str,
    does: String,
    ms: u64,
}

pub fn text(loaded: &Loaded, load: Load) -> String {
    let (plan, service) = (&loaded.plan, &loaded.plan.service);
    let mut out = format!("{} is valid.\n\n", loaded.path.display());
    let _ = writeln!(out, "{} {}{}", service.method, service.origin, service.path);
    for (name, value) in &service.headers {
        let _ = writeln!(out, "{name}: {value}");
    }
    if let Some(body) = first_body(loaded) {
        let _ = writeln!(out, "\n{body}");
    }
    out.push('\n');
    let bodies = match loaded.requests.bodies.len() {
        1 => "1 request shape".to_owned(),
        n => format!("{} request shapes, the first one above", count(n as u64)),
    };
    let expect = &plan.workload.expect;
    let also = match expect.json.len() {
        0 => String::new(),
        1 => " and 1 assertion".to_owned(),
        n => format!(" and {n} assertions"),
    };
    out += &labelled("Requests", &bodies);
    out += &labelled("Right is", &format!("status {}{also}", expect.status));
    out += &labelled(
        "Timeouts",
        &format!(
            "connect {}, response {}; connections are {}",
            seconds(service.connect_timeout_ms),
            seconds(service.response_timeout_ms),
            if service.keep_alive { "kept" } else { "closed after each request" }
        ),
    );
    let digest = plan.digest();
    out += &labelled("Plan", &format!("{digest}, profile {}, project {}", profile_name(plan.profile), loaded.project));
    out.push('\n');
    let rows = rows(plan, load);
    let time = |ms: u64| format!("about {}", duration(ms as f64 / 1_000.0));
    for row in &rows {
        let _ = writeln!(out, "  {:<10} {:>12}   {}", row.name, duration(row.ms as f64 / 1_000.0), row.does);
    }
    let _ = writeln!(out, "  {:<10} {:>12}", "total", time(total_ms(&rows)));
    out
}

pub fn json(loaded: &Loaded, load: Load) -> Value {
    let rows = rows(&loaded.plan, load);
    let phases: Vec<Value> =
        rows.iter().map(|row| json!({ "phase": row.name, "does": row.does, "duration_ms": row.ms })).collect();
    json!({
        "schema": 1,
        "valid": true,
        "project": loaded.project,
        "profile": profile_name(loaded.plan.profile),
        "plan_digest": loaded.plan.digest(),
        "method": loaded.plan.service.method,
        "url": format!("{}{}", loaded.plan.service.origin, loaded.plan.service.path),
        "headers": loaded.plan.service.headers,
        "first_body": loaded.requests.bodies.first().map(|body| String::from_utf8_lossy(body)),
        "bodies": loaded.requests.bodies.len(),
        "phases": phases,
        "duration_ms": total_ms(&rows),
        "gate": loaded.policy,
        "plan": loaded.plan,
    })
}

fn first_body(loaded: &Loaded) -> Option<String> {
    let body = loaded.requests.bodies.first().filter(|body| !body.is_empty())?;
    let text = String::from_utf8_lossy(body);
    let shown: String = text.chars().take(SHOWN).filter(|c| !c.is_control() || *c == '\n').collect();
    let rest =
        if shown.len() < text.len() { format!("… ({} bytes)", count(body.len() as u64)) } else { String::new() };
    Some(shown + &rest)
}

/// The phases as they would be carried out; the search adds what it usually needs.
fn rows(plan: &Plan, load: Load) -> Vec<Row> {
    let Phases { smoke, warm_up, staircase, stability } = &plan.phases;
    let mut rows = vec![
        Row { name: "smoke", does: workers(1), ms: smoke.duration_ms },
        Row {
            name: "warm-up",
            does: format!("at least {}, then the most workers", counted(warm_up.min_requests.into(), "request")),
            ms: warm_up.max_duration_ms + warm_up.top_ms,
        },
    ];
    if plan.profile == Profile::Pr {
        let at = load.capacity.map_or("the capacity's workers".to_owned(), workers);
        rows.push(Row { name: "capacity", does: at, ms: plan.executed_step_ms() });
    } else {
        let steps: Vec<String> = staircase.workers.iter().map(|workers| count((*workers).into())).collect();
        let does = format!("{} workers, {} each", steps.join(", "), seconds(staircase.step_ms));
        rows.push(Row { name: "staircase", does, ms: staircase.step_ms * staircase.workers.len() as u64 });
        if staircase.search {
            let most = count(staircase.max_workers.into());
            let does = format!("steps of {}, up to {most} workers", seconds(staircase.search_step_ms));
            rows.push(Row { name: "search", does, ms: USUAL_SEARCH_STEPS * staircase.search_step_ms });
        }
    }
    let soak = load
        .stability
        .map_or_else(|| format!("the pinned load, else {} of the knee", round(stability.knee_fraction)), workers);
    rows.push(Row { name: "stability", does: soak, ms: plan.executed_stability_ms() });
    rows
}

fn total_ms(rows: &[Row]) -> u64 {
    rows.iter().map(|row| row.ms).sum()
}

/// Bisecting steps that a search takes in most cases.
const USUAL_SEARCH_STEPS: u64 = 3;

/// The workers of stability and of the capacity step, where they are known beforehand.
#[derive(Debug, Clone, Copy, Default)]
pub struct Load {
    pub stability: Option<u32>,
    pub capacity: Option<u32>,
}

fn seconds(ms: u64) -> String {
    if ms.is_multiple_of(1_000) { duration(ms as f64 / 1_000.0) } else { format!("{}{NARROW}ms", count(ms)) }
}

//! The table of steps: a row a step, a bar a row, the knee marked.

use plimsoll_domain::figures::{Figures, StepFigures};
use plimsoll_domain::format::{ABSENT, NARROW, count, number, optional, workers};
use plimsoll_domain::percentile::MIN_FOR_P99;

use super::text::{bar, per_cell, round, width};

/// Cells of the longest bar.
const CELLS: usize = 22;

/// The lines; none without steps.
pub(super) fn table(figures: &Figures) -> Vec<String> {
    if figures.steps.is_empty() {
        return Vec::new();
    }
    let largest = figures.steps.iter().filter_map(|step| step.tps).fold(0.0, f64::max);
    let unit = per_cell(largest, CELLS);
    let knee = figures.capacity.filter(|_| figures.shows_knee()).map(|capacity| capacity.workers);
    let scale = format!("█ = {} TPS", round(unit));
    let mut lines = vec![line("workers", "TPS", &scale, ["P50 ms", "P95 ms", "P99 ms", "errors"])];
    let mut marked = false;
    for step in &figures.steps {
        let mut bar = bar(step.tps.unwrap_or(0.0), unit);
        if knee == Some(step.workers) && !marked {
            bar += " ←";
            marked = true;
        }
        let cells = [optional(step.p50_ms), optional(step.p95_ms), optional(step.p99_ms), errors(step)];
        let cells = cells.each_ref().map(String::as_str);
        lines.push(line(&count(step.workers.into()), &optional(step.tps), &bar, cells));
    }
    lines.extend(notes(figures).into_iter().map(|note| format!("{}{note}", " ".repeat(NOTE))));
    lines
}

/// Where the bars begin; notes about them stand below.
const NOTE: usize = 18;

fn line(workers: &str, tps: &str, bar: &str, [p50, p95, p99, errors]: [&str; 4]) -> String {
    let gap = " ".repeat((CELLS + 2).saturating_sub(width(bar)));
    format!("  {workers:>7}  {tps:>6}  {bar}{gap} {p50:>6}  {p95:>6}  {p99:>6}  {errors:>6}").trim_end().to_owned()
}

fn errors(step: &StepFigures) -> String {
    count(step.outcomes.failed())
}

fn notes(figures: &Figures) -> Vec<String> {
    let mut notes = Vec::new();
    if let Some(capacity) = figures.capacity.filter(|_| figures.shows_knee()) {
        let (workers, tps) = (workers(capacity.workers), number(capacity.tps));
        notes.push(match capacity.lower_bound {
            true => format!("← at least {workers}: TPS still grew at the last step"),
            false => {
                let reach = if capacity.workers == 1 { "reaches" } else { "reach" };
                format!("← knee: {workers} {reach} 95{NARROW}% of the capacity, {tps} TPS")
            }
        });
    }
    let withheld: Vec<u64> =
        figures.steps.iter().filter(|step| step.p99_ms.is_none()).map(|step| step.requests).collect();
    if let (Some(least), Some(most)) = (withheld.iter().min(), withheld.iter().max()) {
        let requests = if least == most { count(*least) } else { format!("{} to {}", count(*least), count(*most)) };
        notes.push(format!("{ABSENT} withheld: {requests} requests, a P99 needs {MIN_FOR_P99}"));
    }
    notes
}

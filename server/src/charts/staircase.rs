//! TPS and latency against workers: two panels over one logarithmic axis.

mod scene;

use plimsoll_domain::figures::{Figures, StepFigures};
use plimsoll_domain::format;

use self::scene::Scene;
use super::axis::short;
use super::canvas::Mark;
use super::figure::{Chart, DataTable, Datum, Size};
use super::ink::{Stroke, Tone};
use super::plot::Line;
use super::scale::Log;

/// Width and height of the drawing for half a page, in CSS pixels: of two runs, and of one.
pub const PAIR: (u32, u32) = (540, 500);
pub const ALONE: (u32, u32) = (540, 590);

/// The staircase of one run.
#[derive(Debug, Clone, Copy)]
pub struct Stairs<'a> {
    pub label: &'a str,
    pub figures: &'a Figures,
    pub tone: Tone,
}

/// One run: TPS with the ideal line, the knee and the capacity; P50, P95 and P99. Its baseline, if any, lies behind.
/// `None` without a step that has a throughput.
pub fn snapshot_stairs(run: Stairs<'_>, baseline: Option<Stairs<'_>>) -> Option<Chart> {
    let wanted = [(0.50, "P50"), (0.95, "P95"), (0.99, "P99")];
    let mut latency = Vec::new();
    if let Some(base) = &baseline {
        latency.push(Latency::new(base, 0.99, "P99", Stroke::Solid, None));
    }
    for (quantile, name) in wanted {
        let (stroke, mark) = match name {
            "P50" => (Stroke::Dot, Mark::Diamond),
            "P95" => (Stroke::Dash, Mark::Square),
            _ => (Stroke::Solid, Mark::Disc),
        };
        latency.push(Latency::new(&run, quantile, name, stroke, Some(mark)));
    }
    let runs: Vec<Stairs<'_>> = baseline.into_iter().chain([run]).collect();
    chart(&runs, &latency, "latency")
}

/// Two runs over each other: TPS above, P99 below.
pub fn compared_stairs(baseline: Stairs<'_>, candidate: Stairs<'_>) -> Option<Chart> {
    let runs = [baseline, candidate];
    let latency = runs.map(|run| Latency::new(&run, 0.99, "P99", Stroke::Solid, Some(mark_of(run.tone))));
    chart(&runs, &latency, "P99")
}

/// One line of the lower panel.
struct Latency {
    line: Line,
    label: String,
    /// For the narrow drawing's margin.
    brief: String,
    tone: Tone,
    bold: bool,
}

impl Latency {
    fn new(run: &Stairs<'_>, quantile: f64, name: &str, stroke: Stroke, mark: Option<Mark>) -> Self {
        let value = |step: &StepFigures| match name {
            "P50" => step.p50_ms,
            "P95" => step.p95_ms,
            _ => step.p99_ms,
        };
        let points = run.figures.steps.iter().filter_map(|s| Some((f64::from(s.workers), value(s)?))).collect();
        let of = if run.tone == Tone::Plain { String::new() } else { format!("{}, ", run.label) };
        let line = Line {
            points,
            ink: run.tone.ink(),
            stroke,
            width: if stroke == Stroke::Solid && mark.is_some() { 2.0 } else { 1.25 },
            mark,
            says: format!("{of}{name} at "),
            written: format::latency,
        };
        let label = match (run.tone, mark) {
            (Tone::Plain, _) => name.to_owned(),
            (_, None) => format!("{name} of {}", run.label),
            _ => run.label.to_owned(),
        };
        let brief = if run.tone == Tone::Plain { name } else { run.label }.to_owned();
        Self { line, label, brief, tone: run.tone, bold: quantile > 0.98 && run.tone != Tone::Baseline }
    }
}

impl Latency {
    /// The label at the line's end, as long as the margin allows.
    fn end(&self, narrow: bool) -> String {
        if narrow { short(&self.brief, 9) } else { short(&self.label, 14) }
    }
}

fn mark_of(tone: Tone) -> Mark {
    if tone == Tone::Baseline { Mark::Square } else { Mark::Disc }
}

fn chart(runs: &[Stairs<'_>], latency: &[Latency], unit: &str) -> Option<Chart> {
    let run = runs.last()?;
    let tps: Vec<Line> = runs.iter().map(tps_line).collect();
    if tps.iter().all(|line| line.points.is_empty()) {
        return None;
    }
    let x = Log::holding(tps.iter().chain(latency.iter().map(|l| &l.line)).flat_map(|l| l.points.iter().map(|p| p.0)));
    let pinned = run.figures.stability.as_ref().map(|stability| f64::from(stability.step.workers));
    let title = match runs {
        [baseline, candidate] if candidate.tone != Tone::Plain => {
            format!("Throughput and P99 against workers, {} and {}", baseline.label, candidate.label)
        }
        _ => format!("Throughput and latency against workers, {}", run.label),
    };
    let description = runs.iter().map(describe).collect::<Vec<_>>().join(" ");
    let scene = Scene { runs, tps, latency, x, pinned, unit };
    Some(Chart::drawn("staircase", title, description, Size::HALF, table(runs), |size| scene.draw(size)))
}

fn tps_line(run: &Stairs<'_>) -> Line {
    let of = if run.tone == Tone::Plain { String::new() } else { format!("{}, ", run.label) };
    Line {
        points: run.figures.steps.iter().filter_map(|s| Some((f64::from(s.workers), s.tps?))).collect(),
        ink: run.tone.ink(),
        stroke: Stroke::Solid,
        width: 2.0,
        mark: Some(mark_of(run.tone)),
        says: of,
        written: |tps| format!("{}{}TPS", format::number(tps), format::NARROW),
    }
}

fn describe(run: &Stairs<'_>) -> String {
    let steps = run.figures.steps.len();
    let capacity = run.figures.capacity.map_or_else(
        || "no capacity was found".to_owned(),
        |c| {
            let least = if c.lower_bound { "at least " } else { "" };
            format!(
                "capacity {least}{} TPS, reached at {}, its knee at {}",
                format::number(c.tps),
                format::workers(c.at_workers),
                c.workers
            )
        },
    );
    format!("{}: {steps} steps, {capacity}.", run.label)
}

fn table(runs: &[Stairs<'_>]) -> DataTable {
    let many = runs.len() > 1;
    let mut head: Vec<String> = if many { vec!["Run".into()] } else { Vec::new() };
    head.extend(["Workers", "TPS", "P50, ms", "P95, ms", "P99, ms"].map(str::to_owned));
    let rows = runs.iter().flat_map(|run| {
        run.figures.steps.iter().map(move |step| {
            let mut row = if many { vec![Datum::Is(run.label.to_owned())] } else { Vec::new() };
            let withheld = super::figure::withheld(step.requests);
            row.push(Datum::Is(format::count(u64::from(step.workers))));
            row.push(Datum::of(step.tps, format::number, "the step has no measured part"));
            row.push(Datum::of(step.p50_ms, format::number, "no request succeeded"));
            row.push(Datum::of(step.p95_ms, format::number, "no request succeeded"));
            row.push(Datum::of(step.p99_ms, format::number, &withheld));
            row
        })
    });
    DataTable { rows: rows.collect(), head }
}

//! A comparison: the verdict, the sentence, the gated metrics, what else was seen.

use std::fmt::Write as _;

use plimsoll_domain::comparison::{Comparison, Metric, MetricComparison, Unit};
use plimsoll_domain::format::{self, ABSENT, NARROW, number};

use super::paint::Paint;
use super::summary::findings;
use super::text::{table, wrapped};

pub fn text(comparison: &Comparison, paint: Paint) -> String {
    let verdict = comparison.verdict;
    let provisional = if comparison.provisional { " (provisional)" } else { "" };
    let heading = format!("{} {}{provisional}", verdict.mark(), verdict.word().to_uppercase());
    let mut out = format!("{}\n\n{}", paint.verdict(verdict, &heading), wrapped(&comparison.sentence));
    for (title, gated) in [("gated", true), ("observed", false)] {
        let rows: Vec<&MetricComparison> = comparison.metrics.iter().filter(|metric| metric.gated == gated).collect();
        if rows.is_empty() {
            continue;
        }
        let lines = metrics(title, comparison, &rows, gated);
        let _ = write!(out, "\n{}\n", paint.bold(&lines[0]));
        for (line, metric) in lines[1..].iter().zip(&rows) {
            let trend = if gated { metric.trend() } else { None };
            let _ = writeln!(out, "{}", paint.trend(trend, line));
        }
        out += &notes(&rows);
    }
    let found = findings(&comparison.findings);
    if found.is_empty() { out } else { format!("{out}\n{found}") }
}

fn metrics(title: &str, comparison: &Comparison, rows: &[&MetricComparison], gated: bool) -> Vec<String> {
    let baseline = comparison.baseline.as_ref().map_or(ABSENT, |side| &side.revision);
    let (baseline, candidate) = (short(baseline), short(&comparison.candidate.revision));
    let mut cells =
        vec![vec![title.to_owned(), baseline, candidate, "change".into(), String::new(), "interval".into()]];
    if gated {
        cells[0].push("allowed".to_owned());
    }
    for metric in rows {
        let mut row = vec![
            name(metric, comparison),
            figure(metric, metric.baseline),
            figure(metric, metric.candidate),
            change(metric, metric.change),
            metric.trend().map_or_else(String::new, |trend| trend.word().to_owned()),
            interval(metric),
        ];
        if gated {
            row.push(change(metric, metric.threshold));
        }
        cells.push(row);
    }
    // The word stands to the left below the change's heading, as part of it.
    let widest = cells.iter().map(|row| row[4].chars().count()).max().unwrap_or(0);
    for row in &mut cells {
        row[4] = format!("{:<widest$}", row[4]);
    }
    table(&cells)
}

/// Why a figure is missing or undecided, below the table.
fn notes(rows: &[&MetricComparison]) -> String {
    let noted = rows.iter().filter_map(|metric| Some((metric.name, metric.note.as_ref()?)));
    noted.map(|(name, note)| indented(&format!("{}: {note}", words(name)))).collect()
}

fn indented(text: &str) -> String {
    super::text::labelled("  –", text).replacen("  –         ", "  – ", 1)
}

fn name(metric: &MetricComparison, comparison: &Comparison) -> String {
    let words = match (metric.name, comparison.candidate.stability_workers) {
        (Metric::P99, Some(workers)) => format!("P99 at {}", format::count(workers.into())),
        (other, _) => words(other).to_owned(),
    };
    match metric.unit {
        Unit::Ms => format!("{words}, ms"),
        Unit::Tps => format!("{words}, TPS"),
        Unit::Fraction => format!("{words}, %"),
        Unit::Workers => format!("{words}, workers"),
    }
}

fn words(metric: Metric) -> &'static str {
    match metric {
        Metric::P99 => "P99",
        Metric::Capacity => "capacity",
        Metric::ErrorRate => "error rate",
        Metric::P50 => "P50",
        Metric::P95 => "P95",
        Metric::Max => "max",
        Metric::Tps => "stability",
        Metric::Knee => "knee",
        Metric::SingleLatency => "alone",
    }
}

fn figure(metric: &MetricComparison, value: Option<f64>) -> String {
    match (value, metric.unit) {
        (None, _) => ABSENT.to_owned(),
        (Some(value), Unit::Fraction) => format::percent(value),
        (Some(value), _) => number(value),
    }
}

/// A change with its unit: `+54 %`, and `+0.001 pp` for the error rate.
fn change(metric: &MetricComparison, value: Option<f64>) -> String {
    match (value, metric.unit) {
        (None, _) => ABSENT.to_owned(),
        (Some(value), Unit::Fraction) => format::points(value),
        (Some(value), _) => format::change(value),
    }
}

fn interval(metric: &MetricComparison) -> String {
    match (metric.interval, metric.unit) {
        (None, _) => ABSENT.to_owned(),
        // Its unit is the row's: the change beside it says pp.
        (Some(bounds), Unit::Fraction) => format::points_interval(bounds).replace(&format!("{NARROW}pp"), ""),
        (Some(bounds), _) => format::interval(bounds),
    }
}

/// A revision's name as a column's heading.
fn short(revision: &str) -> String {
    match revision.chars().count() {
        0..=10 => revision.to_owned(),
        _ => revision.chars().take(9).chain(['…']).collect(),
    }
}

//! A comparison: the verdict, the sentence, the gated metrics, what else was seen.

use std::fmt::Write as _;

use plimsoll_domain::comparison::{Comparison, Metric, MetricComparison, Unit};
use plimsoll_domain::format::{self, ABSENT, NARROW, number};
use plimsoll_domain::sentence;

use super::paint::Paint;
use super::summary::findings;
use super::text::{WIDTH, bullet, round, table, width, wrapped};

pub fn text(comparison: &Comparison, paint: Paint) -> String {
    let verdict = comparison.verdict;
    let provisional = if comparison.provisional { " (provisional)" } else { "" };
    let heading = format!("{} {}{provisional}", verdict.mark(), verdict.word().to_uppercase());
    let mut out = format!("{}\n\n{}", paint.verdict(verdict, &heading), wrapped(&comparison.sentence));
    // With nothing beside them the figures stand in the sentence.
    let metrics_shown = if comparison.baseline.is_some() { &comparison.metrics[..] } else { &[] };
    let (gated, observed): (Vec<_>, Vec<_>) = metrics_shown.iter().partition(|metric| metric.gated);
    if !gated.is_empty() {
        let lines = fitting(|names| metrics("gated", comparison, &gated, names));
        let _ = write!(out, "\n{}\n", paint.bold(&lines[0]));
        for (line, metric) in lines[1..].iter().zip(&gated) {
            let _ = writeln!(out, "{}", paint.trend(metric.trend(), line));
        }
        out += &notes(&gated, &comparison.sentence);
    }
    if !observed.is_empty() {
        let lines = fitting(|names| metrics("observed", comparison, &observed, names));
        let _ = write!(out, "\n{}\n{}\n", paint.bold(&lines[0]), lines[1..].join("\n"));
    }
    let sentence = comparison.sentence.to_lowercase();
    let said = |message: &str| sentence.contains(&message.trim_end_matches('.').to_lowercase());
    let found = findings(comparison.findings.iter().filter(|finding| !said(&finding.message)));
    if found.is_empty() { out } else { format!("{out}\n{found}") }
}

/// The table with the widest names of revisions and gaps that fit.
fn fitting(rows: impl Fn(usize) -> Vec<Vec<String>>) -> Vec<String> {
    let tries = [(12, 2), (8, 2), (12, 1), (8, 1)];
    let tables = tries.iter().map(|(names, gap)| table(&rows(*names), *gap));
    let fits = |lines: &Vec<String>| lines.iter().all(|line| width(line) <= WIDTH);
    tables.clone().find(fits).or_else(|| tables.last()).unwrap_or_default()
}

fn metrics(title: &str, comparison: &Comparison, rows: &[&MetricComparison], names: usize) -> Vec<Vec<String>> {
    let gated = rows.iter().any(|metric| metric.gated);
    let baseline = comparison.baseline.as_ref().map_or(ABSENT, |side| &side.revision);
    let (baseline, candidate) = (short(baseline, names), short(&comparison.candidate.revision, names));
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
            row.push(allowed(metric));
        }
        cells.push(row);
    }
    // The word stands to the left, beside the change it is about.
    let widest = cells.iter().map(|row| width(&row[4])).max().unwrap_or(0);
    for row in &mut cells {
        row[4] = format!("{:<widest$}", row[4]);
    }
    cells
}

/// Why a figure is missing or undecided, each reason once, unless the sentence has said it.
fn notes(rows: &[&MetricComparison], sentence: &str) -> String {
    let mut reasons: Vec<(&str, Vec<&str>)> = Vec::new();
    let said = sentence.to_lowercase();
    for metric in rows {
        let Some(note) = metric.note.as_deref().filter(|note| !said.contains(&note.to_lowercase())) else { continue };
        match reasons.iter_mut().find(|(reason, _)| *reason == note) {
            Some((_, names)) => names.push(words(metric.name)),
            None => reasons.push((note, vec![words(metric.name)])),
        }
    }
    let line = |(reason, names): &(&str, Vec<&str>)| bullet(&format!("{}: {reason}", names.join(", ")));
    reasons.iter().map(line).collect()
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

/// The sentence's names, shorter where a column of a table is narrow.
fn words(metric: Metric) -> &'static str {
    match metric {
        Metric::Max => "max",
        Metric::Tps => "stability",
        Metric::SingleLatency => "alone",
        other => sentence::name(other),
    }
}

fn figure(metric: &MetricComparison, value: Option<f64>) -> String {
    match (value, metric.unit) {
        (None, _) => ABSENT.to_owned(),
        (Some(value), Unit::Fraction) => format::percent(value),
        (Some(value), Unit::Workers) => format::count(value.round().max(0.0) as u64),
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

/// A threshold, which is a round figure: `+10 %`, `−5 %`, `+0.1 pp`.
fn allowed(metric: &MetricComparison) -> String {
    let Some(value) = metric.threshold else { return ABSENT.to_owned() };
    let sign = if value < 0.0 { "−" } else { "+" };
    let unit = if metric.unit == Unit::Fraction { "pp" } else { "%" };
    format!("{sign}{}{NARROW}{unit}", round(value.abs() * 100.0))
}

/// A revision's name as a column's heading.
fn short(revision: &str, names: usize) -> String {
    match revision.chars().count() {
        long if long > names => revision.chars().take(names - 1).chain(['…']).collect(),
        _ => revision.to_owned(),
    }
}

//! A comparison: the verdict, the sentence, the gated metrics, what else was seen.

use std::fmt::Write as _;

use plimsoll_domain::comparison::{Comparison, Metric, MetricComparison};
use plimsoll_domain::format::{self, ABSENT, NARROW};
use plimsoll_domain::{row, sentence};

use super::paint::Paint;
use super::summary::findings;
use super::text::{WIDTH, bullet, table, width, wrapped};

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
    let found = findings(row::unsaid(comparison));
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
        let mut line = vec![
            name(metric, comparison),
            metric.baseline.map_or_else(absent, |value| row::figure(metric.unit, value)),
            metric.candidate.map_or_else(absent, |value| row::figure(metric.unit, value)),
            metric.change.map_or_else(absent, |change| row::change(metric.unit, change)),
            metric.trend().map_or_else(String::new, |trend| trend.word().to_owned()),
            interval(metric),
        ];
        if gated {
            line.push(metric.threshold.map_or_else(absent, |limit| row::allowed(metric.unit, limit)));
        }
        cells.push(line);
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
    let line = |(reason, metrics): (&str, Vec<Metric>)| {
        let names: Vec<&str> = metrics.into_iter().map(words).collect();
        bullet(&format!("{}: {reason}", names.join(", ")))
    };
    row::reasons(rows.iter().copied(), sentence).into_iter().map(line).collect()
}

fn name(metric: &MetricComparison, comparison: &Comparison) -> String {
    let words = match (metric.name, comparison.candidate.stability_workers) {
        (Metric::P99, Some(workers)) => format!("P99 at {}", format::count(workers.into())),
        (other, _) => words(other).to_owned(),
    };
    format!("{words}, {}", row::unit(metric.unit))
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

/// The interval in its row's unit: where that is pp, the change beside it says so.
fn interval(metric: &MetricComparison) -> String {
    metric.interval.map_or_else(absent, |ends| row::interval(metric.unit, ends).replace(&format!("{NARROW}pp"), ""))
}

fn absent() -> String {
    ABSENT.to_owned()
}

/// A revision's name as a column's heading.
fn short(revision: &str, names: usize) -> String {
    match revision.chars().count() {
        long if long > names => revision.chars().take(names - 1).chain(['…']).collect(),
        _ => revision.to_owned(),
    }
}

//! Tables of metrics in Markdown: the worst first, as many rows as there is room for, the rest counted. No cell holds a
//! text of somebody else's.

use std::cmp::Reverse;

use plimsoll_domain::comparison::{Comparison, MetricComparison, MetricVerdict, Trend, Verdict};
use plimsoll_domain::format::{self, ABSENT};
use plimsoll_domain::row;

use super::blocks::links;
use super::outside::escaped;
use super::told::Told;

/// More rows are not read in a comment.
const MOST_ROWS: usize = 100;
/// Reasons under a table.
const MOST_REASONS: usize = 4;
const REASON: usize = 200;
/// Kept free for the line that counts the rest.
const REST: usize = 200;

const GATED: &str = "| Gated metric | Baseline | This | Change | Interval | Allowed | Verdict |\n\
                     |:--|--:|--:|--:|--:|--:|:--|\n";
const OBSERVED: &str = "| Observed metric | Baseline | This | Change | Interval |\n|:--|--:|--:|--:|--:|\n";
const ALONE: &str = "| Measured | This |\n|:--|--:|\n";

/// The gated metrics, in at most `room` bytes; empty where none was judged.
pub(super) fn gated(told: &Told<'_>, room: usize) -> String {
    let Some(comparison) = judged_in(told) else { return String::new() };
    let mut metrics: Vec<&MetricComparison> = comparison.metrics.iter().filter(|metric| metric.gated).collect();
    if comparison.baseline.is_none() {
        let measured = metrics.iter().filter_map(|metric| Some(alone(comparison, metric, metric.candidate?)));
        return table(told, ALONE, measured.collect(), room);
    }
    metrics.sort_by_key(|metric| rank(metric));
    if metrics.len() > MOST_ROWS {
        metrics.sort_by(|a, b| rank(a).cmp(&rank(b)).then(excess(b).total_cmp(&excess(a))));
    }
    let reasons = reasons(comparison, &metrics[..metrics.len().min(MOST_ROWS)]);
    let rows = metrics.iter().map(|metric| judged(told, comparison, metric)).collect();
    let table = table(told, GATED, rows, room.saturating_sub(reasons.len()));
    if table.is_empty() { table } else { table + &reasons }
}

/// The metrics that decide nothing, in at most `room` bytes.
pub(super) fn observed(told: &Told<'_>, room: usize) -> String {
    let Some(comparison) = judged_in(told).filter(|comparison| comparison.baseline.is_some()) else {
        return String::new();
    };
    let mut metrics: Vec<&MetricComparison> = comparison.metrics.iter().filter(|metric| !metric.gated).collect();
    if metrics.len() > MOST_ROWS {
        let moved = |metric: &MetricComparison| metric.change.map_or(0.0, f64::abs);
        metrics.sort_by(|a, b| worse_first(a).cmp(&worse_first(b)).then(moved(b).total_cmp(&moved(a))));
    }
    let line = |metric: &&MetricComparison| {
        let [name, baseline, this, change, interval] = figures(comparison, metric, false);
        format!("| {name} | {baseline} | {this} | {change} | {interval} |\n")
    };
    table(told, OBSERVED, metrics.iter().map(line).collect(), room)
}

/// Figures that something outside the service spoiled are on the page, and say nothing here.
fn judged_in<'a>(told: &Told<'a>) -> Option<&'a Comparison> {
    told.comparison.filter(|comparison| comparison.verdict != Verdict::Invalid)
}

fn table(told: &Told<'_>, head: &str, rows: Vec<String>, room: usize) -> String {
    let page = links::evidence(told);
    let room = room.saturating_sub(REST + page.as_ref().map_or(0, String::len));
    let mut out = head.to_owned();
    let mut shown = 0;
    for row in rows.iter().take(MOST_ROWS) {
        if out.len() + row.len() > room {
            break;
        }
        out += row;
        shown += 1;
    }
    let rest = format::count((rows.len() - shown) as u64);
    match (shown, rows.len() - shown) {
        (_, 0) if shown > 0 => out.trim_end().to_owned(),
        (0, 0) => String::new(),
        (0, _) => match page {
            Some(page) => format!("{rest} metrics, [on the page]({page})."),
            None => format!("{rest} metrics."),
        },
        _ => match page {
            Some(page) => format!("{out}\nThe worst stand here; {rest} more [on the page]({page})."),
            None => format!("{out}\nThe worst stand here, of {rest} more."),
        },
    }
}

fn judged(told: &Told<'_>, comparison: &Comparison, metric: &MetricComparison) -> String {
    let regressed = metric.verdict == MetricVerdict::Regressed;
    let [name, baseline, this, change, interval] = figures(comparison, metric, regressed);
    let allowed = metric.threshold.map_or_else(|| ABSENT.to_owned(), |limit| row::allowed(metric.unit, limit));
    let verdict = match metric.verdict {
        MetricVerdict::Pass => "● pass".to_owned(),
        MetricVerdict::Regressed => {
            let taken = told.accepted.iter().any(|accepted| accepted.covers(metric.name));
            let arrow = row::arrow(metric);
            let word = format!("**{arrow}{}regressed**", if arrow.is_empty() { "" } else { " " });
            if taken { format!("{word}, accepted") } else { word }
        }
        MetricVerdict::Inconclusive => "**◇ undecided**".to_owned(),
        MetricVerdict::Observed => "not judged".to_owned(),
    };
    format!("| {name} | {baseline} | {this} | {change} | {interval} | {allowed} | {verdict} |\n")
}

/// Name, baseline, this, change and interval.
fn figures(comparison: &Comparison, metric: &MetricComparison, bold: bool) -> [String; 5] {
    let written = |value: Option<f64>| value.map_or_else(|| ABSENT.to_owned(), |v| row::figure(metric.unit, v));
    let strong = |text: String| if bold && text != ABSENT { format!("**{text}**") } else { text };
    let change = metric.change.map_or_else(|| ABSENT.to_owned(), |change| row::change(metric.unit, change));
    let arrow = row::arrow(metric);
    let word = match metric.trend() {
        Some(trend @ (Trend::Worse | Trend::Better)) if !arrow.is_empty() => format!(" {arrow} {}", trend.word()),
        Some(trend) => format!(", {}", trend.word()),
        None => String::new(),
    };
    let interval = metric.interval.map_or_else(|| ABSENT.to_owned(), |ends| row::interval(metric.unit, ends));
    let this = strong(written(metric.candidate));
    [name(comparison, metric), written(metric.baseline), this, strong(change) + &word, interval]
}

fn alone(comparison: &Comparison, metric: &MetricComparison, value: f64) -> String {
    format!("| {} | {} |\n", name(comparison, metric), row::figure(metric.unit, value))
}

/// With the unit, unless that is the name.
fn name(comparison: &Comparison, metric: &MetricComparison) -> String {
    let (title, unit) = (row::title(metric.name, comparison.candidate.stability_workers), row::unit(metric.unit));
    if title.starts_with(unit) { title } else { format!("{title}, {unit}") }
}

/// Why figures are missing or undecided, in a paragraph under the table.
fn reasons(comparison: &Comparison, metrics: &[&MetricComparison]) -> String {
    let reasons = row::reasons(metrics.iter().copied(), &comparison.sentence);
    let line = |(reason, metrics): &(&str, Vec<_>)| {
        let mut names: Vec<String> = metrics.iter().map(|&metric| row::name(metric)).collect();
        names.dedup();
        names.truncate(3);
        format!("{}: {}.", names.join(", "), escaped(reason.trim_end_matches('.'), REASON))
    };
    let lines: Vec<String> = reasons.iter().take(MOST_REASONS).map(line).collect();
    if lines.is_empty() { String::new() } else { format!("\n\n{}", lines.join(" ")) }
}

fn rank(metric: &MetricComparison) -> u8 {
    match metric.verdict {
        MetricVerdict::Regressed => 0,
        MetricVerdict::Inconclusive => 1,
        MetricVerdict::Observed => 2,
        MetricVerdict::Pass => 3,
    }
}

/// How far past its threshold: 1 is at it.
fn excess(metric: &MetricComparison) -> f64 {
    let excess = metric.change.zip(metric.threshold).map_or(0.0, |(change, threshold)| change / threshold);
    if excess.is_nan() { 0.0 } else { excess }
}

fn worse_first(metric: &MetricComparison) -> Reverse<bool> {
    Reverse(metric.trend() == Some(Trend::Worse))
}

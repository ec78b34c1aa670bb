//! A metric in a table: how its figures are written, on every page and every terminal.

use crate::comparison::{Comparison, Metric, MetricComparison, Unit};
use crate::finding::Finding;
use crate::format;
use crate::prose::capital;
use crate::sentence;

/// What a row begins with, and its load where it has one: `P99 at 48 workers`.
pub fn title(metric: Metric, workers: Option<u32>) -> String {
    match (metric, workers) {
        (Metric::P99 | Metric::P95 | Metric::P50 | Metric::Tps | Metric::Max, Some(n)) => {
            format!("{} at {}", name(metric), format::workers(n))
        }
        _ => name(metric),
    }
}

/// As the sentence names it, to begin a cell with.
pub fn name(metric: Metric) -> String {
    capital(sentence::name(metric))
}

/// The unit of a row's figures.
pub fn unit(unit: Unit) -> &'static str {
    match unit {
        Unit::Ms => "ms",
        Unit::Tps => "TPS",
        Unit::Fraction => "%",
        Unit::Workers => "workers",
    }
}

/// A figure in its row's unit.
pub fn figure(unit: Unit, value: f64) -> String {
    match unit {
        Unit::Ms | Unit::Tps => format::number(value),
        Unit::Fraction => format::percent(value),
        Unit::Workers => format::count(value.round().max(0.0) as u64),
    }
}

/// A change: `+54 %`, and in percentage points where the figure is a share.
pub fn change(unit: Unit, change: f64) -> String {
    if unit == Unit::Fraction { format::points(change) } else { format::change(change) }
}

/// What is allowed: `+10 %`, `+0.1 pp`.
pub fn allowed(unit: Unit, limit: f64) -> String {
    if unit == Unit::Fraction { format::allowed_points(limit) } else { format::allowed(limit) }
}

/// `+47 to +61 %`
pub fn interval(unit: Unit, interval: [f64; 2]) -> String {
    if unit == Unit::Fraction { format::points_interval(interval) } else { format::interval(interval) }
}

/// The way a figure went.
pub fn arrow(metric: &MetricComparison) -> &'static str {
    match metric.change {
        Some(change) if change > 0.0 => "▲",
        Some(change) if change < 0.0 => "▼",
        _ => "",
    }
}

/// What is said of a comparison's findings beside its sentence: those that it has not said itself.
pub fn unsaid(comparison: &Comparison) -> impl Iterator<Item = &Finding> {
    let sentence = comparison.sentence.to_lowercase();
    comparison
        .findings
        .iter()
        .filter(move |finding| !sentence.contains(&finding.message.trim_end_matches('.').to_lowercase()))
}

/// Why figures are missing or undecided: each reason once, with its metrics, unless `said` holds it already.
pub fn reasons<'a>(metrics: impl IntoIterator<Item = &'a MetricComparison>, said: &str) -> Vec<(&'a str, Vec<Metric>)> {
    let said = said.to_lowercase();
    let mut reasons: Vec<(&str, Vec<Metric>)> = Vec::new();
    for metric in metrics {
        let Some(note) = metric.note.as_deref().filter(|note| !said.contains(&note.to_lowercase())) else { continue };
        match reasons.iter_mut().find(|(reason, _)| *reason == note) {
            Some((_, names)) => names.push(metric.name),
            None => reasons.push((note, vec![metric.name])),
        }
    }
    reasons
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::format::NARROW;

    #[test]
    fn figures_have_the_row_s_unit_and_changes_their_own() {
        assert_eq!(title(Metric::P99, Some(48)), "P99 at 48 workers");
        assert_eq!(title(Metric::P99, None), "P99");
        assert_eq!(title(Metric::Capacity, Some(48)), "Capacity");
        assert_eq!(figure(Unit::Fraction, 0.0123), "1.23");
        assert_eq!(figure(Unit::Workers, 63.7), "64");
        assert_eq!(change(Unit::Fraction, 0.00001), format!("+0.001{NARROW}pp"));
        assert_eq!(change(Unit::Ms, 0.54), format!("+54{NARROW}%"));
        assert_eq!(allowed(Unit::Tps, -0.05), format!("−5{NARROW}%"));
    }
}

//! The table of metrics, each with its interval on one axis.

use plimsoll_domain::comparison::{Comparison, Metric, MetricComparison, MetricVerdict, Unit};
use plimsoll_domain::format;
use plimsoll_domain::sentence::name as domain_name;

use crate::charts::{Datum, IntervalAxis, IntervalRow};
use crate::web::view::{Drawn, Look, sentence};

pub(super) struct Group {
    pub(super) title: Option<&'static str>,
    pub(super) rows: Vec<Row>,
}

pub(super) struct Row {
    pub(super) name: String,
    pub(super) unit: &'static str,
    pub(super) gated: bool,
    pub(super) baseline: Datum,
    pub(super) candidate: Datum,
    pub(super) change: Datum,
    pub(super) trend: Option<TrendWord>,
    pub(super) plot: Drawn,
    pub(super) interval: Datum,
    pub(super) allowed: String,
    pub(super) verdict: Drawn,
}

pub(super) struct TrendWord {
    pub(super) class: &'static str,
    pub(super) word: String,
}

pub(super) fn groups(comparison: &Comparison, axis: &IntervalAxis) -> Vec<Group> {
    let workers = comparison.candidate.stability_workers;
    let of = |gated: bool| -> Vec<Row> {
        let metrics = comparison.metrics.iter().filter(|metric| metric.gated == gated);
        metrics.map(|metric| row(metric, workers, axis)).collect()
    };
    let groups = [
        Group { title: None, rows: of(true) },
        Group { title: Some("Observed: reported, never blocking"), rows: of(false) },
    ];
    groups.into_iter().filter(|group| !group.rows.is_empty()).collect()
}

/// Below the table: why figures are missing, and what a closed loop makes of TPS.
pub(super) fn notes(comparison: &Comparison) -> Vec<String> {
    let mut notes: Vec<String> = Vec::new();
    for metric in &comparison.metrics {
        let Some(note) = &metric.note else { continue };
        let note = sentence(note);
        if note.starts_with(&name(metric.name)) {
            notes.push(note);
            continue;
        }
        match notes.iter_mut().find(|other| other.ends_with(&note)) {
            Some(other) => *other = format!("{}, {other}", name(metric.name)),
            None => notes.push(format!("{}: {note}", name(metric.name))),
        }
    }
    notes.push(
        "In a closed loop TPS at the pinned load says the same as mean latency, X = N/R: it is observed, not gated."
            .to_owned(),
    );
    notes
}

fn row(metric: &MetricComparison, workers: Option<u32>, axis: &IntervalAxis) -> Row {
    let reason = metric.note.as_deref().unwrap_or("not measured");
    let value = |v: Option<f64>| Datum::of(v, |v| written(metric.unit, v), reason);
    let points = metric.unit == Unit::Fraction;
    let change = Datum::of(metric.change, |c| if points { format::points(c) } else { format::change(c) }, reason);
    let interval = metric.interval.map_or_else(
        || Datum::Absent("no interval can be given".to_owned()),
        |ends| Datum::Is(if points { format::points_interval(ends) } else { format::interval(ends) }),
    );
    let limit = |t| if points { format::allowed_points(t) } else { format::allowed(t) };
    let allowed = metric.threshold.map(limit).unwrap_or_default();
    let name = title(metric.name, workers);
    let says = format!(
        "{name}: {}{}{}",
        metric.change.map_or_else(
            || "no change known".to_owned(),
            |c| if points { format::points(c) } else { format::change(c) }
        ),
        metric
            .interval
            .map(|i| format!(", interval {}", if points { format::points_interval(i) } else { format::interval(i) }))
            .unwrap_or_default(),
        if allowed.is_empty() { String::new() } else { format!(", allowed {allowed}") }
    );
    Row {
        unit: unit(metric.unit),
        gated: metric.gated,
        baseline: value(metric.baseline),
        candidate: value(metric.candidate),
        trend: trend(metric),
        plot: Drawn(axis.row(IntervalRow { metric, says: &says })),
        change,
        interval,
        allowed,
        verdict: Drawn(verdict(metric)),
        name,
    }
}

/// The change in a word, with an arrow for the way it went.
fn trend(metric: &MetricComparison) -> Option<TrendWord> {
    let trend = metric.trend()?;
    let look = Look::of_trend(trend);
    let arrow = match look {
        Look::Worse | Look::Better => arrow(metric),
        _ => "",
    };
    Some(TrendWord { class: look.class(), word: format!("{arrow}{}", trend.word()) })
}

fn verdict(metric: &MetricComparison) -> String {
    match metric.verdict {
        MetricVerdict::Pass => "<span class=\"is-better\">● pass</span>".to_owned(),
        MetricVerdict::Regressed => format!("<span class=\"is-worse\"><b>{}regressed</b></span>", arrow(metric)),
        MetricVerdict::Inconclusive => "<span class=\"is-doubt\"><b>◇ undecided</b></span>".to_owned(),
        MetricVerdict::Observed if metric.gated => "<span class=\"is-void\">not judged</span>".to_owned(),
        MetricVerdict::Observed => "<span class=\"quiet\">observed</span>".to_owned(),
    }
}

fn arrow(metric: &MetricComparison) -> &'static str {
    match metric.change {
        Some(change) if change > 0.0 => "▲ ",
        Some(change) if change < 0.0 => "▼ ",
        _ => "",
    }
}

fn written(unit: Unit, value: f64) -> String {
    match unit {
        Unit::Ms | Unit::Tps => format::number(value),
        Unit::Fraction => format::percent(value),
        Unit::Workers => format::count(value.max(0.0) as u64),
    }
}

fn unit(unit: Unit) -> &'static str {
    match unit {
        Unit::Ms => "ms",
        Unit::Tps => "TPS",
        Unit::Fraction => "%",
        Unit::Workers => "workers",
    }
}

fn title(metric: Metric, workers: Option<u32>) -> String {
    let at = |name: &str| match workers {
        Some(n) => format!("{name} at {}", format::workers(n)),
        None => name.to_owned(),
    };
    match metric {
        Metric::P99 | Metric::P95 | Metric::P50 | Metric::Tps | Metric::Max => at(&name(metric)),
        Metric::ErrorRate | Metric::Capacity | Metric::Knee | Metric::SingleLatency => name(metric),
    }
}

/// As the sentence names it, to begin a cell with.
fn name(metric: Metric) -> String {
    let name = domain_name(metric);
    let mut chars = name.chars();
    chars.next().map(|first| first.to_uppercase().chain(chars).collect()).unwrap_or_default()
}

//! The table of metrics, each with its interval on one axis.

use plimsoll_domain::comparison::{Comparison, MetricComparison, MetricVerdict};
use plimsoll_domain::row;

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
        metrics.map(|metric| Row::of(metric, workers, axis)).collect()
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
        if note.starts_with(&row::name(metric.name)) {
            notes.push(note);
            continue;
        }
        match notes.iter_mut().find(|other| other.ends_with(&note)) {
            Some(other) => *other = format!("{}, {other}", row::name(metric.name)),
            None => notes.push(format!("{}: {note}", row::name(metric.name))),
        }
    }
    notes.push(
        "In a closed loop TPS at the pinned load says the same as mean latency, X = N/R: it is observed, not gated."
            .to_owned(),
    );
    notes
}

impl Row {
    fn of(metric: &MetricComparison, workers: Option<u32>, axis: &IntervalAxis) -> Self {
        let reason = metric.note.as_deref().unwrap_or("not measured");
        let value = |v: Option<f64>| Datum::of(v, |v| row::figure(metric.unit, v), reason);
        let written = |change| row::change(metric.unit, change);
        let interval = metric.interval.map(|ends| row::interval(metric.unit, ends));
        let allowed = metric.threshold.map(|limit| row::allowed(metric.unit, limit)).unwrap_or_default();
        let name = row::title(metric.name, workers);
        let says = format!(
            "{name}: {}{}{}",
            metric.change.map_or_else(|| "no change known".to_owned(), written),
            interval.as_ref().map(|interval| format!(", interval {interval}")).unwrap_or_default(),
            if allowed.is_empty() { String::new() } else { format!(", allowed {allowed}") }
        );
        Self {
            unit: row::unit(metric.unit),
            gated: metric.gated,
            baseline: value(metric.baseline),
            candidate: value(metric.candidate),
            trend: trend(metric),
            plot: Drawn(axis.row(IntervalRow { metric, says: &says })),
            change: Datum::of(metric.change, written, reason),
            interval: interval.map_or_else(|| Datum::Absent("no interval can be given".to_owned()), Datum::Is),
            allowed,
            verdict: Drawn(verdict(metric)),
            name,
        }
    }
}

/// The change in a word, with an arrow for the way it went.
fn trend(metric: &MetricComparison) -> Option<TrendWord> {
    let trend = metric.trend()?;
    let look = Look::of_trend(trend);
    let arrow = match look {
        Look::Worse | Look::Better => arrow(metric),
        _ => String::new(),
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

fn arrow(metric: &MetricComparison) -> String {
    match row::arrow(metric) {
        "" => String::new(),
        arrow => format!("{arrow} "),
    }
}

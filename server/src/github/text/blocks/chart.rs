//! The chart, and what it shows in words.

use plimsoll_domain::comparison::{Comparison, Metric, Verdict};
use plimsoll_domain::{format, row};

use super::links;
use crate::github::text::outside::html;
use crate::github::text::told::Told;

/// The chart by its signed addresses, or where it is to be found.
pub(in crate::github::text) fn chart(told: &Told<'_>) -> String {
    let Some(comparison) = told.comparison.filter(|comparison| comparison.verdict != Verdict::Invalid) else {
        return String::new();
    };
    match told.chart {
        Some(images) => {
            let (width, height) = (images.width, images.height);
            let alt = html(&alternative(told, comparison), 400);
            let [light, dark] = [&images.light, &images.dark].map(|url| url.replace('&', "&amp;").replace('"', "%22"));
            format!(
                "<picture><source media=\"(prefers-color-scheme: dark)\" srcset=\"{dark}\"><img width=\"{width}\" \
                 height=\"{height}\" alt=\"{alt}\" src=\"{light}\"></picture>"
            )
        }
        None => {
            links::chart(told).map_or_else(String::new, |page| format!("[Chart: TPS and P99 against workers]({page})"))
        }
    }
}

/// The chart in words.
fn alternative(told: &Told<'_>, comparison: &Comparison) -> String {
    let figure = |name: Metric, written: fn(f64) -> String| {
        let metric = comparison.metrics.iter().find(|metric| metric.name == name)?;
        let this = written(metric.candidate?);
        let before = metric.baseline.map(|before| format!(", before {}", written(before)));
        let title = row::title(name, comparison.candidate.stability_workers);
        Some(format!(" {title} {this}{}.", before.unwrap_or_default()))
    };
    let tps = |tps| format!("{}{}TPS", format::number(tps), format::NARROW);
    let figures = [figure(Metric::Capacity, tps), figure(Metric::P99, format::latency)];
    let against = comparison.baseline.as_ref().map(|side| format!(" and of {}", side.revision)).unwrap_or_default();
    let figures: String = figures.into_iter().flatten().collect();
    format!("TPS and P99 against workers, of {}{against}.{figures}", told.label)
}

//! The changes of a comparison on one axis: a drawing for the table's head and one for each of its rows.

use plimsoll_domain::comparison::{Better, Comparison, MetricComparison, Trend, Unit};

use super::canvas::{Align, Canvas, Drawing, Mark, SMALL, draw, text_width};
use super::ink::{Ink, Stroke, Tone};
use super::recolour::escaped;

const WIDTH: f64 = 260.0;
/// Taller than any row, which shows its middle part: so the axis runs through all rows.
const HEIGHT: f64 = 140.0;
/// Changes beyond this are drawn at the edge, with an arrow.
const FURTHEST: f64 = 2.0;

/// The common axis, in fractions of change.
#[derive(Debug, Clone)]
pub struct IntervalAxis {
    low: f64,
    high: f64,
    ticks: Vec<f64>,
}

/// One metric on the axis.
#[derive(Debug, Clone, Copy)]
pub struct IntervalRow<'a> {
    pub metric: &'a MetricComparison,
    /// The row's text alternative.
    pub says: &'a str,
}

impl IntervalAxis {
    /// Holds all relative changes, intervals and thresholds of the comparison.
    pub fn of(comparison: &Comparison) -> Self {
        let relative = comparison.metrics.iter().filter(|metric| metric.unit != Unit::Fraction);
        let values = relative
            .flat_map(|m| [m.change, m.threshold].into_iter().flatten().chain(m.interval.into_iter().flatten()));
        let (mut low, mut high) = (-0.1f64, 0.1f64);
        for value in values.filter(|v| v.is_finite()) {
            low = low.min(value.max(-1.0));
            high = high.max(value.min(FURTHEST));
        }
        let step = [0.05, 0.1, 0.2, 0.5, 1.0].into_iter().find(|s| (high - low) / s <= 6.0).unwrap_or(1.0);
        let room = (high - low) * 0.06;
        let (low, high) = (low - room, high + room);
        let ticks = (-20..=60).map(|i| f64::from(i) * step).filter(|t| (low..=high).contains(t)).collect();
        Self { low, high, ticks }
    }

    /// Tick labels for the table's head.
    pub fn head(&self) -> String {
        let drawing = draw(WIDTH, 18.0, |canvas| {
            let mut free = f64::NEG_INFINITY;
            for tick in &self.ticks {
                let percent = (tick * 100.0).round();
                let sign = if percent > 0.0 {
                    "+"
                } else if percent < 0.0 {
                    "−"
                } else {
                    ""
                };
                let label = format!("{sign}{}", percent.abs());
                let (x, half) = (self.x(*tick), text_width(&label, SMALL) / 2.0);
                if x - half > free.max(0.0) && x + half < WIDTH {
                    canvas.small((x, 9.0), Align::Middle, Ink::Mute, &label);
                    free = x + half + 4.0;
                }
            }
        });
        fixed(&drawing, 18.0, "aria-hidden=\"true\"")
    }

    /// The interval of one metric as a whisker, what the policy forbids as a tint.
    pub fn row(&self, row: IntervalRow<'_>) -> String {
        let metric = row.metric;
        let drawing = draw(WIDTH, HEIGHT, |canvas| {
            self.forbidden(canvas, metric);
            for tick in &self.ticks {
                let (x, ink) = (self.x(*tick), if tick.abs() < 1e-9 { Ink::Axis } else { Ink::Grid });
                canvas.line((x, 0.0), (x, HEIGHT), ink, Stroke::Solid, 1.0);
            }
            if let Some(threshold) = metric.threshold {
                let x = self.x(self.relative(metric, threshold));
                canvas.line((x, 0.0), (x, HEIGHT), Ink::Text, Stroke::Dash, 1.0);
                if metric.unit == Unit::Fraction {
                    let text = format!("{} pp", (threshold * 1e5).round() / 1e3);
                    let fits = x + 6.0 + text_width(&text, SMALL) < WIDTH;
                    let (x, align) = if fits { (x + 6.0, Align::Start) } else { (x - 6.0, Align::End) };
                    canvas.small((x, HEIGHT / 2.0), align, Ink::Mute, &text);
                }
            }
            self.whisker(canvas, metric);
        });
        fixed(&drawing, HEIGHT, &format!("role=\"img\" aria-label=\"{}\"", escaped(row.says)))
    }

    fn forbidden(&self, canvas: &mut Canvas<'_>, metric: &MetricComparison) {
        let Some(threshold) = metric.threshold else { return };
        let at = self.x(self.relative(metric, threshold));
        match metric.better {
            Better::Lower => canvas.rect((at, 0.0), (WIDTH, HEIGHT), Ink::Forbidden),
            Better::Higher => canvas.rect((0.0, 0.0), (at, HEIGHT), Ink::Forbidden),
        }
    }

    fn whisker(&self, canvas: &mut Canvas<'_>, metric: &MetricComparison) {
        let middle = HEIGHT / 2.0;
        let ink = tone(metric).map_or(Ink::Text, Tone::ink);
        if let Some([low, high]) = metric.interval.map(|ends| ends.map(|v| self.x(self.relative(metric, v)))) {
            canvas.line((low, middle), (high, middle), ink, Stroke::Solid, 1.75);
            for x in [low, high] {
                canvas.line((x, middle - 6.0), (x, middle + 6.0), ink, Stroke::Solid, 1.75);
            }
        }
        if let Some(change) = metric.change {
            let mark = if metric.gated { Mark::Disc } else { Mark::Ring };
            canvas.mark((self.x(self.relative(metric, change)), middle), mark, 3.4, ink);
        }
    }

    /// An error rate's change in points is put on the axis of per cent so that its threshold lies at 10 %.
    fn relative(&self, metric: &MetricComparison, value: f64) -> f64 {
        match (metric.unit, metric.threshold) {
            (Unit::Fraction, Some(threshold)) if threshold.abs() > 0.0 => value / threshold.abs() * 0.1,
            (Unit::Fraction, _) => value * 100.0,
            _ => value,
        }
    }

    fn x(&self, change: f64) -> f64 {
        ((change - self.low) / (self.high - self.low)).clamp(0.0, 1.0) * WIDTH
    }
}

/// The tone of a change: of its verdict if gated, else of what its interval says.
fn tone(metric: &MetricComparison) -> Option<Tone> {
    match metric.trend()? {
        Trend::Worse => Some(Tone::Worse),
        Trend::Better => Some(Tone::Better),
        Trend::Undecided => Some(Tone::Doubt),
        Trend::WithinNoise => None,
    }
}

fn fixed(drawing: &Drawing, height: f64, attributes: &str) -> String {
    format!(
        "<svg class=\"drawn fixed\" width=\"{WIDTH}\" height=\"{height}\" viewBox=\"{}\" {attributes}>{}</svg>",
        drawing.view_box, drawing.body
    )
}

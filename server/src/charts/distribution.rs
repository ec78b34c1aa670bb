//! The latency distribution from the median on, over an axis that stretches the tail.

use plimsoll_domain::format;
use plimsoll_domain::histogram::Histogram;
use plimsoll_domain::percentile::MIN_FOR_P99;

use super::axis::{Panel, margin, short};
use super::canvas::{Align, At, BOLD, Canvas, Drawing, Mark, TEXT, draw, text_width};
use super::figure::{Chart, DataTable, Datum, Size};
use super::ink::{Ink, Stroke, Tone};
use super::labels::{Taken, spread};
use super::scale::{Linear, Tail, latency_unit};

/// One run's successes.
#[derive(Debug, Clone, Copy)]
pub struct Curve<'a> {
    pub label: &'a str,
    pub tone: Tone,
    pub histogram: &'a Histogram,
}

impl Curve<'_> {
    /// The highest quantile that its number of requests supports, by the rule that withholds a P99: 6.62 requests in
    /// the tail above it.
    fn supported(&self) -> f64 {
        1.0 - 0.01 * MIN_FOR_P99 as f64 / self.histogram.len().max(1) as f64
    }

    /// `None` for a quantile that the requests do not support.
    fn ms(&self, q: f64) -> Option<f64> {
        (q <= self.supported() + 1e-9).then(|| self.histogram.quantile_ms(q)).flatten()
    }
}

/// The curves over each other, the baseline first; with two, the gap is drawn at P99. `None` when no run has requests
/// enough to go past its median.
pub fn distribution(curves: &[Curve<'_>]) -> Option<Chart> {
    let curves: Vec<Curve<'_>> = curves.iter().copied().filter(|curve| curve.supported() > 0.5).collect();
    let last = curves.last()?;
    let tail = Tail::up_to(curves.iter().map(Curve::supported).fold(0.5, f64::max));
    let names: Vec<&str> = curves.iter().map(|curve| curve.label).collect();
    let title = format!("Latency distribution from P50 on, {}", names.join(" and "));
    let figure = |curve: &Curve<'_>, q| curve.ms(q).map_or_else(|| "withheld".to_owned(), format::latency);
    let description =
        format!("{}: P50 {}, P95 {}, P99 {}.", last.label, figure(last, 0.50), figure(last, 0.95), figure(last, 0.99));
    let table = table(&curves, &tail);
    let draw = |size| drawing(&curves, &tail, size);
    Some(Chart::drawn("distribution", title, description, Size::HALF, table, draw))
}

/// What all parts of one drawing share.
struct Scene {
    panel: Panel,
    tail: Tail,
    y: Linear,
    unit: &'static str,
    /// ms in one unit of the axis.
    scale: f64,
}

fn drawing(curves: &[Curve<'_>], tail: &Tail, size: Size) -> Drawing {
    let narrow = size == Size::Narrow;
    let low = narrow || curves.len() == 1;
    let (width, height) = (
        size.width(),
        if narrow {
            300.0
        } else if low {
            280.0
        } else {
            500.0
        },
    );
    let all: Vec<Vec<(f64, f64)>> =
        curves.iter().map(|curve| tail.samples(120).filter_map(|q| Some((q, curve.ms(q)?))).collect()).collect();
    let most = all.iter().flatten().map(|p| p.1).fold(0.0, f64::max);
    let (unit, scale) = latency_unit(most);
    let y = Linear::holding([most / scale], if low { 5 } else { 7 });
    let names: Vec<String> = curves.iter().map(|curve| end(curve, narrow)).collect();
    let named = names.iter().filter(|_| curves.len() > 1).map(|name| (7.0, name.as_str()));
    let left = y.room().max(if narrow { 40.0 } else { 46.0 });
    let scene = Scene {
        panel: Panel { left, right: width - margin(named), top: 34.0, bottom: height - 28.0 },
        tail: *tail,
        y,
        unit,
        scale,
    };
    draw(width, height, |canvas| scene.draw(canvas, curves, &all, narrow))
}

impl Scene {
    fn at(&self, (q, ms): (f64, f64)) -> At {
        (self.panel.x(self.tail.at(q)), self.panel.y(self.y.at(ms / self.scale)))
    }

    fn draw(&self, canvas: &mut Canvas<'_>, curves: &[Curve<'_>], all: &[Vec<(f64, f64)>], narrow: bool) {
        let panel = &self.panel;
        let lines: Vec<Vec<At>> = all.iter().map(|line| line.iter().map(|p| self.at(*p)).collect()).collect();
        if let ([_, candidate], [below, above]) = (curves, &lines[..]) {
            let both = below.len().min(above.len());
            let outline: Vec<At> = above[..both].iter().chain(below[..both].iter().rev()).copied().collect();
            canvas.area(&outline, if candidate.tone == Tone::Worse { Ink::Forbidden } else { Ink::Band });
        }
        panel.values(canvas, &self.y, &format!("latency, {}", self.unit));
        for (curve, line) in curves.iter().zip(&lines) {
            canvas.path(line, curve.tone.ink(), Stroke::Solid, 2.0);
        }
        let mut taken = Taken::default();
        for (i, curve) in curves.iter().enumerate().rev() {
            // Labels stand outside the gap: below the lower line, above the upper one.
            let above = curves.len() == 1 || i == higher(curves);
            self.percentiles(canvas, curve, above, i + 1 == curves.len(), &mut taken);
        }
        if let [baseline, candidate] = curves {
            self.gap(canvas, baseline, candidate, &mut taken);
        }
        let ends: Vec<f64> = lines.iter().map(|line| line.last().map_or(panel.bottom, |end| end.1)).collect();
        for (curve, y) in curves.iter().zip(spread(&ends, 16.0, panel.top, panel.bottom)) {
            if curves.len() > 1 {
                write(canvas, (panel.right + 7.0, y), Align::Start, curve.tone, &end(curve, narrow));
            }
        }
        let ticks: Vec<_> =
            self.tail.ticks().into_iter().map(|(q, label)| (self.tail.at(q), label.to_owned())).collect();
        panel.foot(canvas, &ticks, "%");
    }

    /// Marks with their figures; a figure that would cover another is left out, P95 first.
    fn percentiles(&self, canvas: &mut Canvas<'_>, curve: &Curve<'_>, above: bool, named: bool, taken: &mut Taken) {
        for (q, name) in [(0.99, "P99"), (0.50, "P50"), (0.95, "P95")] {
            let Some(ms) = curve.ms(q) else { continue };
            let (x, y) = self.at((q, ms));
            let mark = if curve.tone == Tone::Baseline { Mark::Square } else { Mark::Disc };
            canvas.anchored(None, format!("{}, {name}: {}", curve.label, format::latency(ms)), |canvas| {
                canvas.mark((x, y), mark, 4.0, curve.tone.ink());
            });
            let figure = format::number(ms / self.scale);
            let text = if named { format!("{name} {figure}") } else { figure };
            let room = text_width(&text, TEXT) * if curve.tone == Tone::Baseline { 1.0 } else { BOLD };
            // P50 stands on the axis: its label goes inwards and below, where the rising line leaves room.
            let (x, align) = match above && q > 0.50 {
                true => ((x - 2.0).max(self.panel.left + room + 4.0), Align::End),
                false => (if q == 0.50 { x + 9.0 } else { x + 3.0 }, Align::Start),
            };
            let y = if above && q > 0.50 { y - 13.0 } else { y + 17.0 };
            let y = y.clamp(self.panel.top - 8.0, self.panel.bottom - 8.0);
            let from = if align == Align::End { x - room } else { x };
            if taken.takes(from, from + room, y) {
                write(canvas, (x, y), align, curve.tone, &text);
            }
        }
    }

    /// The difference at P99, where it has room for its label.
    fn gap(&self, canvas: &mut Canvas<'_>, baseline: &Curve<'_>, candidate: &Curve<'_>, taken: &mut Taken) {
        let (Some(old), Some(new)) = (baseline.ms(0.99), candidate.ms(0.99)) else { return };
        let ((x, from), (_, to)) = (self.at((0.99, old)), self.at((0.99, new)));
        if (from - to).abs() < 40.0 {
            return;
        }
        let (top, bottom) = (from.min(to) + 8.0, from.max(to) - 8.0);
        canvas.line((x, top), (x, bottom), Ink::Mute, Stroke::Rule, 1.0);
        let sign = if new > old { "+" } else { "−" };
        let text = format!("{sign}{}{}{}", format::number((new - old).abs() / self.scale), format::NARROW, self.unit);
        let room = text_width(&text, TEXT) * BOLD;
        let fits = x + 8.0 + room < self.panel.right;
        let (from, align) = if fits { (x + 8.0, Align::Start) } else { (x - 8.0 - room, Align::End) };
        let y = (top + bottom) / 2.0;
        if taken.takes(from, from + room, y) {
            canvas.bold((if fits { from } else { x - 8.0 }, y), align, Ink::Text, &text);
        }
    }
}

/// Which of two curves lies higher at the highest percentile that both have.
fn higher(curves: &[Curve<'_>]) -> usize {
    let q = curves.iter().map(Curve::supported).fold(1.0, f64::min).min(0.99);
    let ms: Vec<f64> = curves.iter().map(|curve| curve.ms(q).unwrap_or(0.0)).collect();
    usize::from(ms.get(1) >= ms.first())
}

/// A curve's name at its end.
fn end(curve: &Curve<'_>, narrow: bool) -> String {
    short(curve.label, if narrow { 9 } else { 13 })
}

fn write(canvas: &mut Canvas<'_>, at: At, align: Align, tone: Tone, text: &str) {
    match tone {
        Tone::Baseline => canvas.text(at, align, Ink::Mute, text),
        tone => canvas.bold(at, align, tone.text(), text),
    }
}

fn table(curves: &[Curve<'_>], tail: &Tail) -> DataTable {
    let mut head = vec!["Percentile".to_owned()];
    head.extend(curves.iter().map(|curve| format!("{}, ms", curve.label)));
    let named =
        [(0.5, "P50"), (0.75, "P75"), (0.9, "P90"), (0.95, "P95"), (0.99, "P99"), (0.999, "P99.9"), (0.9999, "P99.99")];
    let rows = named.into_iter().filter(|(q, _)| tail.at(*q) <= 1.0 + 1e-9).map(|(q, name)| {
        let mut row = vec![Datum::Is(name.to_owned())];
        row.extend(curves.iter().map(|curve| {
            let reason = format!("{} requests are too few for it", format::count(curve.histogram.len()));
            Datum::of(curve.ms(q), format::number, &reason)
        }));
        row
    });
    DataTable { rows: rows.collect(), head }
}

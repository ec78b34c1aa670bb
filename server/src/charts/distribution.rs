//! The latency distribution from the median on, over an axis that stretches the tail.

use plimsoll_domain::format;
use plimsoll_domain::histogram::Histogram;
use plimsoll_domain::percentile::MIN_FOR_P99;

use super::axis::{Panel, short};
use super::canvas::{Align, At, Canvas, Drawing, Mark, TEXT, draw, text_width};
use super::figure::{Chart, DataTable, Datum, Size};
use super::ink::{Ink, Stroke, Tone};
use super::labels::spread;
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

fn drawing(curves: &[Curve<'_>], tail: &Tail, size: Size) -> Drawing {
    let narrow = size == Size::Narrow;
    let (width, height) = (size.width(), if narrow { 300.0 } else { 500.0 });
    let (left, right) = if narrow { (44.0, width - 60.0) } else { (46.0, width - 86.0) };
    let panel = Panel { left, right, top: 34.0, bottom: height - 28.0 };
    let points =
        |curve: &Curve<'_>| -> Vec<(f64, f64)> { tail.samples(120).filter_map(|q| Some((q, curve.ms(q)?))).collect() };
    let all: Vec<Vec<(f64, f64)>> = curves.iter().map(points).collect();
    let most = all.iter().flatten().map(|p| p.1).fold(0.0, f64::max);
    let (name, scale) = latency_unit(most);
    let y = Linear::holding([most / scale], if narrow { 5 } else { 7 });
    let at = |(q, ms): (f64, f64)| (panel.x(tail.at(q)), panel.y(y.at(ms / scale)));
    draw(width, height, |canvas| {
        let lines: Vec<Vec<At>> = all.iter().map(|line| line.iter().copied().map(at).collect()).collect();
        if let ([_, candidate], [below, above]) = (curves, &lines[..]) {
            let worse = candidate.tone == Tone::Worse;
            let both = below.len().min(above.len());
            let outline: Vec<At> = above[..both].iter().chain(below[..both].iter().rev()).copied().collect();
            canvas.area(&outline, if worse { Ink::Forbidden } else { Ink::Band });
        }
        panel.values(canvas, &y, &format!("latency, {name}"));
        for (curve, line) in curves.iter().zip(&lines) {
            canvas.path(line, curve.tone.ink(), Stroke::Solid, 2.0);
        }
        for (i, curve) in curves.iter().enumerate() {
            // Labels stand outside the gap: below the lower line, above the upper one.
            let upper = curves.len() == 1 || i == higher(curves);
            percentiles(canvas, curve, upper, curves.len() == 1 || i == 1, scale, &panel, &at);
        }
        if let [baseline, candidate] = curves {
            gap(canvas, baseline, candidate, scale, &panel, &at);
        }
        let ends: Vec<f64> = lines.iter().map(|line| line.last().map_or(panel.bottom, |end| end.1)).collect();
        for (curve, y) in curves.iter().zip(spread(&ends, 16.0, panel.top, panel.bottom)) {
            if curves.len() > 1 {
                let label = short(curve.label, if narrow { 7 } else { 11 });
                match curve.tone {
                    Tone::Baseline => canvas.text((panel.right + 7.0, y), Align::Start, Ink::Mute, &label),
                    tone => canvas.bold((panel.right + 7.0, y), Align::Start, tone.text(), &label),
                }
            }
        }
        let ticks: Vec<_> = tail.ticks().into_iter().map(|(q, label)| (tail.at(q), label.to_owned())).collect();
        panel.foot(canvas, &ticks, "%");
    })
}

/// Which of two curves lies higher at the highest percentile that both have.
fn higher(curves: &[Curve<'_>]) -> usize {
    let q = curves.iter().map(Curve::supported).fold(1.0, f64::min).min(0.99);
    let ms: Vec<f64> = curves.iter().map(|curve| curve.ms(q).unwrap_or(0.0)).collect();
    usize::from(ms.get(1) >= ms.first())
}

fn percentiles(
    canvas: &mut Canvas<'_>,
    curve: &Curve<'_>,
    above: bool,
    named: bool,
    scale: f64,
    panel: &Panel,
    at: &impl Fn((f64, f64)) -> At,
) {
    for (q, name) in [(0.50, "P50"), (0.95, "P95"), (0.99, "P99")] {
        let Some(ms) = curve.ms(q) else { continue };
        let (x, y) = at((q, ms));
        let mark = if curve.tone == Tone::Baseline { Mark::Square } else { Mark::Disc };
        canvas.anchored(None, format!("{}, {name}: {}", curve.label, format::latency(ms)), |canvas| {
            canvas.mark((x, y), mark, 4.0, curve.tone.ink());
        });
        let figure = format::number(ms / scale);
        let text = if named { format!("{name} {figure}") } else { figure };
        // P50 stands on the axis: its label goes inwards.
        let (x, align) = match q == 0.50 {
            true => (x + 9.0, Align::Start),
            false if above => (x - 2.0, Align::End),
            false => (x + 3.0, Align::Start),
        };
        let y = if above && q > 0.50 {
            y - 13.0
        } else if above {
            y - 12.0
        } else {
            y + 17.0
        };
        let y = y.clamp(panel.top - 8.0, panel.bottom - 8.0);
        let x = if align == Align::End { x.max(panel.left + text_width(&text, TEXT) + 4.0) } else { x };
        match curve.tone {
            Tone::Baseline => canvas.text((x, y), align, Ink::Mute, &text),
            tone => canvas.bold((x, y), align, tone.text(), &text),
        }
    }
}

/// The difference at P99, where it has room for its label.
fn gap(
    canvas: &mut Canvas<'_>,
    baseline: &Curve<'_>,
    candidate: &Curve<'_>,
    scale: f64,
    panel: &Panel,
    at: &impl Fn((f64, f64)) -> At,
) {
    let (Some(old), Some(new)) = (baseline.ms(0.99), candidate.ms(0.99)) else { return };
    let ((x, from), (_, to)) = (at((0.99, old)), at((0.99, new)));
    if (from - to).abs() < 44.0 {
        return;
    }
    let (top, bottom) = (from.min(to) + 8.0, from.max(to) - 8.0);
    canvas.line((x, top), (x, bottom), Ink::Mute, Stroke::Rule, 1.0);
    let sign = if new > old { "+" } else { "−" };
    let unit = if scale > 1.0 { "s" } else { "ms" };
    let text = format!("{sign}{}{}{unit}", format::number((new - old).abs() / scale), format::NARROW);
    let fits = x + 8.0 + text_width(&text, TEXT) < panel.right;
    let (x, align) = if fits { (x + 8.0, Align::Start) } else { (x - 8.0, Align::End) };
    canvas.bold((x, (top + bottom) / 2.0), align, Ink::Text, &text);
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

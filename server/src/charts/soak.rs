//! The stability phase over time: P50 and P99 of consecutive slices.

use plimsoll_domain::figures::StepFigures;
use plimsoll_domain::histogram::Histogram;
use plimsoll_domain::report::Step;
use plimsoll_domain::{format, percentile};

use super::axis::{Panel, margin};
use super::canvas::{Align, At, Canvas, Drawing, draw};
use super::figure::{Chart, DataTable, Datum, Size, withheld};
use super::ink::{Ink, Stroke};
use super::labels::spread;
use super::scale::{Linear, latency_unit};

/// More points than this only make a line rough.
const MOST_POINTS: usize = 60;

/// A stretch of the measured part, in seconds since the start of the step.
#[derive(Debug, Clone, PartialEq)]
pub struct Slice {
    pub from_s: f64,
    pub to_s: f64,
    pub requests: u64,
    pub p50_ms: Option<f64>,
    /// Withheld where the stretch holds too few requests.
    pub p99_ms: Option<f64>,
}

/// The step's slices, neighbours merged until there are at most 60 and, where the step allows it, each holds enough
/// requests for a P99.
pub fn slices(step: &Step) -> Vec<Slice> {
    let count = step.slices.len();
    if count == 0 {
        return Vec::new();
    }
    let each = (step.latency.len() / count as u64).max(1);
    // A tenth more than needed: slices differ.
    let for_p99 = (percentile::MIN_FOR_P99 * 11 / 10).div_ceil(each) as usize;
    let at_most = count.div_ceil(MOST_POINTS);
    // Fewer than four points would show no course: then P50 keeps its own, and P99 is withheld.
    let merge = if count / for_p99 >= 4 { at_most.max(for_p99) } else { at_most };
    let at = |slice: usize| {
        let ms = step.measured_from_ms + slice as u64 * step.slice_ms;
        ms.min(step.measured_to_ms) as f64 / 1_000.0
    };
    // A rest at the end goes with the last whole part: alone it would be too thin.
    let parts = (0..(count / merge).max(1)).map(|i| {
        let (from, to) = (i * merge, if (i + 2) * merge > count { count } else { (i + 1) * merge });
        let whole = Histogram::merged(&step.slices[from..to]);
        Slice {
            from_s: at(from),
            to_s: at(to),
            requests: whole.len(),
            p50_ms: whole.quantile_ms(0.5),
            p99_ms: percentile::p99(&whole).map(|p| p.value),
        }
    });
    parts.collect()
}

/// The course of latency; `figures` are those of the whole step and label the lines. `None` without slices.
pub fn soak(step: &Step, figures: &StepFigures, label: &str) -> Option<Chart> {
    let slices = slices(step);
    slices.iter().any(|slice| slice.p50_ms.is_some()).then(|| {
        let length = format::duration(figures.measured_s);
        let title = format!("Latency over {length} at {}, {label}", format::workers(step.workers));
        let value = |v: Option<f64>| v.map_or_else(|| "withheld".to_owned(), format::latency);
        let description = format!(
            "{} points. Over the whole phase P50 is {}, P99 {}.",
            slices.len(),
            value(figures.p50_ms),
            value(figures.p99_ms)
        );
        let scene = Scene { step, figures, slices: &slices };
        Chart::drawn("soak", title, description, Size::HALF, table(&slices), |size| scene.draw(size))
    })
}

struct Scene<'a> {
    step: &'a Step,
    figures: &'a StepFigures,
    slices: &'a [Slice],
}

impl Scene<'_> {
    fn draw(&self, size: Size) -> Drawing {
        let narrow = size == Size::Narrow;
        let (width, height) = (size.width(), if narrow { 250.0 } else { 280.0 });
        let all = self.slices.iter().flat_map(|s| [s.p50_ms, s.p99_ms]).chain([self.figures.p99_ms]).flatten();
        let most = all.fold(0.0, f64::max);
        let (name, scale) = latency_unit(most);
        let y = Linear::holding([most / scale], 4);
        let whole = [("P99", self.figures.p99_ms, true), ("P50", self.figures.p50_ms, false)];
        let ends: Vec<_> = whole
            .into_iter()
            .filter_map(|(name, ms, bold)| Some((format!("{name} {}", format::number(ms? / scale)), ms? / scale, bold)))
            .collect();
        let margin = margin(ends.iter().map(|(text, ..)| (7.0, text.as_str())));
        let left = y.room().max(if narrow { 40.0 } else { 46.0 });
        let panel = Panel { left, right: width - margin, top: 34.0, bottom: height - 28.0 };
        let total_s = self.step.duration_ms as f64 / 1_000.0;
        let x = |s: f64| panel.x((s / total_s.max(1e-9)).clamp(0.0, 1.0));
        draw(width, height, |canvas| {
            for (from, to) in [(0, self.step.measured_from_ms), (self.step.measured_to_ms, self.step.duration_ms)] {
                if to > from {
                    let px = |ms: u64| x(ms as f64 / 1_000.0);
                    canvas.rect((px(from), panel.top), (px(to), panel.bottom), Ink::Band);
                }
            }
            panel.values(canvas, &y, &format!("latency, {name}"));
            let at = |slice: &Slice, ms: f64| (x((slice.from_s + slice.to_s) / 2.0), panel.y(y.at(ms / scale)));
            self.course(canvas, 1.25, "P50", |slice| slice.p50_ms.map(|ms| (at(slice, ms), ms)));
            self.course(canvas, 2.0, "P99", |slice| slice.p99_ms.map(|ms| (at(slice, ms), ms)));
            let levels: Vec<f64> = ends.iter().map(|(_, value, _)| panel.y(y.at(*value))).collect();
            for ((text, _, bold), y) in ends.iter().zip(spread(&levels, 16.0, panel.top, panel.bottom)) {
                match bold {
                    true => canvas.bold((panel.right + 7.0, y), Align::Start, Ink::Text, text),
                    false => canvas.text((panel.right + 7.0, y), Align::Start, Ink::Text, text),
                }
            }
            let (unit, per) = if total_s < 180.0 { ("s", 1.0) } else { ("min", 60.0) };
            let length = total_s / per;
            let ticks = Linear::holding([length], if narrow { 5 } else { 7 }).ticks();
            let ticks: Vec<_> = ticks.into_iter().map(|(v, label)| (v / length.max(1e-9), label)).collect();
            panel.foot(canvas, &ticks.into_iter().filter(|(f, _)| *f <= 1.001).collect::<Vec<_>>(), unit);
        })
    }

    /// One line, broken where a slice has no figure; a lone point is drawn as one.
    fn course(&self, canvas: &mut Canvas<'_>, width: f64, name: &str, at: impl Fn(&Slice) -> Option<(At, f64)>) {
        let points: Vec<Option<(At, f64)>> = self.slices.iter().map(at).collect();
        for run in points.split(Option::is_none) {
            let run: Vec<(At, f64)> = run.iter().copied().flatten().collect();
            if let [(at, ms)] = run[..] {
                canvas.anchored(None, format!("{name} {}", format::latency(ms)), |canvas| {
                    canvas.circle(at, 2.5, Ink::Blue, None);
                });
            }
            canvas.path(&run.iter().map(|(at, _)| *at).collect::<Vec<_>>(), Ink::Blue, Stroke::Solid, width);
        }
    }
}

fn table(slices: &[Slice]) -> DataTable {
    let rows = slices.iter().map(|slice| {
        let seconds = |s: f64| format!("{s:.0}");
        vec![
            Datum::Is(format!("{} to {}", seconds(slice.from_s), seconds(slice.to_s))),
            Datum::Is(format::count(slice.requests)),
            Datum::of(slice.p50_ms, format::number, "no request succeeded"),
            Datum::of(slice.p99_ms, format::number, &withheld(slice.requests)),
        ]
    });
    let head = ["Seconds", "Requests", "P50, ms", "P99, ms"].map(str::to_owned).to_vec();
    DataTable { head, rows: rows.collect() }
}

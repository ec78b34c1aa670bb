//! A run under way: TPS and P99 over the time since its attempt began, two panels over one axis.

use plimsoll_domain::format;

use super::axis::{Panel, margin};
use super::canvas::{Align, At, Canvas, Drawing, SMALL, draw, text_width};
use super::figure::{Chart, DataTable, Datum, Size};
use super::ink::{Ink, Stroke};
use super::scale::{Linear, latency_unit};

/// What the runner told at one time.
#[derive(Debug, Clone, PartialEq)]
pub struct Moment {
    /// Since the attempt began.
    pub at_s: f64,
    pub phase: &'static str,
    pub workers: Option<u32>,
    pub tps: Option<f64>,
    pub p99_ms: Option<f64>,
}

/// Rows of the table; more only repeat the line.
const MAX_ROWS: usize = 60;
/// A run that has just begun has an axis too.
const LEAST_S: f64 = 60.0;

/// By rising time. Without moments the panels say so, and are there so that the page does not jump when the first one comes.
pub fn live(moments: &[Moment], label: &str) -> Chart {
    let scene = Scene { moments };
    let value = |v: Option<f64>, written: fn(f64) -> String| v.map_or_else(|| "not known".to_owned(), written);
    let description = format!(
        "TPS is {}, P99 {} now.",
        value(scene.newest(|moment| moment.tps), format::number),
        value(scene.newest(|moment| moment.p99_ms), format::latency)
    );
    let title = format!("TPS and P99 of {label} so far");
    Chart::drawn("live", title, description, Size::WHOLE, table(moments), |size| scene.draw(size))
}

struct Scene<'a> {
    moments: &'a [Moment],
}

impl Scene<'_> {
    fn draw(&self, size: Size) -> Drawing {
        let (width, height) = (size.width(), if size == Size::Narrow { 330.0 } else { 370.0 });
        let most = |of: fn(&Moment) -> Option<f64>| self.moments.iter().filter_map(of).fold(0.0, f64::max);
        let (unit, per_unit) = latency_unit(most(|moment| moment.p99_ms));
        let tps = Linear::holding([most(|moment| moment.tps)], 3);
        let p99 = Linear::holding([most(|moment| moment.p99_ms) / per_unit], 3);
        let ends = [
            self.newest(|moment| moment.tps).map(|tps| format!("TPS {}", format::number(tps))),
            self.newest(|moment| moment.p99_ms).map(|ms| format!("P99 {}", format::number(ms / per_unit))),
        ];
        let room = margin(ends.iter().flatten().map(|text| (7.0, text.as_str())).chain([(7.0, "P99 0.123")]));
        let left = tps.room().max(p99.room()).max(46.0);
        let (top, gap, foot) = (38.0, 42.0, 28.0);
        let each = (height - top - gap - foot) / 2.0;
        let upper = Panel { left, right: width - room, top, bottom: top + each };
        let lower = Panel { top: height - foot - each, bottom: height - foot, ..upper };
        let length = self.moments.last().map_or(LEAST_S, |moment| moment.at_s.max(LEAST_S));
        let x = |moment: &Moment| upper.x((moment.at_s / length).clamp(0.0, 1.0));
        draw(width, height, |canvas| {
            upper.values(canvas, &tps, "TPS");
            lower.values(canvas, &p99, &format!("P99, {unit}"));
            self.phases(canvas, &upper, &lower, x);
            let at = |panel: &Panel, scale: &Linear, moment: &Moment, value: f64| (x(moment), panel.y(scale.at(value)));
            self.course(canvas, |moment| moment.tps.map(|tps_now| at(&upper, &tps, moment, tps_now)), ends[0].as_ref());
            self.course(
                canvas,
                |moment| moment.p99_ms.map(|ms| at(&lower, &p99, moment, ms / per_unit)),
                ends[1].as_ref(),
            );
            let empty = |panel: &Panel, canvas: &mut Canvas<'_>, what: &str| {
                let middle = ((panel.left + panel.right) / 2.0, (panel.top + panel.bottom) / 2.0);
                canvas.text(middle, Align::Middle, Ink::Mute, what);
            };
            if ends[0].is_none() {
                empty(&upper, canvas, "no TPS told so far");
            }
            if ends[1].is_none() {
                empty(&lower, canvas, "no P99 told so far: it needs more requests");
            }
            let (unit, per) = if length < 180.0 { ("s", 1.0) } else { ("min", 60.0) };
            let ticks = Linear::holding([length / per], if size == Size::Narrow { 5 } else { 8 }).ticks();
            let ticks: Vec<_> = ticks.into_iter().map(|(v, label)| (v * per / length, label)).collect();
            lower.foot(canvas, &ticks.into_iter().filter(|(f, _)| *f <= 1.001).collect::<Vec<_>>(), unit);
        })
    }

    /// A rule where a phase begins, and its name above where it has room: the newest before the others.
    fn phases(&self, canvas: &mut Canvas<'_>, upper: &Panel, lower: &Panel, x: impl Fn(&Moment) -> f64) {
        let begins = self.moments.iter().enumerate().filter(|(i, moment)| {
            let before = i.checked_sub(1).map(|before| self.moments[before].phase);
            before != Some(moment.phase)
        });
        let mut free = upper.right + 30.0;
        for (i, moment) in begins.rev() {
            let x = x(moment);
            if i > 0 {
                upper.rule(canvas, x);
                lower.rule(canvas, x);
            }
            let wide = text_width(moment.phase, SMALL);
            if x + wide + 6.0 < free {
                canvas.small((x + 3.0, upper.top - 6.0), Align::Start, Ink::Mute, moment.phase);
                free = x;
            }
        }
    }

    /// One line, broken where there is no figure, with its newest value at its end.
    fn course(&self, canvas: &mut Canvas<'_>, at: impl Fn(&Moment) -> Option<At>, end: Option<&String>) {
        let points: Vec<Option<At>> = self.moments.iter().map(at).collect();
        for part in points.split(Option::is_none) {
            let part: Vec<At> = part.iter().copied().flatten().collect();
            if let [only] = part[..] {
                canvas.circle(only, 2.0, Ink::Blue, None);
            }
            canvas.path(&part, Ink::Blue, Stroke::Solid, 1.75);
        }
        if let Some((last, text)) = points.iter().rev().flatten().next().zip(end) {
            canvas.circle(*last, 3.5, Ink::Blue, None);
            canvas.bold((last.0 + 7.0, last.1), Align::Start, Ink::Text, text);
        }
    }

    /// The newest figure, if the newest moment that is of a phase with figures has it.
    fn newest(&self, of: fn(&Moment) -> Option<f64>) -> Option<f64> {
        self.moments.iter().rev().find_map(of)
    }
}

/// At equal distances, the newest last.
fn table(moments: &[Moment]) -> DataTable {
    let every = moments.len().div_ceil(MAX_ROWS).max(1);
    let rows = moments.iter().rev().step_by(every).map(|moment| {
        vec![
            Datum::Is(format::count(moment.at_s as u64)),
            Datum::Is(moment.phase.to_owned()),
            Datum::of(moment.workers.map(f64::from), |n| format::count(n as u64), "not told"),
            Datum::of(moment.tps, format::number, "not told"),
            Datum::of(moment.p99_ms, format::number, "too few requests, or not told"),
        ]
    });
    let mut rows: Vec<_> = rows.collect();
    rows.reverse();
    let head = ["Second", "Phase", "Workers", "TPS", "P99, ms"].map(str::to_owned).to_vec();
    DataTable { head, rows }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn moments(n: u32) -> Vec<Moment> {
        let moment = |i: u32| Moment {
            at_s: f64::from(i),
            phase: if i < n / 2 { "staircase" } else { "stability" },
            workers: Some(5 + i / 30),
            tps: (i != 3).then(|| 100.0 + f64::from(i % 7)),
            p99_ms: (i > 5).then(|| 200.0 + f64::from(i % 11)),
        };
        (0..n).map(moment).collect()
    }

    #[test]
    fn the_newest_figures_stand_at_the_ends_and_phases_have_names() {
        let drawn = live(&moments(900), "v1.2.0").markup();
        for text in ["TPS 103", "P99 208", "staircase", "stability", "TPS is 103, P99 208"] {
            assert!(drawn.contains(text), "{text}: {drawn}");
        }
        assert!(live(&moments(900), "v1.2.0").table.rows.len() <= MAX_ROWS);
    }

    #[test]
    fn a_run_without_figures_has_panels_that_say_so() {
        let drawn = live(&[], "<v>").markup();
        for told in ["no TPS told so far", "no P99 told so far"] {
            assert!(drawn.contains(told), "{told}: {drawn}");
        }
        let begun = live(&moments(5), "v").markup();
        assert!(!begun.contains("no TPS told") && begun.contains("no P99 told so far"), "{begun}");
        assert!(!live(&moments(9), "v").markup().contains("told so far"));
        assert!(drawn.contains("TPS is not known, P99 not known") && drawn.contains("&lt;v&gt;"), "{drawn}");
        assert!(!live(&moments(1), "v").markup().contains("NaN"));
    }
}

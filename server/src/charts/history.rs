//! P99 and capacity over releases: two panels over one axis of releases, the oldest first.

use plimsoll_domain::format;

use super::axis::{Panel, margin, short};
use super::canvas::{Align, At, Canvas, Drawing, Mark, TEXT, draw, text_width};
use super::figure::{Chart, DataTable, Datum, Size};
use super::ink::{Ink, Stroke, Tone};
use super::scale::{Linear, latency_unit};

/// Up to this many releases each has its own mark, whisker and link; more are drawn as a line with a band.
const MOST_MARKS: usize = 300;

#[derive(Debug, Clone)]
pub struct History {
    /// By the time of measurement.
    pub releases: Vec<Release>,
    /// What the P99 was measured at, when all share it.
    pub workers: Option<u32>,
}

#[derive(Debug, Clone)]
pub struct Release {
    pub label: String,
    /// What hovering over a point says after the label: commit and date.
    pub detail: String,
    /// The snapshot's page.
    pub href: String,
    pub p99_ms: Option<f64>,
    pub p99_interval_ms: Option<[f64; 2]>,
    pub capacity_tps: Option<f64>,
    /// What the gate would have let pass.
    pub allowed_p99_ms: Option<f64>,
    pub allowed_capacity_tps: Option<f64>,
    pub standing: Standing,
    /// Which of the two figures made it `regressed`.
    pub worse: Worse,
    /// Lines join only neighbours of one segment: those that compare.
    pub segment: usize,
}

/// How a release is drawn.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Standing {
    Plain,
    Regressed,
    Undecided,
    /// Hollow: its figures count for nothing.
    Invalid,
}

/// Where a regressed release is marked: an error rate alone marks both.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Worse {
    pub p99: bool,
    pub capacity: bool,
}

/// A measure that no release has is left out. `None` when there is neither.
pub fn history(history: &History) -> Option<Chart> {
    let releases = &history.releases;
    let shown = Shown::of(releases);
    if !shown.p99 && !shown.capacity {
        return None;
    }
    let at = history.workers.map(|n| format!(" at {}", format::workers(n))).unwrap_or_default();
    let parts = [
        shown.p99.then(|| format!("P99{at}")),
        shown.capacity.then(|| if shown.p99 { "capacity" } else { "Capacity" }.to_owned()),
    ];
    let parts: Vec<String> = parts.into_iter().flatten().collect();
    let title = format!("{} for each release", parts.join(" and "));
    let (first, last) = (releases.first()?, releases.last()?);
    let value =
        |v: Option<f64>, unit: &str| v.map_or_else(|| "absent".to_owned(), |v| format!("{} {unit}", format::number(v)));
    let description = format!(
        "{} releases from {} to {}. P99 first {}, last {}; capacity first {}, last {}.",
        releases.len(),
        first.label,
        last.label,
        value(first.p99_ms, "ms"),
        value(last.p99_ms, "ms"),
        value(first.capacity_tps, "TPS"),
        value(last.capacity_tps, "TPS")
    );
    Some(Chart::drawn("series", title, description, Size::WHOLE, table(releases), |size| drawing(history, size)))
}

/// The measures that some release has.
#[derive(Debug, Clone, Copy)]
struct Shown {
    p99: bool,
    capacity: bool,
}

impl Shown {
    fn of(releases: &[Release]) -> Self {
        Self {
            p99: releases.iter().any(|release| release.p99_ms.is_some()),
            capacity: releases.iter().any(|release| release.capacity_tps.is_some()),
        }
    }
}

/// One measure over the releases.
struct Series<'a> {
    panel: Panel,
    y: Linear,
    scale: f64,
    releases: &'a [Release],
    value: fn(&Release) -> Option<f64>,
    interval: fn(&Release) -> Option<[f64; 2]>,
    allowed: fn(&Release) -> Option<f64>,
    moved: fn(Worse) -> bool,
    /// The mark that points to where it got worse.
    worse: Mark,
    unit: &'static str,
}

fn drawing(history: &History, size: Size) -> Drawing {
    let narrow = size == Size::Narrow;
    let releases = &history.releases[..];
    let shown = Shown::of(releases);
    let both = shown.p99 && shown.capacity;
    let height = match (narrow, both) {
        (true, true) => 420.0,
        (false, true) => 520.0,
        (true, false) => 250.0,
        (false, false) => 300.0,
    };
    let width = size.width();
    let tops = |r: &Release| [r.p99_ms, r.p99_interval_ms.map(|i| i[1]), r.allowed_p99_ms];
    let most = releases.iter().flat_map(tops).flatten().fold(0.0, f64::max);
    let (name, scale) = latency_unit(most);
    let most_tps = releases.iter().flat_map(|r| [r.capacity_tps, r.allowed_capacity_tps]).flatten();
    let (y, below) = (Linear::holding([most / scale], 5), Linear::holding(most_tps, 4));
    let left = y.room().max(below.room()).max(if narrow { 40.0 } else { 46.0 });
    let whole = Panel { left, right: width - 40.0, top: 34.0, bottom: height - 30.0 };
    let middle = height * 0.55;
    let (upper, lower) = match both {
        true => (Panel { bottom: middle, ..whole }, Panel { top: middle + 48.0, ..whole }),
        false => (whole, whole),
    };
    let mut p99 = Series {
        panel: upper,
        y,
        scale,
        releases,
        value: |r| r.p99_ms,
        interval: |r| r.p99_interval_ms,
        allowed: |r| r.allowed_p99_ms,
        moved: |worse| worse.p99 || !worse.capacity,
        worse: Mark::Up,
        unit: name,
    };
    let mut capacity = Series {
        panel: lower,
        y: below,
        scale: 1.0,
        releases,
        value: |r| r.capacity_tps,
        interval: |_| None,
        allowed: |r| r.allowed_capacity_tps,
        moved: |worse| worse.capacity || !worse.p99,
        worse: Mark::Down,
        unit: "TPS",
    };
    let texts = [p99.ends(narrow), capacity.ends(narrow)].concat();
    let right = width - margin(texts.iter().map(|text| (8.0, text.as_str())));
    (p99.panel.right, capacity.panel.right) = (right, right);
    let at = history.workers.filter(|_| !narrow).map(|n| format!(" at {}", format::workers(n))).unwrap_or_default();
    draw(width, height, |canvas| {
        if shown.p99 {
            p99.panel.values(canvas, &p99.y, &format!("P99{at}, {name}"));
            p99.draw(canvas, narrow);
        }
        if shown.capacity {
            capacity.panel.values(canvas, &capacity.y, "capacity, TPS");
            capacity.draw(canvas, narrow);
        }
        names(canvas, &capacity.panel, releases, narrow);
    })
}

impl Series<'_> {
    fn draw(&self, canvas: &mut Canvas<'_>, narrow: bool) {
        let many = self.releases.len() > MOST_MARKS;
        if !many {
            self.allowances(canvas);
        }
        for (from, to) in segments(self.releases) {
            let line: Vec<At> = (from..to)
                .filter(|i| self.releases[*i].standing != Standing::Invalid)
                .filter_map(|i| self.at(i, (self.value)(&self.releases[i])))
                .collect();
            if many {
                self.band(canvas, from, to);
            }
            canvas.path(&thinned(&line), Ink::Blue, Stroke::Solid, 1.5);
        }
        for i in 0..self.releases.len() {
            if !many || self.releases[i].standing != Standing::Plain {
                self.point(canvas, i, many);
            }
        }
        self.last(canvas, narrow);
    }

    /// A release that regressed by the other figure alone is plain here.
    fn standing(&self, release: &Release) -> Standing {
        match release.standing {
            Standing::Regressed if !(self.moved)(release.worse) => Standing::Plain,
            standing => standing,
        }
    }

    fn at(&self, i: usize, value: Option<f64>) -> Option<At> {
        let y = self.panel.y(self.y.at(value? / self.scale));
        Some((slot(&self.panel, i, self.releases.len()), y))
    }

    /// What each release had to stay within, dashed across its slot.
    fn allowances(&self, canvas: &mut Canvas<'_>) {
        let half = (self.panel.right - self.panel.left) / self.releases.len() as f64 / 2.0;
        for (i, release) in self.releases.iter().enumerate() {
            if let Some((x, y)) = self.at(i, (self.allowed)(release)) {
                canvas.line((x - half, y), (x + half, y), Ink::Mute, Stroke::Dash, 1.0);
            }
        }
    }

    fn band(&self, canvas: &mut Canvas<'_>, from: usize, to: usize) {
        let edge = |side: usize| -> Vec<At> {
            let at = |i: usize| self.at(i, (self.interval)(&self.releases[i]).map(|interval| interval[side]));
            let valid = (from..to).filter(|i| self.releases[*i].standing != Standing::Invalid);
            thinned(&valid.filter_map(at).collect::<Vec<_>>())
        };
        let (low, high) = (edge(0), edge(1));
        if low.len() > 1 {
            canvas.area(&high.into_iter().chain(low.into_iter().rev()).collect::<Vec<_>>(), Ink::Band);
        }
    }

    fn point(&self, canvas: &mut Canvas<'_>, i: usize, many: bool) {
        let release = &self.releases[i];
        let Some(value) = (self.value)(release) else { return };
        let Some((x, y)) = self.at(i, Some(value)) else { return };
        let (ink, mark, radius): (_, _, f64) = match self.standing(release) {
            Standing::Plain => (Ink::Blue, Mark::Disc, 3.4),
            Standing::Regressed => (Ink::Worse, self.worse, 5.0),
            Standing::Undecided => (Ink::Doubt, Mark::Diamond, 3.6),
            Standing::Invalid => (Ink::Void, Mark::Ring, 3.2),
        };
        let radius =
            if many { radius * 0.7 } else { radius.min(slot_width(&self.panel, self.releases.len()) * 0.6).max(1.4) };
        if let Some([low, high]) = (self.interval)(release).filter(|_| !many) {
            let end = |v: f64| (x, self.panel.y(self.y.at(v / self.scale)));
            canvas.line(end(low), end(high), ink, Stroke::Solid, 1.75);
        }
        let word = match release.standing {
            Standing::Plain => "",
            Standing::Regressed => ", regressed",
            Standing::Undecided => ", undecided",
            Standing::Invalid => ", invalid, not judged",
        };
        let figure = format!("{}{}{}", format::number(value / self.scale), format::NARROW, self.unit);
        let title = format!("{} ({}): {figure}{word}", release.label, release.detail);
        canvas.anchored(Some(release.href.clone()), title, |canvas| canvas.mark((x, y), mark, radius, ink));
    }

    /// The newest figure, and what the gate allowed it.
    fn last(&self, canvas: &mut Canvas<'_>, narrow: bool) {
        let count = self.releases.len();
        let Some(newest) = self.releases.last() else { return };
        let Some((x, y)) = self.at(count - 1, (self.value)(newest)) else { return };
        let x = (x + 10.0).max(self.panel.right + 8.0);
        let tone = match self.standing(newest) {
            Standing::Plain => Tone::Plain,
            Standing::Regressed => Tone::Worse,
            Standing::Undecided => Tone::Doubt,
            Standing::Invalid => Tone::Void,
        };
        let mut texts = self.ends(narrow).into_iter();
        if let Some(text) = texts.next() {
            canvas.bold((x, y), Align::Start, tone.text(), &text);
        }
        let Some((_, allowed)) = self.at(count - 1, (self.allowed)(newest)) else { return };
        let apart = if (allowed - y).abs() >= 15.0 { allowed } else { y + if allowed > y { 15.0 } else { -15.0 } };
        if let Some(text) = texts.next() {
            canvas.small((x, apart), Align::Start, Ink::Mute, &text);
        }
    }

    /// What stands at the end of the axis: the newest figure, and what it was allowed.
    fn ends(&self, narrow: bool) -> Vec<String> {
        let Some(newest) = self.releases.last() else { return Vec::new() };
        let Some(value) = (self.value)(newest) else { return Vec::new() };
        let bound = match (narrow, self.worse) {
            (false, _) => "allowed",
            (true, Mark::Down) => "min",
            (true, _) => "max",
        };
        let figure = format!("{}{}{}", format::number(value / self.scale), format::NARROW, self.unit);
        let allowed = (self.allowed)(newest).map(|v| format!("{bound} {}", format::number(v / self.scale)));
        [Some(figure), allowed].into_iter().flatten().collect()
    }
}

/// The releases' names below the axis, from the newest back, those left out that would touch.
fn names(canvas: &mut Canvas<'_>, panel: &Panel, releases: &[Release], narrow: bool) {
    let mut free = f64::INFINITY;
    for (i, release) in releases.iter().enumerate().rev() {
        let label = short(&release.label, if narrow { 9 } else { 12 });
        let (x, half) = (slot(panel, i, releases.len()), text_width(&label, TEXT) / 2.0);
        if x + half > free {
            continue;
        }
        free = x - half - 8.0;
        canvas.line((x, panel.bottom), (x, panel.bottom + 5.0), Ink::Axis, Stroke::Solid, 1.0);
        canvas.text((x, panel.bottom + 15.0), Align::Middle, Ink::Mute, &label);
    }
}

fn slot_width(panel: &Panel, count: usize) -> f64 {
    (panel.right - panel.left) / count.max(1) as f64
}

/// The middle of a release's slot.
fn slot(panel: &Panel, i: usize, count: usize) -> f64 {
    panel.left + slot_width(panel, count) * (i as f64 + 0.5)
}

/// The stretches of neighbours that compare.
fn segments(releases: &[Release]) -> Vec<(usize, usize)> {
    let mut out = Vec::new();
    let mut from = 0;
    for i in 1..=releases.len() {
        if i == releases.len() || releases[i].segment != releases[from].segment {
            out.push((from, i));
            from = i;
        }
    }
    out
}

/// The lowest and the highest point of each pixel column: more would not be seen.
fn thinned(line: &[At]) -> Vec<At> {
    if line.len() < 1_000 {
        return line.to_vec();
    }
    let column = |at: &At| at.0.floor() as i64;
    let columns = line.chunk_by(|a, b| column(a) == column(b));
    columns
        .flat_map(|points| {
            let (mut low, mut high) = (points[0], points[0]);
            for point in points {
                low = if point.1 < low.1 { *point } else { low };
                high = if point.1 > high.1 { *point } else { high };
            }
            if low.0 <= high.0 { [low, high] } else { [high, low] }
        })
        .collect()
}

fn table(releases: &[Release]) -> DataTable {
    let head = ["Release", "P99, ms", "Interval, ms", "Capacity, TPS"].map(str::to_owned).to_vec();
    // The page's own table has every release; this one serves the chart and is bounded like it.
    let rows = releases.iter().rev().take(MOST_MARKS).map(|release| {
        vec![
            Datum::Is(release.label.clone()),
            Datum::of(release.p99_ms, format::number, "not measured or withheld"),
            release.p99_interval_ms.map_or_else(
                || Datum::Absent("not measured or withheld".to_owned()),
                |[low, high]| Datum::Is(format!("{} to {}", format::number(low), format::number(high))),
            ),
            Datum::of(release.capacity_tps, format::number, "not measured"),
        ]
    });
    DataTable { rows: rows.collect(), head }
}

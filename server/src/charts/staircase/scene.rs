//! One drawing of a staircase: TPS with the ideal line, knees and capacity above, latency below.

use plimsoll_domain::format;
use plimsoll_domain::knee::Capacity;

use super::{ALONE, Latency, PAIR, Stairs};
use crate::charts::axis::{Panel, margin, short};
use crate::charts::canvas::{Align, BOLD, Canvas, Drawing, SMALL, TEXT, draw, text_width};
use crate::charts::figure::Size;
use crate::charts::ink::{Ink, Stroke, Tone};
use crate::charts::labels::{Taken, spread};
use crate::charts::plot::{Line, ideal};
use crate::charts::scale::{Linear, Log, latency_unit};

/// The upper panel leaves room for the ideal line to leave the measured one, and for labels.
const HEADROOM: f64 = 1.15;

/// All that one drawing needs.
pub(super) struct Scene<'a> {
    pub(super) runs: &'a [Stairs<'a>],
    pub(super) tps: Vec<Line>,
    pub(super) latency: &'a [Latency],
    pub(super) x: Log,
    pub(super) pinned: Option<f64>,
    pub(super) unit: &'a str,
}

impl Scene<'_> {
    pub(super) fn draw(&self, size: Size) -> Drawing {
        let narrow = size == Size::Narrow;
        let drawn = if self.two() { PAIR } else { ALONE };
        let (width, height) = (size.width(), if narrow { 440.0 } else { f64::from(drawn.1) });
        let run = self.runs[self.runs.len() - 1];
        let capacity = run.figures.capacity.filter(|_| run.tone == Tone::Plain);
        let values = self.tps.iter().flat_map(|line| line.points.iter().map(|p| p.1 * HEADROOM));
        let y = Linear::holding(values, if narrow { 5 } else { 6 });
        let most = self.latency.iter().flat_map(|l| l.line.points.iter().map(|p| p.1)).fold(0.0, f64::max);
        let (unit, scale) = latency_unit(most);
        let below = Linear::holding([most / scale], 4);
        let left = y.room().max(below.room()).max(if narrow { 40.0 } else { 46.0 });
        let right = width - self.margin(narrow, capacity);
        let middle = height * 0.5;
        let upper = Panel { left, right, top: 34.0, bottom: middle };
        let lower = Panel { left, right, top: middle + 50.0, bottom: height - 28.0 };
        draw(width, height, |canvas| {
            if let Some(capacity) = capacity {
                self.saturation(canvas, &upper, &lower, &capacity);
            }
            self.pinned_load(canvas, &upper, &lower, narrow);
            upper.values(canvas, &y, "TPS");
            self.throughput(canvas, &upper, &y, narrow, capacity);
            lower.values(canvas, &below, &format!("{}, {unit}", self.unit));
            self.latencies(canvas, &lower, &below, scale, narrow);
            let ticks: Vec<_> =
                self.x.ticks(if narrow { 8 } else { 12 }).into_iter().map(|(v, label)| (self.x.at(v), label)).collect();
            lower.foot(canvas, &ticks, "workers");
        })
    }

    /// Room for what stands at the lines' ends.
    fn margin(&self, narrow: bool, capacity: Option<Capacity>) -> f64 {
        let disc = capacity.map(|capacity| (33.0, disc_text(narrow, &capacity).0));
        let lines = self.latency.iter().map(|latency| (8.0, latency.end(narrow)));
        let runs = self.runs.iter().flat_map(|run| {
            let tps = run.figures.capacity.map(|c| (8.0, format!("{}{}TPS", format::number(c.tps), format::NARROW)));
            [Some((8.0, short(run.label, if narrow { 9 } else { 13 }))), tps.filter(|_| capacity.is_none())]
        });
        let texts: Vec<(f64, String)> =
            lines.chain(runs.flatten()).chain(disc).chain([(8.0, "workers".to_owned())]).collect();
        margin(texts.iter().map(|(offset, text)| (*offset, text.as_str())))
    }

    /// A rule through both panels, below everything else, with its name between them.
    fn pinned_load(&self, canvas: &mut Canvas<'_>, upper: &Panel, lower: &Panel, narrow: bool) {
        let Some(pinned) = self.pinned else { return };
        let x = upper.x(self.x.at(pinned));
        if !(upper.left..=upper.right).contains(&x) {
            return;
        }
        upper.rule(canvas, x);
        lower.rule(canvas, x);
        let text = format!("pinned load {}", format::count(pinned as u64));
        // The unit of the lower axis stands at the left end of the same line.
        let least = lower.left + if narrow { 86.0 } else { 96.0 };
        lower.centred(canvas, (x.max(least), lower.top - 16.0), Ink::Mute, &text);
    }

    fn saturation(&self, canvas: &mut Canvas<'_>, upper: &Panel, lower: &Panel, capacity: &Capacity) {
        let from = upper.x(self.x.at(f64::from(capacity.workers)));
        if capacity.lower_bound || from >= upper.right - 4.0 {
            return;
        }
        canvas.rect((from, upper.top), (upper.right, lower.bottom), Ink::Saturated);
        let room = upper.right - from;
        let texts = ["saturated: more workers only wait longer", "saturated"];
        if let Some(text) = texts.into_iter().find(|text| text_width(text, SMALL) < room) {
            canvas.small((from + 2.0, upper.top - 9.0), Align::Start, Ink::Mute, text);
        }
    }

    fn throughput(&self, canvas: &mut Canvas<'_>, panel: &Panel, y: &Linear, narrow: bool, capacity: Option<Capacity>) {
        let run = self.runs[self.runs.len() - 1];
        if let Some(capacity) = capacity {
            let level = panel.y(y.at(capacity.tps));
            canvas.line((panel.left, level), (panel.right, level), Ink::Axis, Stroke::Solid, 1.0);
        }
        let mut named = None;
        if let Some(one) = run.figures.smoke.as_ref().and_then(|smoke| smoke.tps_per_worker) {
            let most = self.tps.iter().filter_map(|line| line.points.last()).map(|p| p.0).fold(0.0, f64::max);
            let line = ideal(one, &self.x, y, panel, most);
            canvas.path(&line, Ink::Axis, Stroke::Dot, 1.25);
            named = line.get(line.len() * 9 / 10).copied();
        }
        for line in &self.tps {
            line.draw(canvas, panel, &self.x, y, 1.0);
        }
        let mut taken = Taken::default();
        for run in self.runs.iter().filter(|run| run.tone != Tone::Baseline || self.two()) {
            self.knee(canvas, panel, y, run, &mut taken);
        }
        // Named where it parts from what was measured, unless a knee's label is there.
        let (label, room) = ("ideal N / R1", text_width("ideal N / R1", SMALL));
        if let Some((x, y)) = named.filter(|(x, y)| x - 7.0 - room > panel.left && taken.takes(x - 7.0 - room, *x, *y))
        {
            canvas.small((x - 7.0, y - 2.0), Align::End, Ink::Mute, label);
        }
        match capacity {
            Some(capacity) => {
                self.base_end(canvas, panel, y, narrow, &capacity);
                disc(canvas, panel, y, narrow, &capacity);
            }
            None => self.ends(canvas, panel, y, narrow),
        }
    }

    /// Whether two runs are compared, rather than one shown before its baseline.
    fn two(&self) -> bool {
        self.runs.len() == 2 && self.runs[1].tone != Tone::Plain
    }

    fn knee(&self, canvas: &mut Canvas<'_>, panel: &Panel, y: &Linear, run: &Stairs<'_>, taken: &mut Taken) {
        let Some(capacity) = run.figures.capacity else { return };
        let Some(step) = run.figures.steps.iter().find(|s| s.workers == capacity.workers) else { return };
        let Some(tps) = step.tps else { return };
        let (x, at) = (panel.x(self.x.at(f64::from(capacity.workers))), panel.y(y.at(tps)));
        // The higher of two knees is labelled above its line, so that the labels never meet.
        let above = run.tone == Tone::Baseline
            && self.runs.iter().all(|other| other.figures.capacity.is_none_or(|c| c.tps <= capacity.tps))
            || run.tone != Tone::Baseline
                && self.two()
                && self.runs[0].figures.capacity.is_some_and(|base| base.tps < capacity.tps);
        let (near, far, text) = if above { (-8.0, -20.0, -29.0) } else { (8.0, 20.0, 29.0) };
        if at + text < panel.top || at + text > panel.bottom - 4.0 {
            return;
        }
        canvas.line((x, at + near), (x, at + far), Ink::Axis, Stroke::Solid, 1.0);
        let bound = if capacity.lower_bound { "≥ " } else { "" };
        let label = format!("knee {bound}{}", format::count(u64::from(capacity.workers)));
        let room = text_width(&label, TEXT) * BOLD;
        let x = (x - 9.0).min(panel.right - room);
        taken.takes(x, x + room, at + text);
        canvas.bold((x, at + text), Align::Start, run.tone.text(), &label);
    }

    /// The baseline's name at the end of its line, out of the way of the capacity's disc.
    fn base_end(&self, canvas: &mut Canvas<'_>, panel: &Panel, y: &Linear, narrow: bool, capacity: &Capacity) {
        let [base, _] = self.runs else { return };
        let Some((x, at)) = self.tps[0].end(panel, &self.x, y, 1.0) else { return };
        let disc = panel.y(y.at(capacity.tps));
        let at = if (at - disc).abs() < 30.0 { if at <= disc { disc - 22.0 } else { disc + 34.0 } } else { at };
        let label = short(base.label, if narrow { 9 } else { 13 });
        canvas.text((x.max(panel.right) + 8.0, at.max(panel.top)), Align::Start, Ink::Mute, &label);
    }

    /// The name and the capacity of each run at the end of its line.
    fn ends(&self, canvas: &mut Canvas<'_>, panel: &Panel, y: &Linear, narrow: bool) {
        let ends: Vec<_> = self.tps.iter().map(|line| line.end(panel, &self.x, y, 1.0)).collect();
        let at: Vec<f64> = ends.iter().map(|end| end.map_or(panel.bottom, |e| e.1)).collect();
        let placed = spread(&at, 34.0, panel.top + 6.0, panel.bottom - 20.0);
        for ((run, end), y) in self.runs.iter().zip(ends).zip(placed) {
            let Some((x, _)) = end else { continue };
            let x = if panel.right - x < 60.0 { panel.right + 8.0 } else { x + 10.0 };
            let label = short(run.label, if narrow { 9 } else { 13 });
            let ink = run.tone.text();
            match run.tone {
                Tone::Baseline => canvas.text((x, y), Align::Start, ink, &label),
                _ => canvas.bold((x, y), Align::Start, ink, &label),
            }
            if let Some(capacity) = run.figures.capacity {
                let text = format!("{}{}TPS", format::number(capacity.tps), format::NARROW);
                canvas.text((x, y + 15.0), Align::Start, ink, &text);
            }
        }
    }

    fn latencies(&self, canvas: &mut Canvas<'_>, panel: &Panel, y: &Linear, scale: f64, narrow: bool) {
        for latency in self.latency {
            latency.line.draw(canvas, panel, &self.x, y, scale);
        }
        let ends: Vec<_> = self
            .latency
            .iter()
            .filter_map(|latency| Some((latency, latency.line.end(panel, &self.x, y, scale)?)))
            .collect();
        let at: Vec<f64> = ends.iter().map(|(_, end)| end.1).collect();
        let placed = spread(&at, 15.0, panel.top - 4.0, panel.bottom - 6.0);
        for ((latency, (x, _)), y) in ends.into_iter().zip(placed) {
            let x = if panel.right - x < 60.0 { panel.right + 8.0 } else { x + 10.0 };
            let label = latency.end(narrow);
            match latency.bold {
                true => canvas.bold((x, y), Align::Start, latency.tone.text(), &label),
                false => canvas.text((x, y), Align::Start, latency.tone.text(), &label),
            }
        }
    }
}

/// The Plimsoll disc at the capacity, with its figure.
fn disc(canvas: &mut Canvas<'_>, panel: &Panel, y: &Linear, narrow: bool, capacity: &Capacity) {
    let (x, at) = (panel.right, panel.y(y.at(capacity.tps)));
    canvas.circle((x + 14.0, at), 6.0, Ink::Paper, None);
    canvas.circle((x + 14.0, at), 6.0, Ink::Text, Some(1.75));
    canvas.line((x, at), (x + 28.0, at), Ink::Text, Stroke::Solid, 1.75);
    let (text, below) = disc_text(narrow, capacity);
    canvas.bold((x + 33.0, at), Align::Start, Ink::Text, &text);
    canvas.small((x + 33.0, at + 15.0), Align::Start, Ink::Mute, below);
}

fn disc_text(narrow: bool, capacity: &Capacity) -> (String, &'static str) {
    let bound = if capacity.lower_bound { "≥ " } else { "" };
    let figure = format!("{bound}{}", format::number(capacity.tps));
    if narrow { (figure, "TPS") } else { (format!("{figure}{}TPS", format::NARROW), "capacity") }
}

//! Lines through measured points.

use plimsoll_domain::format;

use super::axis::Panel;
use super::canvas::{At, Canvas, Mark};
use super::ink::{Ink, Stroke};
use super::scale::{Linear, Log};

/// One measured line over workers.
#[derive(Debug, Clone)]
pub(super) struct Line {
    /// Workers and value, by rising workers.
    pub(super) points: Vec<(f64, f64)>,
    pub(super) ink: Ink,
    pub(super) stroke: Stroke,
    pub(super) width: f64,
    pub(super) mark: Option<Mark>,
    /// What a point says: the start of its title, and how its value is written.
    pub(super) says: String,
    pub(super) written: fn(f64) -> String,
}

impl Line {
    pub(super) fn draw(&self, canvas: &mut Canvas<'_>, panel: &Panel, x: &Log, y: &Linear, scale: f64) {
        let at = |(workers, value): (f64, f64)| (panel.x(x.at(workers)), panel.y(y.at(value / scale)));
        canvas.path(&straight(&self.points).into_iter().map(at).collect::<Vec<_>>(), self.ink, self.stroke, self.width);
        let Some(mark) = self.mark else { return };
        for point in &self.points {
            let title = format!("{}{}: {}", self.says, format::workers(point.0 as u32), (self.written)(point.1));
            let radius = if mark == Mark::Disc { 4.2 } else { 3.8 };
            canvas.anchored(None, title, |canvas| canvas.mark(at(*point), mark, radius, self.ink));
        }
    }

    /// The last point, in pixels.
    pub(super) fn end(&self, panel: &Panel, x: &Log, y: &Linear, scale: f64) -> Option<At> {
        self.points.last().map(|(workers, value)| (panel.x(x.at(*workers)), panel.y(y.at(value / scale))))
    }
}

/// Lines between steps are straight in workers, which a logarithmic axis bends: so a measured line never crosses the
/// ideal one by drawing alone.
fn straight(points: &[(f64, f64)]) -> Vec<(f64, f64)> {
    const PARTS: u32 = 10;
    let between = points.windows(2).flat_map(|pair| {
        let ((w0, v0), (w1, v1)) = (pair[0], pair[1]);
        (0..PARTS).map(move |i| {
            let workers = w0 * (w1 / w0).powf(f64::from(i) / f64::from(PARTS));
            let share = if w1 > w0 { (workers - w0) / (w1 - w0) } else { 0.0 };
            (workers, v0 + (v1 - v0) * share)
        })
    });
    between.chain(points.last().copied()).collect()
}

/// The ideal of one worker times their number, as far as the axes go.
pub(super) fn ideal(tps_per_worker: f64, x: &Log, y: &Linear, panel: &Panel, most_workers: f64) -> Vec<At> {
    let last = (y.max / tps_per_worker).min(most_workers);
    if last <= 1.0 {
        return Vec::new();
    }
    (0..=40)
        .map(|i| last.powf(f64::from(i) / 40.0))
        .map(|w| (panel.x(x.at(w)), panel.y(y.at(w * tps_per_worker))))
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lines_are_straight_in_workers() {
        let line = straight(&[(1.0, 10.0), (100.0, 1_000.0)]);
        assert!(line.iter().all(|(w, v)| (v / w - 10.0).abs() < 1e-9), "{line:?}");
        assert_eq!(straight(&[(5.0, 1.0)]), [(5.0, 1.0)]);
        assert_eq!(straight(&[(5.0, 1.0), (5.0, 2.0)]).last(), Some(&(5.0, 2.0)));
    }
}

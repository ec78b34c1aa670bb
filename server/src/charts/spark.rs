//! A series at the size of a word, for a row of a table.

use super::canvas::{At, Mark, draw};
use super::ink::{Ink, Stroke, Tone};
use super::recolour::escaped;

const WIDTH: f64 = 132.0;
const HEIGHT: f64 = 34.0;

/// The values in order, gaps left open, the last one marked in `tone`. Zero is not on its axis: it shows a course, not
/// a size. Empty without values.
pub fn spark(values: &[Option<f64>], tone: Tone, says: &str) -> String {
    let known: Vec<f64> = values.iter().flatten().copied().filter(|v| v.is_finite()).collect();
    if known.is_empty() {
        return String::new();
    }
    let (low, high) = known.iter().fold((f64::INFINITY, 0.0f64), |(l, h), v| (l.min(*v), h.max(*v)));
    // Small wobbles stay small: the axis spans at least a fifth of the value.
    let span = (high - low).max(high * 0.2).max(1e-9);
    let middle = (high + low) / 2.0;
    let at = |i: usize, value: f64| -> At {
        let x =
            if values.len() == 1 { WIDTH / 2.0 } else { 5.0 + (WIDTH - 10.0) * i as f64 / (values.len() - 1) as f64 };
        (x, HEIGHT / 2.0 - (value - middle) / span * (HEIGHT - 12.0))
    };
    let points: Vec<Option<At>> = values.iter().enumerate().map(|(i, v)| v.map(|v| at(i, v))).collect();
    let drawing = draw(WIDTH, HEIGHT, |canvas| {
        for part in points.split(Option::is_none) {
            let part: Vec<At> = part.iter().copied().flatten().collect();
            canvas.path(&part, Ink::Blue, Stroke::Solid, 1.25);
        }
        if let Some(Some(last)) = points.last() {
            canvas.mark(*last, Mark::Disc, 3.6, tone.ink());
        }
    });
    format!(
        "<svg class=\"drawn fixed\" width=\"{WIDTH}\" height=\"{HEIGHT}\" viewBox=\"{}\" role=\"img\" aria-label=\"{}\">{}</svg>",
        drawing.view_box,
        escaped(says),
        drawing.body
    )
}

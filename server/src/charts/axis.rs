//! Panels: a plot area with its axes.

use super::canvas::{Align, At, BOLD, Canvas, SMALL, TEXT, text_width};
use super::ink::{Ink, Stroke};
use super::scale::Linear;

/// A plot area in CSS pixels.
#[derive(Debug, Clone, Copy)]
pub(super) struct Panel {
    pub(super) left: f64,
    pub(super) right: f64,
    pub(super) top: f64,
    pub(super) bottom: f64,
}

impl Panel {
    /// The pixel at a fraction of the width.
    pub(super) fn x(&self, fraction: f64) -> f64 {
        self.left + (self.right - self.left) * fraction
    }

    /// The pixel at a fraction of the height, from below.
    pub(super) fn y(&self, fraction: f64) -> f64 {
        self.bottom - (self.bottom - self.top) * fraction
    }

    /// Horizontal grid lines with their labels, and the unit above the axis.
    pub(super) fn values(&self, canvas: &mut Canvas<'_>, scale: &Linear, unit: &str) {
        for (value, label) in scale.ticks() {
            let y = self.y(scale.at(value));
            let (ink, width) = if value == 0.0 { (Ink::Axis, 1.0) } else { (Ink::Grid, 1.0) };
            canvas.line((self.left, y), (self.right, y), ink, Stroke::Solid, width);
            canvas.text((self.left - 8.0, y), Align::End, Ink::Mute, &label);
        }
        canvas.text((self.left - 36.0, self.top - 16.0), Align::Start, Ink::Mute, unit);
    }

    /// Ticks below the panel, those left out that would touch their neighbour, and the unit after the last.
    pub(super) fn foot(&self, canvas: &mut Canvas<'_>, ticks: &[(f64, String)], unit: &str) {
        let mut free = f64::NEG_INFINITY;
        for (fraction, label) in ticks {
            let (x, half) = (self.x(*fraction), text_width(label, TEXT) / 2.0);
            if x - half < free {
                continue;
            }
            free = x + half + 6.0;
            canvas.line((x, self.bottom), (x, self.bottom + 5.0), Ink::Axis, Stroke::Solid, 1.0);
            canvas.text((x, self.bottom + 15.0), Align::Middle, Ink::Mute, label);
        }
        let x = free.max(self.right + 8.0);
        canvas.text((x, self.bottom + 15.0), Align::Start, Ink::Mute, unit);
    }

    /// A dotted rule across the height.
    pub(super) fn rule(&self, canvas: &mut Canvas<'_>, x: f64) {
        canvas.line((x, self.top), (x, self.bottom), Ink::Mute, Stroke::Rule, 1.0);
    }

    /// A small text centred on `x`, kept within the panel's width.
    pub(super) fn centred(&self, canvas: &mut Canvas<'_>, (x, y): At, ink: Ink, text: &str) {
        let half = text_width(text, SMALL) / 2.0;
        let x = x.min(self.right - half).max(self.left + half);
        canvas.small((x, y), Align::Middle, ink, text);
    }
}

/// Pixels that these texts, bold or not, need to the right of a panel, each behind its offset; at least 40.
pub(super) fn margin<'a>(texts: impl IntoIterator<Item = (f64, &'a str)>) -> f64 {
    let widths = texts.into_iter().map(|(offset, text)| offset + text_width(text, TEXT) * BOLD + 2.0);
    widths.fold(40.0, f64::max)
}

/// A label cut to what the margin holds.
pub(super) fn short(label: &str, most: usize) -> String {
    if label.chars().count() <= most {
        return label.to_owned();
    }
    label.chars().take(most.saturating_sub(1)).chain(['…']).collect()
}

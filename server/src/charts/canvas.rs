//! A sheet to draw on, in CSS pixels. plotters' coordinates are whole numbers, so the drawing is ten times as large as
//! its view box says in pixels.

use plotters::prelude::*;
use plotters::style::text_anchor::{HPos, Pos, VPos};

use super::ink::{Ink, Stroke, sentinel};
use super::recolour::recolour;

/// Units of the drawing for one CSS pixel.
const SCALE: f64 = 10.0;
/// Font sizes in CSS pixels; the style sheet sets the same.
pub(super) const TEXT: f64 = 12.5;
pub(super) const SMALL: f64 = 11.5;
/// How much wider bold text runs.
pub(super) const BOLD: f64 = 1.1;

/// A point in CSS pixels from the upper left corner.
pub(super) type At = (f64, f64);

/// What a mark leads to and says.
#[derive(Debug, Clone)]
pub(super) struct Anchor {
    pub(super) href: Option<String>,
    pub(super) title: String,
}

/// A finished drawing: elements without their `<svg>`, and the view box that holds them.
#[derive(Debug, Clone)]
pub(super) struct Drawing {
    pub(super) body: String,
    pub(super) view_box: String,
    /// In CSS pixels.
    pub(super) size: (u32, u32),
}

/// Draws on a sheet of the given size.
pub(super) fn draw(width: f64, height: f64, paint: impl FnOnce(&mut Canvas<'_>)) -> Drawing {
    let mut text = String::new();
    let size = ((width * SCALE) as u32, (height * SCALE) as u32);
    let anchors = {
        let mut canvas = Canvas { svg: SVGBackend::with_string(&mut text, size), anchors: Vec::new(), anchor: 0 };
        paint(&mut canvas);
        done(canvas.svg.present());
        canvas.anchors
    };
    Drawing {
        body: recolour(&text, &anchors),
        view_box: format!("0 0 {} {}", size.0, size.1),
        size: (width as u32, height as u32),
    }
}

pub(super) struct Canvas<'a> {
    svg: SVGBackend<'a>,
    anchors: Vec<Anchor>,
    /// What is drawn now belongs to this anchor; 0 is none.
    anchor: u16,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Align {
    Start,
    Middle,
    End,
}

/// The shape of a point.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Mark {
    Disc,
    Ring,
    Square,
    Diamond,
    Up,
    Down,
}

impl Canvas<'_> {
    pub(super) fn line(&mut self, from: At, to: At, ink: Ink, stroke: Stroke, width: f64) {
        let style = self.style(ink, stroke, width);
        done(self.svg.draw_line(scaled(from), scaled(to), &style));
    }

    pub(super) fn path(&mut self, points: &[At], ink: Ink, stroke: Stroke, width: f64) {
        if points.len() > 1 {
            let style = self.style(ink, stroke, width);
            done(self.svg.draw_path(points.iter().copied().map(scaled), &style));
        }
    }

    pub(super) fn area(&mut self, points: &[At], ink: Ink) {
        let style = self.style(ink, Stroke::Solid, 0.0);
        done(self.svg.fill_polygon(points.iter().copied().map(scaled), &style));
    }

    pub(super) fn rect(&mut self, (x0, y0): At, (x1, y1): At, ink: Ink) {
        let style = self.style(ink, Stroke::Solid, 0.0);
        done(self.svg.draw_rect(scaled((x0, y0)), scaled((x1, y1)), &style, true));
    }

    pub(super) fn circle(&mut self, at: At, radius: f64, ink: Ink, width: Option<f64>) {
        let style = self.style(ink, Stroke::Solid, width.unwrap_or(0.0));
        done(self.svg.draw_circle(scaled(at), (radius * SCALE) as u32, &style, width.is_none()));
    }

    /// Text whose baseline runs a little below `y`: centred on it.
    pub(super) fn text(&mut self, at: At, align: Align, ink: Ink, text: &str) {
        self.set(at, align, ink, Stroke::Solid, FontStyle::Normal, text);
    }

    pub(super) fn small(&mut self, at: At, align: Align, ink: Ink, text: &str) {
        self.set(at, align, ink, Stroke::Small, FontStyle::Normal, text);
    }

    pub(super) fn bold(&mut self, at: At, align: Align, ink: Ink, text: &str) {
        self.set(at, align, ink, Stroke::Solid, FontStyle::Bold, text);
    }

    /// A point, on paper of its own so that lines do not run through hollow ones. Only the part that is hit by a pointer
    /// belongs to the anchor.
    pub(super) fn mark(&mut self, at: At, mark: Mark, radius: f64, ink: Ink) {
        let (x, y) = at;
        let ring = |r: f64, corners: &[(f64, f64)]| -> Vec<At> {
            corners.iter().map(|(dx, dy)| (x + dx * r, y + dy * r)).collect()
        };
        const SQUARE: [(f64, f64); 4] = [(-0.85, -0.85), (0.85, -0.85), (0.85, 0.85), (-0.85, 0.85)];
        const DIAMOND: [(f64, f64); 4] = [(0.0, -1.25), (1.25, 0.0), (0.0, 1.25), (-1.25, 0.0)];
        const UP: [(f64, f64); 3] = [(0.0, -1.4), (1.25, 1.0), (-1.25, 1.0)];
        const DOWN: [(f64, f64); 3] = [(0.0, 1.4), (1.25, -1.0), (-1.25, -1.0)];
        match mark {
            Mark::Disc => {
                self.aside(|canvas| canvas.circle(at, radius + 1.2, Ink::Paper, None));
                self.circle(at, radius, ink, None);
            }
            Mark::Ring => {
                self.circle(at, radius, Ink::Paper, None);
                self.aside(|canvas| canvas.circle(at, radius, ink, Some(1.75)));
            }
            Mark::Square | Mark::Diamond => {
                let corners = if mark == Mark::Square { SQUARE } else { DIAMOND };
                let mut outline = ring(radius, &corners);
                self.area(&outline, Ink::Paper);
                outline.extend_from_within(..2);
                self.aside(|canvas| canvas.path(&outline, ink, Stroke::Solid, 1.6));
            }
            Mark::Up | Mark::Down => {
                let corners = if mark == Mark::Up { UP } else { DOWN };
                self.aside(|canvas| canvas.area(&ring(radius + 1.2, &corners), Ink::Paper));
                self.area(&ring(radius, &corners), ink);
            }
        }
    }

    /// What `paint` draws says `title` on hover and leads to `href`. Past 65,535 anchors marks are drawn without.
    pub(super) fn anchored(&mut self, href: Option<String>, title: String, paint: impl FnOnce(&mut Self)) {
        self.anchors.push(Anchor { href, title });
        self.anchor = u16::try_from(self.anchors.len()).unwrap_or(0);
        paint(self);
        self.anchor = 0;
    }

    /// What `paint` draws belongs to no anchor.
    fn aside(&mut self, paint: impl FnOnce(&mut Self)) {
        let anchor = std::mem::take(&mut self.anchor);
        paint(self);
        self.anchor = anchor;
    }

    fn set(&mut self, at: At, align: Align, ink: Ink, stroke: Stroke, weight: FontStyle, text: &str) {
        let align = match align {
            Align::Start => HPos::Left,
            Align::Middle => HPos::Center,
            Align::End => HPos::Right,
        };
        let colour = sentinel(ink, stroke, self.anchor);
        let style = TextStyle::from(("sans-serif", TEXT).into_font().style(weight))
            .color(&colour)
            .pos(Pos::new(align, VPos::Center));
        done(self.svg.draw_text(text, &style, scaled(at)));
    }

    fn style(&self, ink: Ink, stroke: Stroke, width: f64) -> ShapeStyle {
        ShapeStyle {
            color: sentinel(ink, stroke, self.anchor).to_rgba(),
            filled: true,
            stroke_width: (width * SCALE).round() as u32,
        }
    }
}

/// The room that a text needs, estimated: no font is at hand.
pub(super) fn text_width(text: &str, size: f64) -> f64 {
    let ems: f64 = text.chars().map(|c| if c.is_ascii() { 0.62 } else { 0.8 }).sum();
    ems * size
}

fn scaled((x, y): At) -> (i32, i32) {
    let units = |v: f64| (v * SCALE).round().clamp(-1e6, 1e6) as i32;
    (units(x), units(y))
}

fn done<E: std::fmt::Debug>(result: Result<(), E>) {
    result.expect("drawing into a string does not fail");
}

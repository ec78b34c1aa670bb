//! Charts as inline SVG, drawn by plotters' SVG backend.
//!
//! A chart is a pure function of figures: it knows no store, no request and no page. It carries no colour: every mark
//! has a class of the style sheet, so that light and dark are the sheet's business. Each chart is drawn once per width
//! that it is shown at, and the sheet picks the drawing; text therefore keeps its size within narrow bounds.

mod axis;
mod canvas;
mod distribution;
mod figure;
mod history;
mod ink;
mod interval;
mod labels;
mod live;
mod plot;
mod recolour;
mod scale;
mod sheet;
mod soak;
mod spark;
mod staircase;
#[cfg(test)]
mod tests;

pub use distribution::{Curve, distribution};
pub(crate) use figure::withheld;
pub use figure::{Chart, DataTable, Datum};
pub use history::{History, Release, Standing, Worse, history};
pub use ink::Tone;
pub use interval::{IntervalAxis, IntervalRow};
pub use live::{Moment, live};
pub(crate) use recolour::escaped;
pub use sheet::Theme;
pub use soak::{Slice, slices, soak};
pub use spark::spark;
pub use staircase::{ALONE, PAIR, Stairs, compared_stairs, snapshot_stairs};

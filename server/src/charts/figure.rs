//! A chart as a page shows it: its drawings, its text alternative, and its data.

use std::fmt::Write as _;

use super::canvas::Drawing;
use super::recolour::escaped;
use super::sheet::{Theme, rules};

/// The widths in CSS pixels that charts are drawn for. The style sheet shows the widest that fits its container, and
/// never smaller than it was drawn: text stays between 11.5 and 16 px.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Size {
    Narrow,
    Wide,
    Full,
}

impl Size {
    /// For a figure that may share its row with another.
    pub(super) const HALF: [Self; 2] = [Self::Narrow, Self::Wide];
    /// For a figure that has the page's whole width.
    pub(super) const WHOLE: [Self; 3] = [Self::Narrow, Self::Wide, Self::Full];

    pub(super) fn width(self) -> f64 {
        match self {
            Self::Narrow => 326.0,
            Self::Wide => 540.0,
            Self::Full => 1_040.0,
        }
    }

    fn class(self) -> &'static str {
        match self {
            Self::Narrow => "narrow",
            Self::Wide => "wide",
            Self::Full => "full",
        }
    }
}

#[derive(Debug, Clone)]
pub struct Chart {
    id: &'static str,
    title: String,
    description: String,
    drawings: Vec<(Size, Drawing)>,
    /// The same data for those who read tables.
    pub table: DataTable,
}

impl Chart {
    /// `id` names the figure in the page; titles and descriptions are plain text.
    pub(super) fn drawn<const N: usize>(
        id: &'static str,
        title: String,
        description: String,
        sizes: [Size; N],
        table: DataTable,
        draw: impl Fn(Size) -> Drawing,
    ) -> Self {
        let drawings = sizes.into_iter().map(|size| (size, draw(size))).collect();
        Self { id, title, description, drawings, table }
    }

    /// A document of its own, with its colours: the drawing for half a page, whose size it says.
    pub fn image(&self, theme: Theme) -> String {
        let wide = self.drawings.iter().find(|(size, _)| *size == Size::Wide).or(self.drawings.last());
        let Some((_, drawing)) = wide else { return String::new() };
        let (width, height) = drawing.size;
        let (title, description) = (escaped(&self.title), escaped(&self.description));
        format!(
            "<svg xmlns=\"http://www.w3.org/2000/svg\" class=\"drawn\" width=\"{width}\" height=\"{height}\" \
             viewBox=\"{}\" role=\"img\"><title>{title}</title><desc>{description}</desc><style>{}</style>\
             <rect class=\"i-paper\" width=\"100%\" height=\"100%\" rx=\"60\" fill=\"currentColor\"/>{}</svg>\n",
            drawing.view_box,
            rules(theme),
            drawing.body
        )
    }

    /// Markup for a page: safe as it stands, every text in it is escaped.
    pub fn markup(&self) -> String {
        let mut out = format!("<div class=\"chart of-{}\">", self.drawings.len());
        let (title, description) = (escaped(&self.title), escaped(&self.description));
        for (size, drawing) in &self.drawings {
            let class = size.class();
            let id = format!("{}-{class}", self.id);
            let _ = write!(
                out,
                "<svg class=\"drawn {class}\" viewBox=\"{}\" role=\"img\" aria-labelledby=\"{id}-t {id}-d\">\
                 <title id=\"{id}-t\">{title}</title><desc id=\"{id}-d\">{description}</desc>{}</svg>",
                drawing.view_box, drawing.body
            );
        }
        out.push_str("</div>");
        out
    }
}

/// Rows of figures, the first column naming the row.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct DataTable {
    pub head: Vec<String>,
    pub rows: Vec<Vec<Datum>>,
}

/// One figure as written, or why there is none.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Datum {
    Is(String),
    Absent(String),
}

impl Datum {
    pub fn of(value: Option<f64>, written: impl Fn(f64) -> String, reason: &str) -> Self {
        value.map_or_else(|| Self::Absent(reason.to_owned()), |v| Self::Is(written(v)))
    }
}

/// Why a P99 over `requests` successes is not shown.
pub(crate) fn withheld(requests: u64) -> String {
    use plimsoll_domain::{format, percentile::MIN_FOR_P99};
    match requests {
        0 => "no request succeeded".to_owned(),
        _ => format!("{} requests succeeded; P99 needs {MIN_FOR_P99}", format::count(requests)),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_sheet_shows_no_drawing_smaller_than_it_was_drawn() {
        let sheet = include_str!("../../assets/style.css");
        for size in Size::WHOLE {
            let rule = format!("min-width: {}px", size.width());
            assert!(sheet.contains(&rule), "{rule} is not in the style sheet");
        }
    }
}

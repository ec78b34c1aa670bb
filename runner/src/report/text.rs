//! Lines of 80 columns.

use plimsoll_domain::format;

/// What every line fits into.
pub(super) const WIDTH: usize = 80;
/// Where the text beside a label begins.
const LABEL: usize = 12;

/// Breaks text at blanks, never at the narrow space inside a figure. Ends with a line break.
pub(super) fn wrapped(text: &str) -> String {
    hanging(text, 0)
}

/// A label with its text beside it.
pub(crate) fn labelled(label: &str, text: &str) -> String {
    format!("{label:<LABEL$}{}", hanging(text, LABEL))
}

/// A note below a table.
pub(super) fn bullet(text: &str) -> String {
    format!("  – {}", hanging(text, 4))
}

/// Text whose lines after the first begin at `indent`; the first one's place is the caller's.
fn hanging(text: &str, indent: usize) -> String {
    let mut out = String::new();
    let mut column = indent;
    for word in text.split(' ').filter(|word| !word.is_empty()) {
        let wide = width(word);
        if column > indent && column + 1 + wide > WIDTH {
            out.push('\n');
            out.push_str(&" ".repeat(indent));
            column = indent;
        }
        if column > indent {
            out.push(' ');
            column += 1;
        }
        out.push_str(word);
        column += wide;
    }
    out.push('\n');
    out
}

/// Columns of a table: text in the first one to the left, figures in the others to the right, `gap` blanks between.
pub(super) fn table(rows: &[Vec<String>], gap: usize) -> Vec<String> {
    let columns = rows.iter().map(Vec::len).max().unwrap_or(0);
    let widest = |i: usize| rows.iter().filter_map(|row| row.get(i)).map(|cell| width(cell)).max().unwrap_or(0);
    let widths: Vec<usize> = (0..columns).map(widest).collect();
    let line = |row: &Vec<String>| {
        let cells = row.iter().zip(&widths).enumerate().map(|(i, (cell, wide))| {
            let fill = " ".repeat(wide - width(cell));
            if i == 0 { format!("{cell}{fill}") } else { format!("{fill}{cell}") }
        });
        format!("  {}", cells.collect::<Vec<_>>().join(&" ".repeat(gap))).trim_end().to_owned()
    };
    rows.iter().map(line).collect()
}

/// A bar of eighths of a cell.
pub(super) fn bar(value: f64, per_cell: f64) -> String {
    let eighths = (value / per_cell * 8.0).round().max(0.0) as usize;
    let part = ["", "▏", "▎", "▍", "▌", "▋", "▊", "▉"][eighths % 8];
    "█".repeat(eighths / 8) + part
}

/// The least of 1, 2, 4, 5, 8 × 10ⁿ with which `largest` fits into `cells`.
pub(super) fn per_cell(largest: f64, cells: usize) -> f64 {
    let least = largest / cells as f64;
    if least <= 0.0 || !least.is_finite() {
        return 1.0;
    }
    let decade = 10f64.powf(least.log10().floor());
    let steps = [1.0, 2.0, 4.0, 5.0, 8.0, 10.0];
    steps.iter().map(|step| step * decade).find(|unit| *unit >= least * (1.0 - 1e-9)).unwrap_or(10.0 * decade)
}

/// A round figure without the zeros that three digits give it: `8`, `0.75`.
pub(super) fn round(value: f64) -> String {
    let text = format::number(value);
    if text.contains('.') { text.trim_end_matches('0').trim_end_matches('.').to_owned() } else { text }
}

/// Columns of a text without colour; every sign used here takes one.
pub(super) fn width(text: &str) -> usize {
    text.chars().count()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn bars_have_eighths() {
        assert_eq!(bar(176.0, 8.0), "█".repeat(22));
        assert_eq!(bar(23.7, 8.0), "███");
        assert_eq!(bar(109.0, 8.0), "█████████████▋");
        assert_eq!(bar(0.0, 8.0), "");
    }

    #[test]
    fn a_cell_is_a_round_number_and_the_bar_fits() {
        for (largest, unit) in [(176.0, 8.0), (22.0, 1.0), (23.0, 2.0), (2_900.0, 200.0), (0.5, 0.04), (0.0, 1.0)] {
            assert!((per_cell(largest, 22) / unit - 1.0).abs() < 1e-9, "{largest}: {}", per_cell(largest, 22));
        }
    }

    #[test]
    fn lines_break_between_words_and_not_inside_figures() {
        let text = "P99 at 48 workers rose from 261\u{202f}ms to 402\u{202f}ms (+54\u{202f}%, interval +47 to +61\u{202f}%; allowed +10\u{202f}%).";
        let lines: Vec<String> = labelled("Why", text).lines().map(str::to_owned).collect();
        assert!(lines.len() == 2 && lines.iter().all(|line| width(line) <= WIDTH), "{lines:?}");
        assert!(lines[1].starts_with("            ") && !lines[0].ends_with('\u{202f}'));
    }
}

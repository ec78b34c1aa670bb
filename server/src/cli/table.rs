//! Lists on a terminal: columns as wide as what stands in them.

use std::io::{self, Write};

/// Writes rows under a heading. A character that would move the cursor is written as `?`.
pub(super) fn write<const N: usize>(mut out: impl Write, heading: [&str; N], rows: &[[String; N]]) -> io::Result<()> {
    let rows: Vec<[String; N]> = rows.iter().map(|row| row.clone().map(|cell| printable(&cell))).collect();
    let width = |column: usize| {
        let cells = rows.iter().map(|row| row[column].chars().count());
        cells.chain([heading[column].len()]).max().unwrap_or_default()
    };
    let widths: [usize; N] = std::array::from_fn(width);
    for row in [heading.map(str::to_owned)].iter().chain(&rows) {
        let line: String = row.iter().zip(widths).map(|(cell, width)| format!("{cell:width$}  ")).collect();
        writeln!(out, "{}", line.trim_end())?;
    }
    Ok(())
}

fn printable(text: &str) -> String {
    text.chars().map(|c| if c.is_control() { '?' } else { c }).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn columns_are_aligned_and_nothing_moves_the_cursor() {
        let mut out = Vec::new();
        let rows = [["ci".to_owned(), "upload".to_owned()], ["a\u{1b}[2Jb".to_owned(), "read".to_owned()]];
        write(&mut out, ["NAME", "SCOPE"], &rows).unwrap();
        assert_eq!(String::from_utf8(out).unwrap(), "NAME    SCOPE\nci      upload\na?[2Jb  read\n");
    }
}

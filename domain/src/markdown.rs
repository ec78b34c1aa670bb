//! Texts that other people wrote, made harmless for Markdown, for HTML and for what GitHub makes of both: names of tags
//! and branches, findings, reasons. They link to nothing, mention nobody, and stay in their line and their cell.

use crate::prose;

/// Parts a character from the one before, so that GitHub sees no mention and no reference; nobody sees it.
const PART: char = '\u{200b}';

/// One line without control characters, at most `most` characters long: where GitHub shows text as text.
pub fn plain(text: &str, most: usize) -> String {
    let mut words = String::new();
    let mut length = 0;
    for word in text.split(|c: char| c.is_whitespace() && c != '\u{202f}') {
        let word: String = word.chars().filter(|&c| !is_hidden(c)).take(most + 1).collect();
        if word.is_empty() {
            continue;
        }
        if length > 0 {
            words.push(' ');
            length += 1;
        }
        length += word.chars().count();
        words += &word;
        if length > most {
            return words.chars().take(most.saturating_sub(1)).chain(['…']).collect();
        }
    }
    words
}

/// One line of at most `most` characters as text in Markdown, wherever it stands in it.
pub fn escaped(text: &str, most: usize) -> String {
    escape(&plain(text, most), true)
}

/// A sentence whose figures stand out.
pub fn stressed(text: &str, most: usize) -> String {
    let line = plain(text, most);
    let part = |(at, (part, bold)): (usize, (&str, bool))| {
        let text = escape(part, at == 0);
        if bold { format!("**{text}**") } else { text }
    };
    prose::figures(&line).into_iter().enumerate().map(part).collect()
}

/// `begins`: it may stand where a line begins, where it becomes no list, rule or heading.
fn escape(line: &str, begins: bool) -> String {
    let mut out = String::with_capacity(line.len() + 16);
    for (at, c) in line.char_indices() {
        let before = &line[..at];
        match c {
            '\\' | '`' | '*' | '_' | '[' | ']' | '|' | '~' | '$' | '{' | '}' => out.extend(['\\', c]),
            '-' | '+' | '=' if begins && before.is_empty() => out.extend(['\\', c]),
            '.' | ')' if begins && !before.is_empty() && before.bytes().all(|b| b.is_ascii_digit()) => {
                out.extend(['\\', c]);
            }
            '#' => {
                out.push('\\');
                push(&mut out, line, at, c);
            }
            other => push(&mut out, line, at, other),
        }
    }
    out
}

/// The character as text in HTML, parted from its neighbours where GitHub would make a link, a mention or a reference of
/// them.
fn push(out: &mut String, line: &str, at: usize, c: char) {
    let (before, after) = (&line[..at], &line[at + c.len_utf8()..]);
    match c {
        '&' => *out += "&amp;",
        '<' => *out += "&lt;",
        '>' => *out += "&gt;",
        '"' => *out += "&quot;",
        '@' | '#' => out.extend([c, PART]),
        ':' if after.starts_with("//") => out.extend([c, PART]),
        '.' if ends_with_ignoring_case(before, "www") => out.extend([PART, c]),
        '-' if ends_with_ignoring_case(before, "gh") => out.extend([c, PART]),
        other => out.push(other),
    }
}

/// The same as a code span: a revision's name.
pub fn code(text: &str, most: usize) -> String {
    let name: String = plain(text, most)
        .chars()
        .map(|c| match c {
            '`' => '\'',
            // Ends a cell even in code.
            '|' => '¦',
            '<' => '‹',
            '>' => '›',
            other => other,
        })
        .collect();
    // A span of nothing is none, and what begins with a space loses it.
    if name.is_empty() { "`?`".to_owned() } else { format!("`{}`", name.replace("{{", "{ {")) }
}

/// The same within markup: between tags, and as the value of an attribute.
pub fn html(text: &str, most: usize) -> String {
    let line = plain(text, most).replace("{{", "{ {");
    let mut out = String::with_capacity(line.len() + 16);
    for (at, c) in line.char_indices() {
        // Markdown looks into markup that stands in a line.
        if c == '`' { out.push('\'') } else { push(&mut out, &line, at, c) }
    }
    out
}

fn ends_with_ignoring_case(text: &str, end: &str) -> bool {
    text.len().checked_sub(end.len()).and_then(|at| text.get(at..)).is_some_and(|tail| tail.eq_ignore_ascii_case(end))
}

/// Controls, and what is not seen or turns the direction of what follows.
fn is_hidden(c: char) -> bool {
    c.is_control()
        || matches!(c,
            '\u{ad}' | '\u{34f}' | '\u{61c}' | '\u{115f}' | '\u{1160}' | '\u{17b4}' | '\u{17b5}' | '\u{180b}'..='\u{180f}'
            | '\u{200b}'..='\u{200f}' | '\u{2028}'..='\u{202e}' | '\u{2060}'..='\u{206f}' | '\u{3164}' | '\u{feff}'
            | '\u{ffa0}' | '\u{fff0}'..='\u{fffb}' | '\u{1bca0}'..='\u{1bca3}' | '\u{1d173}'..='\u{1d17a}'
            | '\u{e0000}'..='\u{e0fff}')
}

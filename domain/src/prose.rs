//! Pieces of text on their way to people.

use crate::format::NARROW;

/// With a capital at its start and a full stop at its end. A name at its start stays as it is written, and what stands
/// between backticks, as in the log, between quotation marks.
pub fn sentence(text: &str) -> String {
    let text = text.trim();
    let word = text.split_whitespace().next().unwrap_or_default().trim_end_matches(['.', ',', ':', ';', '!', '?']);
    let is_name = word.contains(['.', '/', '_', ':', '=', '`']);
    let mut out = if is_name { text.to_owned() } else { capital(text) };
    if !out.is_empty() && !out.ends_with(['.', '!', '?']) {
        out.push('.');
    }
    quoted(&out)
}

/// The first letter large.
pub fn capital(text: &str) -> String {
    let mut chars = text.chars();
    chars.next().map(|first| first.to_uppercase().chain(chars).collect()).unwrap_or_default()
}

/// The first letter small, unless the word is an abbreviation.
pub fn lower(text: &str) -> String {
    let mut chars = text.chars();
    match (chars.next(), text.chars().nth(1)) {
        (Some(first), Some(second)) if second.is_lowercase() || second == ' ' => {
            first.to_lowercase().chain(chars).collect()
        }
        _ => text.to_owned(),
    }
}

/// A sentence in parts, those true that stand out: figures with their unit (latencies and TPS) outside brackets, where
/// the evidence stands.
pub fn figures(text: &str) -> Vec<(&str, bool)> {
    let mut parts = Vec::new();
    let mut depth = 0i32;
    for word in text.split_inclusive(' ') {
        let opened = word.matches('(').count() as i32;
        let closed = word.matches(')').count() as i32;
        let figure = word.trim_end_matches([' ', '.', ',', ':', ';']);
        let unit = figure.rsplit_once(NARROW).map(|(_, unit)| unit);
        if depth == 0 && opened == 0 && matches!(unit, Some("ms" | "s" | "TPS")) {
            parts.push((figure, true));
            parts.push((&word[figure.len()..], false));
        } else {
            parts.push((word, false));
        }
        depth = (depth + opened - closed).max(0);
    }
    parts
}

/// Pairs of backticks as quotation marks; an odd one leaves all as they are.
fn quoted(text: &str) -> String {
    let parts: Vec<&str> = text.split('`').collect();
    if parts.len().is_multiple_of(2) {
        return text.to_owned();
    }
    let mut out = String::with_capacity(text.len() + 2 * parts.len());
    for (at, part) in parts.iter().enumerate() {
        out.push_str(match at {
            0 => "",
            at if at % 2 == 1 => "“",
            _ => "”",
        });
        out.push_str(part);
    }
    out
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sentences_begin_and_end_as_sentences() {
        assert_eq!(sentence("the pool is full"), "The pool is full.");
        assert_eq!(sentence("Été?"), "Été?");
        assert_eq!(sentence(""), "");
        assert_eq!(sentence("runner lost: it went"), "Runner lost: it went.");
        for name in
            ["plimsoll.toml:4:7: no such key", "./serve ended with 1", "max_duration is over", "http://a is away"]
        {
            assert_eq!(sentence(name), format!("{name}."));
        }
    }

    #[test]
    fn backticks_become_quotation_marks_in_pairs() {
        assert_eq!(sentence("it needs `upload`, not `read`"), "It needs “upload”, not “read”.");
        assert_eq!(sentence("`start` ended with 1"), "“start” ended with 1.");
        assert_eq!(sentence("an odd ` stays"), "An odd ` stays.");
    }

    #[test]
    fn figures_stand_out_and_their_evidence_does_not() {
        let text = "P99 rose from 261\u{202f}ms to 402\u{202f}ms (+54\u{202f}%, 12\u{202f}ms).";
        let bold: Vec<&str> = figures(text).into_iter().filter(|part| part.1).map(|part| part.0).collect();
        assert_eq!(bold, ["261\u{202f}ms", "402\u{202f}ms"]);
        assert_eq!(figures(text).into_iter().map(|part| part.0).collect::<String>(), text);
    }
}

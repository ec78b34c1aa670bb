//! Turns plotters' document into elements that the style sheet colours.

use std::fmt::Write as _;

use super::canvas::Anchor;
use super::ink::meaning;

/// The elements of `document` without the surrounding `<svg>`: sentinel colours become classes, fonts and sizes are
/// left to the sheet, and what belongs to an anchor gets its title and link.
pub(super) fn recolour(document: &str, anchors: &[Anchor]) -> String {
    let mut out = String::with_capacity(document.len());
    let mut rest = document;
    // plotters escapes `<` and `>` in texts and attributes, so these are always a tag's ends.
    while let Some((before, (tag, after))) =
        rest.split_once('<').and_then(|(before, from)| Some((before, from.split_once('>')?)))
    {
        out.push_str(before.trim());
        if !tag.starts_with("svg") && tag != "/svg" {
            element(&mut out, tag, anchors);
        }
        rest = after;
    }
    out
}

fn element(out: &mut String, tag: &str, anchors: &[Anchor]) {
    if tag.starts_with('/') {
        let _ = write!(out, "<{tag}>");
        return;
    }
    let (tag, closed) = tag.strip_suffix('/').map_or((tag, false), |tag| (tag, true));
    let (name, attributes) = tag.split_once(' ').unwrap_or((tag, ""));
    let mut anchor = None;
    let mut open = format!("<{name}");
    for (key, value) in pairs(attributes) {
        match (key, value.strip_prefix('#').and_then(meaning)) {
            (_, Some((class, index))) => {
                anchor = usize::from(index).checked_sub(1).and_then(|i| anchors.get(i));
                let _ = write!(open, " class=\"{class}\" {key}=\"currentColor\"");
            }
            _ if skip(key, value) => {}
            _ => {
                let _ = write!(open, " {key}=\"{}\"", value.trim());
            }
        }
    }
    match (anchor, closed) {
        (Some(anchor), true) => {
            let link = anchor.href.as_deref().map(|href| format!("<a href=\"{}\" tabindex=\"-1\">", escaped(href)));
            let _ = write!(
                out,
                "{}{open}><title>{}</title></{name}>{}",
                link.as_deref().unwrap_or(""),
                escaped(&anchor.title),
                if link.is_some() { "</a>" } else { "" }
            );
        }
        (_, true) => {
            let _ = write!(out, "{open}/>");
        }
        (_, false) => {
            let _ = write!(out, "{open}>");
        }
    }
}

/// What the sheet sets, and what is the default anyway.
fn skip(key: &str, value: &str) -> bool {
    matches!((key, value), ("font-family" | "font-size", _) | ("opacity", "1") | ("stroke-width", "0"))
}

fn pairs(attributes: &str) -> impl Iterator<Item = (&str, &str)> {
    let mut rest = attributes;
    std::iter::from_fn(move || {
        let (key, from) = rest.split_once("=\"")?;
        let (value, after) = from.split_once('"')?;
        rest = after;
        Some((key.trim(), value))
    })
}

/// Text for an element or an attribute.
pub(crate) fn escaped(text: &str) -> String {
    let mut out = String::with_capacity(text.len());
    for c in text.chars() {
        match c {
            '<' => out.push_str("&lt;"),
            '>' => out.push_str("&gt;"),
            '&' => out.push_str("&amp;"),
            '"' => out.push_str("&quot;"),
            '\'' => out.push_str("&#39;"),
            other => out.push(other),
        }
    }
    out
}

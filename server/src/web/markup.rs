//! Pieces of markup with their escaping: what templates show as it stands.

use std::fmt;

use askama::filters::HtmlSafe;
use plimsoll_domain::comparison::Verdict;
use plimsoll_domain::prose;

use super::view::Look;
use crate::charts::{Chart, Datum, escaped};

/// The Plimsoll mark in the look of a verdict.
#[derive(Debug, Clone, Copy)]
pub(super) struct Emblem(pub(super) Look);

impl fmt::Display for Emblem {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let water = match self.0 {
            Look::Worse => Some("M17.1 16h29.8a16 16 0 1 1-29.8 0z"),
            Look::Better => Some("M17.1 28h29.8a16 16 0 0 1-29.8 0z"),
            Look::Doubt => Some("M16 22h32a16 16 0 0 1-32 0z"),
            Look::Void | Look::Plain => None,
        };
        write!(f, "<svg class=\"emblem {}\" viewBox=\"0 0 64 44\" aria-hidden=\"true\">", self.0.class())?;
        if let Some(water) = water {
            write!(f, "<path class=\"water\" d=\"{water}\"/>")?;
        }
        f.write_str("<circle cx=\"32\" cy=\"22\" r=\"16\"/><path d=\"M4 22h56\"/></svg>")
    }
}
impl HtmlSafe for Emblem {}

/// A verdict as a word with its mark and colour, linked when there is something to lead to.
#[derive(Debug, Clone)]
pub(super) struct VerdictWord {
    pub(super) verdict: Verdict,
    pub(super) href: Option<String>,
}

impl fmt::Display for VerdictWord {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let class = Look::of(self.verdict).class();
        let word = format!("{} {}", self.verdict.mark(), self.verdict.word().to_lowercase());
        let strong = self.verdict == Verdict::Regressed;
        let (open, close) = if strong { ("<b>", "</b>") } else { ("", "") };
        let word = format!("<span class=\"is-{class}\">{open}{word}{close}</span>");
        match &self.href {
            Some(href) => write!(f, "<a href=\"{}\">{word}</a>", escaped(href)),
            None => f.write_str(&word),
        }
    }
}
impl HtmlSafe for VerdictWord {}

impl fmt::Display for Datum {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Is(text) => f.write_str(&escaped(text)),
            Self::Absent(reason) => {
                let reason = escaped(reason);
                write!(f, "<span title=\"{reason}\">–<span class=\"hidden\"> ({reason})</span></span>")
            }
        }
    }
}
impl HtmlSafe for Datum {}

impl fmt::Display for Chart {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.markup())
    }
}
impl HtmlSafe for Chart {}

/// Markup that was made by a chart.
#[derive(Debug, Clone, Default)]
pub(super) struct Drawn(pub(super) String);

impl fmt::Display for Drawn {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}
impl HtmlSafe for Drawn {}

/// A sentence whose figures stand out.
#[derive(Debug, Clone, Default)]
pub(super) struct Phrase(Vec<(String, bool)>);

impl Phrase {
    pub(super) fn plain(text: impl Into<String>) -> Self {
        Self(vec![(text.into(), false)])
    }

    /// Bold are its figures.
    pub(super) fn figures(text: &str) -> Self {
        Self(prose::figures(text).into_iter().map(|(part, bold)| (part.to_owned(), bold)).collect())
    }
}

impl fmt::Display for Phrase {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (text, bold) in &self.0 {
            let text = escaped(text);
            if *bold { write!(f, "<b>{text}</b>")? } else { f.write_str(&text)? }
        }
        Ok(())
    }
}
impl HtmlSafe for Phrase {}

/// A text that may lead somewhere.
#[derive(Debug, Clone)]
pub(super) struct Link {
    pub(super) text: String,
    pub(super) href: Option<String>,
}

impl Link {
    pub(super) fn to(text: impl Into<String>, href: impl Into<String>) -> Self {
        Self { text: text.into(), href: Some(href.into()) }
    }

    pub(super) fn none(text: impl Into<String>) -> Self {
        Self { text: text.into(), href: None }
    }
}

impl fmt::Display for Link {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match &self.href {
            Some(href) => write!(f, "<a href=\"{}\">{}</a>", escaped(href), escaped(&self.text)),
            None => f.write_str(&escaped(&self.text)),
        }
    }
}
impl HtmlSafe for Link {}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn texts_are_escaped_wherever_they_are_shown() {
        let hostile = "<script>\"&'";
        let safe = "&lt;script&gt;&quot;&amp;&#39;";
        assert_eq!(Datum::Is(hostile.to_owned()).to_string(), safe);
        assert!(!Datum::Absent(hostile.to_owned()).to_string().contains("<script"));
        assert_eq!(Phrase::plain(hostile).to_string(), safe);
        assert_eq!(Link::to(hostile, hostile).to_string(), format!("<a href=\"{safe}\">{safe}</a>"));
    }

    #[test]
    fn figures_stand_out_and_their_evidence_does_not() {
        let text = "P99 rose from 261\u{202f}ms to 402\u{202f}ms (+54\u{202f}%, 12\u{202f}ms). <i>\u{202f}ms";
        assert_eq!(
            Phrase::figures(text).to_string(),
            "P99 rose from <b>261\u{202f}ms</b> to <b>402\u{202f}ms</b> (+54\u{202f}%, 12\u{202f}ms). \
             <b>&lt;i&gt;\u{202f}ms</b>"
        );
    }
}

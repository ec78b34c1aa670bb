//! What all pages share: their frame, the look of a verdict, and pieces of text.

use std::fmt;

use askama::Template;
use askama::filters::HtmlSafe;
use axum::response::{Html, IntoResponse, Response};
use jiff::Timestamp;
use plimsoll_domain::comparison::{Comparison, Trend, Verdict};
use plimsoll_domain::finding::{Finding, Severity};
use plimsoll_domain::format::NARROW;
use plimsoll_domain::ids::{ProjectSlug, RunId};

use super::assets;
use crate::charts::{Chart, Datum, Tone, escaped};
use crate::error::AppError;

/// The frame around a page.
#[derive(Debug)]
pub(super) struct Page {
    pub(super) title: String,
    pub(super) look: Look,
    pub(super) project: Option<ProjectSlug>,
    pub(super) here: Here,
}

/// Which entry of the navigation is the present one.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Here {
    Projects,
    History,
    Compare,
    Snapshot,
    Methodology,
    Elsewhere,
}

impl Page {
    pub(super) fn new(title: impl Into<String>, look: Look, project: Option<&ProjectSlug>, here: Here) -> Self {
        Self { title: title.into(), look, project: project.cloned(), here }
    }

    pub(super) fn style(&self) -> String {
        assets::address("style.css")
    }

    pub(super) fn icon(&self) -> String {
        assets::address(match self.look {
            Look::Worse => "icon-worse.svg",
            Look::Better => "icon-better.svg",
            Look::Doubt => "icon-doubt.svg",
            Look::Void | Look::Plain => "icon.svg",
        })
    }
}

pub(super) fn render(template: &impl Template) -> Response {
    match template.render() {
        Ok(html) => Html(html).into_response(),
        Err(error) => AppError::internal(error).into_response(),
    }
}

/// What a verdict looks like: a class of the style sheet, and the tone of its charts.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Look {
    Worse,
    Better,
    Doubt,
    Void,
    Plain,
}

impl Look {
    pub(super) fn of(verdict: Verdict) -> Self {
        match verdict {
            Verdict::Regressed => Self::Worse,
            Verdict::Pass => Self::Better,
            Verdict::Inconclusive => Self::Doubt,
            Verdict::Invalid | Verdict::NoBaseline => Self::Void,
        }
    }

    pub(super) fn of_trend(trend: Trend) -> Self {
        match trend {
            Trend::Worse => Self::Worse,
            Trend::Better => Self::Better,
            Trend::Undecided => Self::Doubt,
            Trend::WithinNoise => Self::Plain,
        }
    }

    pub(super) fn class(self) -> &'static str {
        match self {
            Self::Worse => "worse",
            Self::Better => "better",
            Self::Doubt => "doubt",
            Self::Void => "void",
            Self::Plain => "plain",
        }
    }

    pub(super) fn tone(self) -> Tone {
        match self {
            Self::Worse => Tone::Worse,
            Self::Better => Tone::Better,
            Self::Doubt => Tone::Doubt,
            Self::Void => Tone::Void,
            Self::Plain => Tone::Plain,
        }
    }

    /// The Plimsoll mark: water above the line is worse, below it better, at it undecided; none for a void run.
    pub(super) fn emblem(self) -> Emblem {
        Emblem(self)
    }
}

#[derive(Debug, Clone, Copy)]
pub(super) struct Emblem(Look);

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

/// A verdict's word with its mark, as it stands above the answer.
pub(super) fn word(verdict: Verdict) -> String {
    format!("{} {}", verdict.mark(), verdict.word())
}

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

    /// Bold are figures with their unit (latencies and TPS) outside brackets, where the evidence stands.
    pub(super) fn figures(text: &str) -> Self {
        let mut parts: Vec<(String, bool)> = Vec::new();
        let mut depth = 0i32;
        for word in text.split_inclusive(' ') {
            let opened = word.matches('(').count() as i32;
            let closed = word.matches(')').count() as i32;
            let figure = word.trim_end_matches([' ', '.', ',', ':', ';']);
            let unit = figure.rsplit_once(NARROW).map(|(_, unit)| unit);
            if depth == 0 && opened == 0 && matches!(unit, Some("ms" | "s" | "TPS")) {
                parts.push((figure.to_owned(), true));
                parts.push((word[figure.len()..].to_owned(), false));
            } else {
                parts.push((word.to_owned(), false));
            }
            depth = (depth + opened - closed).max(0);
        }
        Self(parts)
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

/// A chart with the title that says what is seen.
#[derive(Debug)]
pub(super) struct View {
    pub(super) id: &'static str,
    pub(super) heading: String,
    pub(super) lead: String,
    /// What its table holds.
    pub(super) what: &'static str,
    pub(super) chart: Chart,
}

/// A finding as a page lists it.
#[derive(Debug)]
pub(super) struct Noticed {
    pub(super) message: String,
    pub(super) advice: Option<String>,
    pub(super) code: String,
    pub(super) voids: bool,
}

impl Noticed {
    pub(super) fn of(finding: &Finding) -> Self {
        Self {
            message: sentence(&finding.message),
            advice: finding.advice.as_deref().map(sentence),
            code: finding.code.clone(),
            voids: finding.severity == Severity::Voids,
        }
    }
}

/// With a capital at its start and a full stop at its end.
pub(super) fn sentence(text: &str) -> String {
    let mut chars = text.trim().chars();
    let Some(first) = chars.next() else { return String::new() };
    let mut out: String = first.to_uppercase().chain(chars).collect();
    if !out.ends_with(['.', '!', '?']) {
        out.push('.');
    }
    out
}

/// `25 Nov 2025`, UTC.
pub(super) fn day(at: Timestamp) -> String {
    at.strftime("%-d %b %Y").to_string()
}

/// `25 Nov 2025, 14:06`, UTC.
pub(super) fn minute(at: Timestamp) -> String {
    at.strftime("%-d %b %Y, %H:%M").to_string()
}

pub(super) fn snapshot_href(project: &ProjectSlug, run_id: RunId) -> String {
    format!("/{project}/snapshots/{run_id}")
}

pub(super) fn compare_href(project: &ProjectSlug, baseline: RunId, candidate: RunId) -> String {
    format!("/{project}/compare/{baseline}...{candidate}")
}

/// Where the comparison that judged a snapshot is shown.
pub(super) fn judged_href(comparison: &Comparison) -> Option<String> {
    let baseline = comparison.baseline.as_ref()?.run_ids.first()?;
    let candidate = comparison.candidate.run_ids.first()?;
    Some(compare_href(&comparison.project, *baseline, *candidate))
}

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

    #[test]
    fn sentences_begin_and_end_as_sentences() {
        assert_eq!(sentence("the pool is full"), "The pool is full.");
        assert_eq!(sentence("Été?"), "Été?");
        assert_eq!(sentence(""), "");
    }
}

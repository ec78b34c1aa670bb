//! What all pages share: their frame, the look of a verdict, and pieces of text.

use askama::Template;
use axum::response::{Html, IntoResponse, Response};
use jiff::Timestamp;
use plimsoll_domain::comparison::{Trend, Verdict};
use plimsoll_domain::finding::{Finding, Severity};
use plimsoll_domain::format;
use plimsoll_domain::ids::{ProjectSlug, RunId};
pub(super) use plimsoll_domain::prose::sentence;

use super::assets;
pub(super) use super::frame::Frame;
pub(super) use super::markup::{Drawn, Emblem, Link, Phrase, VerdictWord};
use crate::charts::{Chart, Tone};
use crate::error::AppError;
use crate::store::snapshots::SnapshotRow;

/// The frame around a page.
#[derive(Debug)]
pub(super) struct Page {
    pub(super) title: String,
    pub(super) look: Look,
    pub(super) frame: Frame,
    pub(super) here: Here,
}

/// Which entry of the navigation is the present one.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Here {
    Projects,
    History,
    Compare,
    Snapshot,
    Runs,
    Run,
    Runners,
    ProjectSettings,
    Settings,
    SignIn,
    Methodology,
    Elsewhere,
}

impl Page {
    pub(super) fn new(title: impl Into<String>, look: Look, frame: Frame, here: Here) -> Self {
        Self { title: title.into(), look, frame, here }
    }

    pub(super) fn style(&self) -> String {
        assets::address("style.css")
    }

    pub(super) fn script(&self) -> String {
        assets::address("live.js")
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

/// A verdict's word with its mark, as it stands above the answer.
pub(super) fn word(verdict: Verdict) -> String {
    format!("{} {}", verdict.mark(), verdict.word())
}

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

/// `4 s ago`, and the day when that is long past. What is ahead, by another clock, is now.
pub(super) fn ago(at: Timestamp, now: Timestamp) -> String {
    const LONG: f64 = 48.0 * 3_600.0;
    match now.duration_since(at).as_secs_f64() {
        seconds if seconds < 1.0 => "just now".to_owned(),
        // To the minute where seconds are of no interest.
        seconds if (100.0..LONG).contains(&seconds) => {
            format!("{} ago", format::duration((seconds / 60.0).round() * 60.0))
        }
        seconds if seconds < LONG => format!("{} ago", format::duration(seconds)),
        _ => day(at),
    }
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

/// A text as the value of a query's parameter.
pub(super) fn query_value(text: &str) -> String {
    let plain = |byte: u8| byte.is_ascii_alphanumeric() || b"-._~".contains(&byte);
    text.bytes().map(|b| if plain(b) { char::from(b).to_string() } else { format!("%{b:02X}") }).collect()
}

/// Where the comparison that judged a snapshot is shown.
pub(super) fn judged_href(row: &SnapshotRow, baseline: Option<RunId>) -> Option<String> {
    Some(compare_href(&row.project, baseline?, row.run_id))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn any_text_can_stand_in_a_query() {
        assert_eq!(query_value("0123456789ab"), "0123456789ab");
        assert_eq!(query_value("A10 ×1 & co=#+%"), "A10%20%C3%971%20%26%20co%3D%23%2B%25");
    }
}

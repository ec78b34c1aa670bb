//! Colour, where there is a terminal that wants it. It never carries a meaning alone.

use std::io::IsTerminal as _;

use plimsoll_domain::comparison::{Trend, Verdict};

/// Whether to colour.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Paint(bool);

impl Paint {
    pub const PLAIN: Self = Self(false);

    /// Coloured on a terminal, unless `NO_COLOR` is set (https://no-color.org) or the terminal is dumb.
    pub fn stdout() -> Self {
        let refused = std::env::var_os("NO_COLOR").is_some_and(|value| !value.is_empty());
        let dumb = std::env::var_os("TERM").is_some_and(|term| term == "dumb");
        Self(std::io::stdout().is_terminal() && !refused && !dumb)
    }

    pub fn bold(self, text: &str) -> String {
        self.with("1", text)
    }

    pub fn dim(self, text: &str) -> String {
        self.with("2", text)
    }

    pub fn verdict(self, verdict: Verdict, text: &str) -> String {
        let code = match verdict {
            Verdict::Pass => BLUE,
            Verdict::Regressed => VERMILLION,
            Verdict::Inconclusive | Verdict::NoBaseline => AMBER,
            Verdict::Invalid => GREY,
        };
        self.with(&format!("1;{code}"), text)
    }

    pub fn trend(self, trend: Option<Trend>, text: &str) -> String {
        match trend {
            Some(Trend::Worse) => self.with(VERMILLION, text),
            Some(Trend::Better) => self.with(BLUE, text),
            Some(Trend::Undecided) => self.with(AMBER, text),
            Some(Trend::WithinNoise) | None => text.to_owned(),
        }
    }

    fn with(self, code: &str, text: &str) -> String {
        if self.0 { format!("\u{1b}[{code}m{text}\u{1b}[0m") } else { text.to_owned() }
    }
}

const BLUE: &str = "38;5;32";
const VERMILLION: &str = "38;5;166";
const AMBER: &str = "33";
const GREY: &str = "90";

//! How the program ends. Every command ends through here, so that an unexpected error never looks like a verdict.

use std::fmt;
use std::path::PathBuf;

use plimsoll_domain::comparison::Verdict;
use serde_json::{Value, json};

/// The exit codes, as documented in `plimsoll --help`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[repr(u8)]
pub enum Exit {
    Pass = 0,
    Regressed = 1,
    Usage = 2,
    Failed = 3,
    Inconclusive = 4,
    Unreachable = 5,
    NoBaseline = 6,
    Internal = 70,
}

impl Exit {
    pub fn code(self) -> u8 {
        self as u8
    }

    /// What the code means, as a phrase.
    pub fn meaning(self) -> &'static str {
        match self {
            Self::Pass => "pass",
            Self::Regressed => "regressed",
            Self::Usage => "usage or plan error",
            Self::Failed => "the run failed or is invalid",
            Self::Inconclusive => "inconclusive",
            Self::Unreachable => "the server could not be reached",
            Self::NoBaseline => "no baseline",
            Self::Internal => "an error of plimsoll itself",
        }
    }

    /// Code and meaning: `1, regressed`.
    pub fn ends(self) -> String {
        format!("{}, {}", self.code(), self.meaning())
    }
}

impl From<Verdict> for Exit {
    fn from(verdict: Verdict) -> Self {
        match verdict {
            Verdict::Pass => Self::Pass,
            Verdict::Regressed => Self::Regressed,
            Verdict::Inconclusive => Self::Inconclusive,
            Verdict::Invalid => Self::Failed,
            Verdict::NoBaseline => Self::NoBaseline,
        }
    }
}

/// The table that `--help` ends with.
pub const HELP: &str = "\
Exit codes:
   0  pass
   1  regressed
   2  usage or plan error
   3  the run failed or is invalid
   4  inconclusive
   5  the server could not be reached; the report is kept on disk
   6  no baseline
  70  an error of plimsoll itself

`run` ends with 0 when the run is valid and 3 when not, `upload` with 0 when the
server has the report; `compare` and `gate` end by the verdict, and so do `watch`
and `submit --wait`, with 3 for a run that failed, was cancelled or lost its runner.";

/// Why a command did not do its work: what and where, then what to do about it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Failure {
    /// A stable name for programs.
    pub kind: &'static str,
    pub exit: Exit,
    pub message: String,
    /// Lines of the plan with the place marked, for people.
    pub excerpt: Option<String>,
    pub hint: Option<String>,
    /// What was measured until then.
    pub report: Option<PathBuf>,
}

impl Failure {
    pub fn new(kind: &'static str, exit: Exit, message: impl Into<String>) -> Self {
        Self { kind, exit, message: message.into(), excerpt: None, hint: None, report: None }
    }

    pub fn usage(message: impl Into<String>) -> Self {
        Self::new("usage", Exit::Usage, message)
    }

    pub fn internal(message: impl Into<String>) -> Self {
        Self::new("internal", Exit::Internal, message)
    }

    #[must_use]
    pub fn hint(mut self, hint: impl Into<String>) -> Self {
        self.hint = Some(hint.into());
        self
    }

    #[must_use]
    pub fn report(mut self, path: PathBuf) -> Self {
        self.report = Some(path);
        self
    }

    /// The one document that `--json` prints when a command fails.
    pub fn to_json(&self) -> Value {
        let mut error = json!({ "kind": self.kind, "message": self.message, "exit_code": self.exit.code() });
        if let Some(hint) = &self.hint {
            error["hint"] = json!(hint);
        }
        if let Some(report) = &self.report {
            error["report"] = json!(report);
        }
        json!({ "error": error })
    }
}

impl fmt::Display for Failure {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "error: {}", self.message)?;
        if let Some(excerpt) = &self.excerpt {
            write!(f, "\n{excerpt}")?;
        }
        if let Some(hint) = &self.hint {
            write!(f, "\n  → {}", hint.replace('\n', "\n    "))?;
        }
        match &self.report {
            Some(path) => write!(f, "\n  what was measured until then: {}", path.display()),
            None => Ok(()),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn codes_agree_with_the_verdicts_and_the_help() {
        let verdicts =
            [Verdict::Pass, Verdict::Regressed, Verdict::Inconclusive, Verdict::Invalid, Verdict::NoBaseline];
        for verdict in verdicts {
            assert_eq!(Exit::from(verdict).code(), verdict.exit_code());
        }
        for exit in [Exit::Usage, Exit::Failed, Exit::Unreachable, Exit::NoBaseline, Exit::Internal] {
            assert!(HELP.contains(&format!("{:>4}  {}", exit.code(), exit.meaning())), "{exit:?}");
        }
    }
}

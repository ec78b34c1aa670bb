//! What is told: the newest state of a check, and that of a pull request.

use std::time::Duration;

use jiff::Timestamp;
use plimsoll_domain::comparison::{Comparison, Metric};
use plimsoll_domain::ids::{ProjectSlug, RunId};
use plimsoll_domain::job::Stage;
use plimsoll_domain::policy::Doubt;

use crate::store::github::checks::{Conclusion, Kind, Settled};

/// A check as it stands.
#[derive(Debug, Clone, Copy)]
pub struct Told<'a> {
    pub project: &'a ProjectSlug,
    /// The revision in short: the tag, or the first digits of the head's commit.
    pub label: &'a str,
    pub kind: Kind,
    /// How it concludes whatever a run says. `action_required` is a fork's head that waits to be approved.
    pub settled: Option<&'a Settled>,
    pub state: State<'a>,
    /// What the run's snapshot was judged to be.
    pub comparison: Option<&'a Comparison>,
    /// False for a snapshot that may not decide a check: whoever can change the workflow could have forged it.
    pub gates: bool,
    /// The missing baseline is being measured: the verdict will be another.
    pub backfill: Option<Backfill>,
    /// Regressions of this run that a person took on.
    pub accepted: &'a [Acceptance],
    pub doubt: Doubt,
    pub links: Links<'a>,
    /// The chart of the comparison, where GitHub can fetch it.
    pub chart: Option<&'a Images>,
}

/// Where the run of a check stands.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum State<'a> {
    /// Waits for a runner.
    Queued,
    Running {
        /// Unknown until the runner was heard.
        stage: Option<Stage>,
        left: Option<Duration>,
        /// The share that is done, 0 to 1.
        done: Option<f64>,
    },
    /// Its snapshot is stored; without a comparison it is about to be judged.
    Measured,
    /// It ended without a snapshot.
    Unmeasured {
        end: Unmeasured,
        /// As the runner or the server put it.
        why: Option<&'a str>,
    },
}

/// How a run ends without a snapshot.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Unmeasured {
    /// The runner says that it cannot be measured.
    Failed,
    Cancelled,
    /// Its runner was lost as often as is tried, or none took it in time.
    Expired,
    /// Nothing is known of it any more.
    Lost,
}

/// The measurement of a missing baseline.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Backfill {
    pub run: RunId,
    pub left: Option<Duration>,
}

/// A regression that a person took on, with the reason.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Acceptance {
    /// `None` is all of them.
    pub metric: Option<Metric>,
    /// A login of GitHub.
    pub by: String,
    pub reason: String,
    pub at: Timestamp,
}

impl Acceptance {
    pub fn covers(&self, metric: Metric) -> bool {
        self.metric.is_none_or(|accepted| accepted == metric)
    }
}

/// Where the pages are.
#[derive(Debug, Clone, Copy, Default)]
pub struct Links<'a> {
    /// The server's public address, without a final slash. Without one nothing is linked.
    pub server: Option<&'a str>,
    pub run: Option<RunId>,
}

/// A chart by signed addresses, for each colour scheme.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Images {
    pub light: String,
    pub dark: String,
    /// In CSS pixels.
    pub width: u32,
    pub height: u32,
}

/// A project on a pull request.
#[derive(Debug, Clone, Copy)]
pub struct PullTold<'a> {
    /// The check of the newest head.
    pub newest: Told<'a>,
    /// The last one of which there is a verdict, while the newest has none.
    pub previous: Option<Told<'a>>,
    /// Earlier pushes, the newest first.
    pub earlier: &'a [Earlier],
}

/// What an earlier push came to.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Earlier {
    /// The first digits of its commit.
    pub label: String,
    pub run: Option<RunId>,
    /// `None`: it was still open when the next came.
    pub conclusion: Option<Conclusion>,
    /// One line, as [`conclusion`](super::conclusion) gave it.
    pub title: String,
    pub at: Timestamp,
}

/// A check run as GitHub takes it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct CheckText {
    pub status: Status,
    /// With [`Status::Completed`], and only then.
    pub conclusion: Option<Conclusion>,
    /// One line.
    pub title: String,
    pub summary: String,
    pub text: Option<String>,
    pub details_url: Option<String>,
    /// At most three.
    pub actions: Vec<Action>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Status {
    Queued,
    InProgress,
    Completed,
}

impl Status {
    pub fn name(self) -> &'static str {
        match self {
            Self::Queued => "queued",
            Self::InProgress => "in_progress",
            Self::Completed => "completed",
        }
    }
}

/// A button: label and identifier have at most 20 characters, the description 40.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Action {
    pub label: &'static str,
    pub description: &'static str,
    /// What a press is reported by.
    pub identifier: &'static str,
}

impl Action {
    pub const RUN_AGAIN: Self =
        Self { label: "Run again", description: "Measure this commit again", identifier: "run_again" };
    pub const ACCEPT: Self = Self { label: "Accept", description: "Take the regression on", identifier: "accept" };
    pub const APPROVE: Self =
        Self { label: "Approve", description: "Let this commit of a fork run", identifier: "approve" };
}

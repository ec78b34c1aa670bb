//! The newest state of a check and of a pull request, as it is told.

use std::time::Duration;

use plimsoll_domain::comparison::{Comparison, Verdict};
use plimsoll_domain::ids::{CommitSha, ProjectSlug};
use plimsoll_domain::job::{self, Run};
use plimsoll_domain::policy::Doubt;

use crate::github::text::{
    self, Acceptance, Backfill, CheckText, Earlier, Links, PullTold, Standing, State, Told, Unmeasured,
};
use crate::state::AppState;
use crate::store::github::checks::{self, Check};
use crate::store::github::{pulls, standing};
use crate::store::{self, Result, jobs, projects, verdicts};

/// Everything that a check is told by.
#[derive(Debug)]
pub(super) struct Facts {
    pub(super) check: Check,
    label: String,
    run: Option<Run>,
    comparison: Option<Comparison>,
    gates: bool,
    backfill: Option<Backfill>,
    accepted: Vec<Acceptance>,
    doubt: Doubt,
    server: Option<String>,
}

impl Facts {
    pub(super) async fn of(state: &AppState, check: Check) -> Result<Self> {
        let mut connection = store::acquire(state.pool()).await?;
        let project = projects::get(&mut *connection, &check.project).await?;
        let (mut run, mut comparison, mut stored, mut accepted) = (None, None, None, Vec::new());
        if let Some(run_id) = check.run_id {
            run = jobs::get(&mut *connection, run_id).await?;
            comparison = verdicts::get(&mut *connection, run_id).await?;
            stored = standing::stored(&mut *connection, run_id).await?;
            accepted = standing::accepted(&mut *connection, run_id).await?;
        }
        let doubt = comparison.as_ref().map(|comparison| comparison.policy.when_in_doubt);
        Ok(Self {
            label: check.tag.clone().unwrap_or_else(|| check.head_sha.short().to_owned()),
            run,
            comparison,
            gates: stored.is_none_or(|stored| stored.gates),
            backfill: stored.and_then(|stored| stored.backfill).map(|(run, left)| Backfill { run, left }),
            accepted: accepted.into_iter().filter_map(acceptance).collect(),
            doubt: doubt.or(project.map(|project| project.policy.when_in_doubt)).unwrap_or_default(),
            server: state.public_url().map(str::to_owned),
            check,
        })
    }

    pub(super) fn told(&self) -> Told<'_> {
        Told {
            project: &self.check.project,
            label: &self.label,
            kind: self.check.kind,
            settled: self.check.settled.as_ref(),
            state: self.state(),
            comparison: self.comparison.as_ref(),
            gates: self.gates,
            backfill: self.backfill,
            accepted: &self.accepted,
            doubt: self.doubt,
            links: Links { server: self.server.as_deref(), run: self.check.run_id },
            chart: None,
        }
    }

    pub(super) fn text(&self) -> CheckText {
        // Nothing answers a button yet.
        CheckText { actions: Vec::new(), ..text::check(&self.told()) }
    }

    pub(super) fn is_open(&self) -> bool {
        text::conclusion(&self.told()) == Standing::Progress
    }

    pub(super) fn started_at(&self) -> Option<jiff::Timestamp> {
        self.run.as_ref().and_then(|run| run.started_at)
    }

    /// A verdict that stays.
    fn is_judged(&self) -> bool {
        self.comparison.as_ref().is_some_and(|comparison| comparison.verdict != Verdict::NoBaseline)
    }

    fn state(&self) -> State<'_> {
        let Some(run) = &self.run else {
            return match self.comparison {
                Some(_) => State::Measured,
                None => State::Unmeasured { end: Unmeasured::Lost, why: None },
            };
        };
        let ended = |end| State::Unmeasured { end, why: run.reason.as_deref() };
        match run.state {
            job::State::Queued => State::Queued,
            job::State::Leased | job::State::Running => {
                let progress = run.progress.as_ref();
                State::Running {
                    stage: progress.map(|progress| progress.stage),
                    left: progress.and_then(|progress| progress.left_ms).map(Duration::from_millis),
                    done: progress.and_then(|progress| progress.done),
                }
            }
            job::State::Done => State::Measured,
            job::State::Failed => ended(Unmeasured::Failed),
            job::State::Cancelled => ended(Unmeasured::Cancelled),
            job::State::Expired => ended(Unmeasured::Expired),
        }
    }
}

/// `None` for a metric that this server does not know: it takes on nothing.
fn acceptance(one: standing::Accepted) -> Option<Acceptance> {
    let metric = match one.metric.as_str() {
        "all" => None,
        name => Some(serde_json::from_value(serde_json::Value::from(name)).ok()?),
    };
    Some(Acceptance { metric, by: one.by, reason: one.reason, at: one.at })
}

/// Checks of a pull request that are looked at.
const MOST: i64 = 40;

/// What the comment says now; `None` without any check.
pub(super) async fn comment(
    state: &AppState,
    project: &ProjectSlug,
    repository: i64,
    number: i64,
) -> Result<Option<String>> {
    let head = pulls::get(state.pool(), repository, number).await?.map(|pull| pull.head_sha);
    let mut checks = checks::of_pull(state.pool(), project, repository, number, MOST).await?;
    let is_head = |check: &Check| head.as_ref().is_none_or(|head| check.head_sha == *head);
    let at = checks.iter().position(|check| !check.superseded && is_head(check));
    let Some(at) = at.or_else(|| checks.iter().position(|check| !check.superseded)) else { return Ok(None) };
    let newest = Facts::of(state, checks.remove(at)).await?;
    let mut heads: Vec<CommitSha> = vec![newest.check.head_sha.clone()];
    let (mut former, mut earlier) = (Vec::new(), Vec::new());
    for check in checks {
        if check.superseded || heads.contains(&check.head_sha) {
            continue;
        }
        heads.push(check.head_sha.clone());
        former.push(Facts::of(state, check).await?);
    }
    for facts in &former {
        let (conclusion, title) = match text::conclusion(&facts.told()) {
            Standing::Concluded { conclusion, title } => (Some(conclusion), title),
            Standing::Progress => (None, String::new()),
        };
        let (label, run) = (facts.label.clone(), facts.check.run_id);
        earlier.push(Earlier { label, run, conclusion, title, at: facts.at() });
    }
    let previous = former.iter().find(|facts| facts.is_judged()).filter(|_| newest.is_open()).map(Facts::told);
    Ok(Some(text::comment(&PullTold { newest: newest.told(), previous, earlier: &earlier })))
}

impl Facts {
    /// When it was opened: its id says so.
    fn at(&self) -> jiff::Timestamp {
        let (seconds, nanoseconds) = self.check.id.get_timestamp().map_or((0, 0), |time| time.to_unix());
        let whole = i64::try_from(seconds).unwrap_or_default();
        jiff::Timestamp::new(whole, i32::try_from(nanoseconds).unwrap_or_default()).unwrap_or_default()
    }
}

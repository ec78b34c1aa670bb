//! The output of a check run.

use plimsoll_domain::comparison::Verdict;
use plimsoll_domain::ids::ProjectSlug;
use plimsoll_domain::prose::capital;

use super::blocks::{accepted, baseline_of, chart, joined, links, progress, said, what_to_do, why, within};
use super::conclusion::{Standing, conclusion, is_accepted};
use super::outside::plain;
use super::tables;
use super::told::{Action, CheckText, State, Status, Told};
use crate::store::github::checks::{Conclusion, Kind};

/// Bytes that GitHub takes of a summary, and of a text.
pub(super) const LIMIT: usize = 65_535;
const TITLE: usize = 200;

/// What the check of a project is called: the same for ever, since a required check is found by its name. That of a
/// release is another, so that it never stands for the one that a merge waits for.
pub fn check_name(project: &ProjectSlug, kind: Kind) -> String {
    match kind {
        Kind::Branch | Kind::PullRequest | Kind::MergeGroup => format!("plimsoll/{project}"),
        Kind::Tag => format!("plimsoll/{project} release"),
    }
}

/// What a check run says now. Its conclusion does not depend on how much there is to show.
pub fn check(told: &Told<'_>) -> CheckText {
    let (status, conclusion, title) = match conclusion(told) {
        Standing::Progress => (under_way(told), None, capital(&plain(&progress(told), TITLE))),
        Standing::Concluded { conclusion, title } => (Status::Completed, Some(conclusion), title),
    };
    let text = text(told);
    CheckText {
        status,
        conclusion,
        title,
        summary: summary(told),
        text: (!text.is_empty()).then_some(text),
        details_url: links::details(told),
        actions: actions(told, conclusion),
    }
}

fn under_way(told: &Told<'_>) -> Status {
    if told.state == State::Queued { Status::Queued } else { Status::InProgress }
}

fn summary(told: &Told<'_>) -> String {
    let fixed = [said(told), accepted(told), chart(told), why(told), what_to_do(told), links::all(told)];
    let taken: usize = fixed.iter().map(|block| block.len() + 2).sum();
    let table = tables::gated(told, LIMIT.saturating_sub(taken + 2));
    let [said, accepted, rest @ ..] = fixed;
    let [chart, why, what, links] = rest;
    within(&joined([said, accepted, table, chart, why, what, links]), LIMIT).to_owned()
}

fn text(told: &Told<'_>) -> String {
    let baseline = baseline_of(told);
    let table = tables::observed(told, LIMIT - baseline.len() - 2);
    within(&joined([table, baseline]), LIMIT).to_owned()
}

/// The buttons under it.
fn actions(told: &Told<'_>, conclusion: Option<Conclusion>) -> Vec<Action> {
    let waits = told.settled.is_some_and(|settled| settled.conclusion == Conclusion::ActionRequired);
    let regressed = told.settled.is_none()
        && told.gates
        && told.state == State::Measured
        && told.comparison.is_some_and(|comparison| comparison.verdict == Verdict::Regressed);
    match conclusion {
        None => Vec::new(),
        Some(_) if waits => vec![Action::APPROVE],
        Some(_) if regressed && !is_accepted(told) => vec![Action::RUN_AGAIN, Action::ACCEPT],
        Some(_) => vec![Action::RUN_AGAIN],
    }
}

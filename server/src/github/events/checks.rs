//! Check runs and suites. `pull_requests` of either may be empty or null, and is not read: a check is found by its
//! external id and its head.

use plimsoll_domain::ids::CommitSha;
use serde::Deserialize;

use super::read::json;
use super::wire::{Around, Id, null_or};
use super::{CheckAction, CheckRun, CheckSuite, Event, Unreadable};

#[derive(Deserialize)]
struct RunPayload {
    check_run: Run,
    requested_action: Option<Button>,
}

#[derive(Deserialize)]
struct Run {
    id: i64,
    #[serde(default, deserialize_with = "null_or")]
    name: String,
    head_sha: CommitSha,
    external_id: Option<String>,
    app: Option<Id>,
}

#[derive(Deserialize)]
struct Button {
    identifier: Option<String>,
}

pub(super) fn check_run(body: &[u8]) -> Result<Event, Unreadable> {
    let around: Around = json(body)?;
    if !matches!(around.action(), "rerequested" | "requested_action") {
        return Ok(Event::Ignored("a check run of which nobody asks anything"));
    }
    let RunPayload { check_run: run, requested_action } = json(body)?;
    let action = match requested_action.and_then(|button| button.identifier) {
        _ if around.action() == "rerequested" => CheckAction::Rerequested,
        Some(identifier) => CheckAction::RequestedAction(identifier),
        None => return Ok(Event::Ignored("a button without a name")),
    };
    let Some(app) = run.app else { return Ok(Event::Ignored("a check run of no App")) };
    let sender = around.sender();
    Ok(Event::CheckRun(CheckRun {
        repository: around.into_repository(),
        action,
        app_id: app.id,
        check_run: run.id,
        name: run.name,
        external_id: run.external_id.and_then(|id| id.parse().ok()),
        head_sha: run.head_sha,
        sender,
    }))
}

#[derive(Deserialize)]
struct SuitePayload {
    check_suite: Suite,
}

#[derive(Deserialize)]
struct Suite {
    head_sha: CommitSha,
    app: Option<Id>,
}

pub(super) fn check_suite(body: &[u8]) -> Result<Event, Unreadable> {
    let around: Around = json(body)?;
    if around.action() != "rerequested" {
        return Ok(Event::Ignored("a check suite of which nobody asks anything"));
    }
    let SuitePayload { check_suite: suite } = json(body)?;
    let Some(app) = suite.app else { return Ok(Event::Ignored("a check suite of no App")) };
    let sender = around.sender();
    let repository = around.into_repository();
    Ok(Event::CheckSuite(CheckSuite { repository, app_id: app.id, head_sha: suite.head_sha, sender }))
}

//! What is told to others about a run: rows of the outbox.

use std::collections::BTreeMap;

use plimsoll_domain::comparison::Comparison;
use plimsoll_domain::job::{Kind, Run, State, Wanted};
use plimsoll_domain::report::Report;
use serde::Serialize;

use crate::store::{Transaction, outbox};
use crate::tasks::{Error, Result};

/// The payload of an event: the run, and how it ended.
#[derive(Serialize)]
struct Told<'a> {
    event: &'a str,
    #[serde(flatten)]
    run: &'a Run,
    /// Once it is over: the verdict's name, or without one the state's.
    #[serde(skip_serializing_if = "Option::is_none")]
    conclusion: Option<&'a str>,
}

pub(in crate::tasks) async fn tell(transaction: &mut Transaction, run: &Run, event: &str) -> Result<()> {
    Ok(outbox::append(&mut **transaction, run.run_id, &run.project, event, &payload(run, event)?).await?)
}

/// `run.finished` is told once. What comes later, as the report of a run that was given up, replaces what was told.
pub(in crate::tasks) async fn tell_end(transaction: &mut Transaction, run: &Run) -> Result<()> {
    let payload = payload(run, "run.finished")?;
    Ok(outbox::append_end(&mut **transaction, run.run_id, &run.project, &payload).await?)
}

fn payload(run: &Run, event: &str) -> Result<serde_json::Value> {
    let over = run.state.is_final();
    let conclusion = over.then(|| run.verdict.map_or(run.state.name(), |verdict| verdict.name()));
    serde_json::to_value(Told { event, run, conclusion }).map_err(Error::internal)
}

/// A snapshot that nobody asked for is told as if it had been.
pub(in crate::tasks) async fn tell_upload(
    transaction: &mut Transaction,
    report: &Report,
    comparison: &Comparison,
) -> Result<()> {
    let revision = &report.revision;
    let run = Run {
        run_id: report.run_id,
        project: report.project.clone(),
        kind: Kind::Measure,
        state: State::Done,
        label: revision.label_or_unnamed(),
        revision: Wanted {
            commit: revision.commit.clone(),
            tag: revision.tag.clone(),
            branch: revision.branch.clone(),
            pull_request: revision.pull_request,
            merge_base: revision.merge_base.clone(),
        },
        reason: None,
        attempt: 1,
        max_attempts: 1,
        labels: BTreeMap::new(),
        requested_by: Some("upload".to_owned()),
        runner: None,
        created_at: report.started_at,
        started_at: Some(report.started_at),
        finished_at: Some(report.finished_at),
        progress: None,
        last_seq: 0,
        verdict: Some(comparison.verdict),
        sentence: Some(comparison.sentence.clone()),
        path: format!("/{}/snapshots/{}", report.project, report.run_id),
    };
    tell_end(transaction, &run).await
}

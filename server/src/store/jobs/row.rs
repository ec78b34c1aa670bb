//! The columns of a [`Job`], in one place.

use std::collections::BTreeMap;

use plimsoll_domain::ids::RunId;
use plimsoll_domain::job::{Progress, Run};
use sqlx::types::Json;
use sqlx::types::chrono::{DateTime, Utc};
use uuid::Uuid;

use super::{Job, WantedJson};
use crate::store::time::from_db;
use crate::store::{Result, StoreError, corrupt};

/// A query for [`Row`]s: the rest of the statement after the tables `j` (jobs), `r` (runners) and `v` (verdicts).
macro_rules! rows {
    ($rest:literal $(, $arg:expr)* $(,)?) => {
        sqlx::query_as!(
            crate::store::jobs::Row,
            r#"select j.run_id, j.project, j.kind, j.state, j.priority,
                  j.revision as "revision: crate::store::jobs::WantedJson", j.plan, j.plan_commit, j.profile,
                  j.labels as "labels: crate::store::Labels", j.supersedes, j.baseline_of, j.requested_by,
                  j.created_at, j.attempt, j.max_attempts, j.lease,
                  j.lease_expires_at, j.heard, j.undelivered, j.cancel, j.started_at, j.finished_at,
                  j.reason, j.last_seq, j.progress as "progress: crate::store::ProgressJson", r.name as "runner?",
                  v.verdict as "verdict?", v.comparison ->> 'sentence' as sentence
               from jobs j
               left join runners r on r.id = j.runner
               left join verdicts v on v.run_id = j.run_id "# + $rest
            $(, $arg)*
        )
    };
}
pub(in crate::store) use rows;

#[derive(Debug)]
pub(in crate::store) struct Row {
    pub(in crate::store) run_id: Uuid,
    pub(in crate::store) project: String,
    pub(in crate::store) kind: String,
    pub(in crate::store) state: String,
    pub(in crate::store) priority: i16,
    pub(in crate::store) revision: WantedJson,
    pub(in crate::store) plan: Option<String>,
    pub(in crate::store) plan_commit: Option<String>,
    pub(in crate::store) profile: Option<String>,
    pub(in crate::store) labels: Json<BTreeMap<String, String>>,
    pub(in crate::store) supersedes: Option<String>,
    pub(in crate::store) baseline_of: Option<Uuid>,
    pub(in crate::store) requested_by: String,
    pub(in crate::store) created_at: DateTime<Utc>,
    pub(in crate::store) attempt: i32,
    pub(in crate::store) max_attempts: i32,
    pub(in crate::store) lease: Option<Uuid>,
    pub(in crate::store) lease_expires_at: Option<DateTime<Utc>>,
    pub(in crate::store) heard: bool,
    pub(in crate::store) undelivered: i32,
    pub(in crate::store) cancel: Option<String>,
    pub(in crate::store) started_at: Option<DateTime<Utc>>,
    pub(in crate::store) finished_at: Option<DateTime<Utc>>,
    pub(in crate::store) reason: Option<String>,
    pub(in crate::store) last_seq: i64,
    pub(in crate::store) progress: Option<Json<Progress>>,
    pub(in crate::store) runner: Option<String>,
    pub(in crate::store) verdict: Option<String>,
    pub(in crate::store) sentence: Option<String>,
}

impl TryFrom<Row> for Job {
    type Error = StoreError;

    fn try_from(row: Row) -> Result<Self> {
        let name = |e: plimsoll_domain::ids::BadName| corrupt("job")(e.to_string());
        let run_id = RunId(row.run_id);
        // Whatever became of the job: where there is a verdict, there is a snapshot.
        let path = if row.verdict.is_some() {
            format!("/{}/snapshots/{run_id}", row.project)
        } else {
            format!("/runs/{run_id}")
        };
        let run = Run {
            run_id,
            project: row.project.parse().map_err(name)?,
            kind: named(&row.kind)?,
            state: named(&row.state)?,
            label: row.revision.revision().label_or_unnamed(),
            revision: row.revision.0,
            reason: row.reason,
            attempt: row.attempt.unsigned_abs(),
            max_attempts: row.max_attempts.unsigned_abs(),
            labels: row.labels.0,
            requested_by: Some(row.requested_by),
            runner: row.runner,
            created_at: from_db(row.created_at),
            started_at: row.started_at.map(from_db),
            finished_at: row.finished_at.map(from_db),
            progress: row.progress.map(|progress| progress.0),
            last_seq: row.last_seq.unsigned_abs(),
            verdict: row.verdict.as_deref().map(named).transpose()?,
            sentence: row.sentence,
            path,
        };
        Ok(Self {
            run,
            plan: row.plan,
            plan_commit: row.plan_commit.map(|sha| sha.parse()).transpose().map_err(name)?,
            profile: row.profile.as_deref().map(named).transpose()?,
            supersedes: row.supersedes,
            priority: row.priority,
            baseline_of: row.baseline_of.map(RunId),
            lease: row.lease,
            lease_expires_at: row.lease_expires_at.map(from_db),
            heard: row.heard,
            undelivered: row.undelivered.unsigned_abs(),
            cancel: row.cancel,
        })
    }
}

/// A value by its name on the wire, which is also its name in the database.
fn named<T: serde::de::DeserializeOwned>(name: &str) -> Result<T> {
    serde_json::from_value(name.into()).map_err(|e| corrupt("job")(e.to_string()))
}

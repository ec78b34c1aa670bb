//! The columns of a [`SnapshotRow`], in one place.

use plimsoll_domain::comparison::Verdict;

use super::*;
use crate::store::StoreError;

/// A query for [`Row`]s: the rest of the statement after the tables `s` (snapshots), `t` (testbeds) and `v` (verdicts).
macro_rules! rows {
    ($rest:literal $(, $arg:expr)* $(,)?) => {
        sqlx::query_as!(
            crate::store::snapshots::row::Row,
            r#"select s.run_id, s.project, s.revision - 'ancestors' as "revision!: crate::store::RevisionJson",
                  s.testbed, t.label as testbed_label, s.plan_digest, s.started_at, s.finished_at, s.received_at,
                  s.status, s.valid, s.accepted, s.gates, v.verdict, v.sentence as "sentence!",
                  s.stability_workers, s.tps, s.p50_ms, s.p99_ms, s.p99_low_ms, s.p99_high_ms, s.error_rate,
                  s.capacity_tps, s.knee_workers, s.capacity_at_workers
               from snapshots s
               join testbeds t on t.fingerprint = s.testbed
               join verdicts v on v.run_id = s.run_id "# + $rest
            $(, $arg)*
        )
    };
}
pub(in crate::store) use rows;

#[derive(Debug)]
pub(in crate::store) struct Row {
    pub(in crate::store) run_id: Uuid,
    pub(in crate::store) project: String,
    pub(in crate::store) revision: Json<Revision>,
    pub(in crate::store) testbed: String,
    pub(in crate::store) testbed_label: String,
    pub(in crate::store) plan_digest: String,
    pub(in crate::store) started_at: DateTime<Utc>,
    pub(in crate::store) finished_at: DateTime<Utc>,
    pub(in crate::store) received_at: DateTime<Utc>,
    pub(in crate::store) status: String,
    pub(in crate::store) valid: bool,
    pub(in crate::store) accepted: bool,
    pub(in crate::store) gates: bool,
    pub(in crate::store) verdict: String,
    pub(in crate::store) sentence: String,
    pub(in crate::store) stability_workers: Option<i32>,
    pub(in crate::store) tps: Option<f64>,
    pub(in crate::store) p50_ms: Option<f64>,
    pub(in crate::store) p99_ms: Option<f64>,
    pub(in crate::store) p99_low_ms: Option<f64>,
    pub(in crate::store) p99_high_ms: Option<f64>,
    pub(in crate::store) error_rate: Option<f64>,
    pub(in crate::store) capacity_tps: Option<f64>,
    pub(in crate::store) knee_workers: Option<i32>,
    pub(in crate::store) capacity_at_workers: Option<i32>,
}

impl TryFrom<Row> for SnapshotRow {
    type Error = StoreError;

    fn try_from(row: Row) -> Result<Self> {
        let name = |e: plimsoll_domain::ids::BadName| corrupt("snapshot")(e.to_string());
        let fingerprint = row.testbed.parse().map_err(name)?;
        Ok(Self {
            run_id: RunId(row.run_id),
            project: row.project.parse().map_err(name)?,
            label: row.revision.label_or_unnamed(),
            revision: row.revision.0,
            testbed: TestbedRef { fingerprint, label: row.testbed_label },
            plan_digest: row.plan_digest.parse().map_err(name)?,
            started_at: from_db(row.started_at),
            finished_at: from_db(row.finished_at),
            received_at: from_db(row.received_at),
            status: named(&row.status)?,
            valid: row.valid,
            accepted: row.accepted,
            gates: row.gates,
            verdict: named::<Verdict>(&row.verdict)?,
            sentence: row.sentence,
            stability_workers: row.stability_workers.map(i32::unsigned_abs),
            tps: row.tps,
            p50_ms: row.p50_ms,
            p99_ms: row.p99_ms,
            p99_interval_ms: row.p99_low_ms.zip(row.p99_high_ms).map(|(low, high)| [low, high]),
            error_rate: row.error_rate,
            capacity_tps: row.capacity_tps,
            knee_workers: row.knee_workers.map(i32::unsigned_abs),
            capacity_at_workers: row.capacity_at_workers.map(i32::unsigned_abs),
        })
    }
}

/// The name of a status on the wire, which is also its name in the database.
pub(super) fn status_name(status: Status) -> &'static str {
    match status {
        Status::Complete => "complete",
        Status::Interrupted => "interrupted",
        Status::Failed => "failed",
    }
}

/// A value by its name on the wire.
fn named<T: serde::de::DeserializeOwned>(name: &str) -> Result<T> {
    serde_json::from_value(name.into()).map_err(|e| corrupt("snapshot")(e.to_string()))
}

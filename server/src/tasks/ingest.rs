//! A report becomes a snapshot: judged first, then stored with its verdict in one transaction.

use std::sync::Arc;

use plimsoll_domain::comparison::Comparison;
use plimsoll_domain::figures::Figures;
use plimsoll_domain::ids::RunId;
use plimsoll_domain::report::Report;
use plimsoll_domain::verdict::Run;

use super::gating::{self, Bringer};
use super::{Error, Result, backfill, bounds, jobs, pack, verdict};
use crate::access::Refusal;
use crate::state::AppState;
use crate::store::jobs::Job;
use crate::store::{self, reports, snapshots, verdicts};

/// A checked report, and the JSON it came as, which is what is stored.
#[derive(Debug, Clone)]
pub struct Received {
    pub report: Arc<Report>,
    pub json: Vec<u8>,
    /// The same packed with zstd, where it came so.
    pub packed: Option<Vec<u8>>,
    pub bringer: Bringer,
}

impl From<Report> for Received {
    fn from(report: Report) -> Self {
        Self { json: report.to_json().into_bytes(), packed: None, report: Arc::new(report), bringer: Bringer::own() }
    }
}

/// The outcome of an upload.
#[derive(Debug)]
pub struct Ingested {
    /// The comparison made when the snapshot was stored.
    pub comparison: Comparison,
    /// False when the very same report was stored before.
    pub created: bool,
    /// Why the verdict decides no check, if so.
    pub undecisive: Option<String>,
}

/// Stores and judges a report. Another report under the same run id is a conflict, and so is one that is not what was
/// asked for under this id.
///
/// The judging comes before the transaction, so that no lock is held while it computes. Of two uploads of one run at
/// the same time both judge, one stores, and the other finds it stored.
pub async fn ingest(state: &AppState, Received { report, json, packed, bringer }: Received) -> Result<Ingested> {
    bounds::check(&report).map_err(Error::Unfit)?;
    let mut connection = store::acquire(state.pool()).await?;
    let before = reports::before(&mut *connection, report.run_id).await?;
    let job = if before.asked_for { store::jobs::look(&mut *connection, report.run_id).await? } else { None };
    // Others use it meanwhile.
    drop(connection);
    if let Some(sha256) = before.stored {
        return stored(state, sha256, &report, json).await;
    }
    if let Some(job) = &job {
        is_asked_for(&report, job)?;
    }
    if before.checked && !bringer.is_trusted() {
        let why = "a check on GitHub waits for this run: only its runner brings the report (scope `agent`)";
        return Err(Refusal::OutOfReach(why.to_owned()).into());
    }
    let undecisive = bringer.decides(&report.revision).err().map(|cause| cause.to_string());
    let measured = Arc::clone(&report);
    let work = move || {
        let packed = match packed {
            Some(body) => pack::packed(&json, body),
            None => pack::pack_json(&json)?,
        };
        Ok::<_, Error>((Figures::of(&measured), Run::of(&measured), packed, json))
    };
    let (figures, run, packed, json) = state.compute(work).await??;
    let run = Arc::new(run);
    let mut connection = store::acquire(state.pool()).await?;
    let comparison = verdict::judge_new(state, &mut connection, &report, &run).await?;
    let (judged_again, mut transaction) = match job.as_ref().and_then(|job| job.baseline_of) {
        Some(waits) if undecisive.is_none() => {
            // It takes connections of its own: who holds one must not wait for another.
            drop(connection);
            let judged_again = backfill::judge_waiting(state, &report, &run, &comparison, waits).await?;
            (judged_again, store::begin(state.pool()).await?)
        }
        _ => (Vec::new(), store::begin_on(connection).await?),
    };
    // Nobody asks for a run of this id meanwhile, and no other upload of it is under way.
    store::jobs::hold(&mut *transaction, &format!("run {}", report.run_id)).await?;
    let job = store::jobs::lock(&mut transaction, report.run_id).await?;
    let new = snapshots::New {
        report: &report,
        packed: &packed,
        figures: &figures,
        prepared: &run,
        comparison: &comparison,
        visibility: state.new_projects(),
        gates: undecisive.is_none(),
        brought_by: bringer.name.as_deref(),
    };
    if !snapshots::insert(&mut *transaction, &new).await? {
        drop(transaction);
        let sha256 = reports::before(state.pool(), report.run_id).await?.stored;
        let sha256 = sha256.ok_or_else(|| Error::internal("a run is stored, and is not"))?;
        return stored(state, sha256, &report, json).await;
    }
    let missed = match &job {
        Some(job) => {
            is_asked_for(&report, job)?;
            jobs::measured(&mut transaction, job).await?;
            backfill::queue(&mut transaction, &report, &comparison, job).await?
        }
        None => {
            jobs::tell_upload(&mut transaction, &report, &comparison).await?;
            false
        }
    };
    for again in &judged_again {
        backfill::replace(&mut transaction, again).await?;
    }
    store::commit(transaction).await?;
    state.metrics().verdict(comparison.verdict.name());
    tracing::info!(project = %report.project, run_id = %report.run_id, verdict = comparison.verdict.name(), "stored");
    let caught_up = if missed { backfill::catch_up(state, &report).await? } else { None };
    Ok(Ingested { comparison: caught_up.unwrap_or(comparison), created: true, undecisive })
}

/// A report belongs to the run that was asked for under its id: same project, and the commit that was named.
fn is_asked_for(report: &Report, job: &Job) -> Result<()> {
    let refused = |what: String| {
        let detail = format!("run {} was asked for {what}: this report is not of it", report.run_id);
        Err(Error::Conflict(detail))
    };
    if report.project != job.run.project {
        return refused("in another project".to_owned());
    }
    match (&job.run.revision.commit, &report.revision.commit) {
        (Some(asked), Some(measured)) if !asked.is_same(measured) => refused(format!("at commit {asked}")),
        _ => Ok(()),
    }
}

/// The stored comparison, if what is stored under this hash is this very report.
async fn stored(state: &AppState, sha256: [u8; 32], report: &Arc<Report>, json: Vec<u8>) -> Result<Ingested> {
    if !is_stored(state, sha256, report, json).await? {
        let detail = format!("run {} is stored already, with another report: a run is measured once", report.run_id);
        return Err(Error::Conflict(detail));
    }
    let comparison = verdicts::get(state.pool(), report.run_id).await?;
    let comparison = comparison.ok_or_else(|| Error::internal("a snapshot without its verdict"))?;
    as_stored(state, report.run_id, comparison).await
}

/// What is answered of a run that was stored before, with this comparison.
pub async fn as_stored(state: &AppState, run_id: RunId, comparison: Comparison) -> Result<Ingested> {
    let gates = snapshots::gates(state.pool(), run_id).await?.unwrap_or(true);
    let undecisive = (!gates).then(|| gating::UNVOUCHED.to_owned());
    Ok(Ingested { comparison, created: false, undecisive })
}

/// Whether the stored report is the same: by the bytes that came, else by the report's own JSON, which the runner sends and
/// earlier versions stored, else by what they say, whatever their white space and order of fields. Of a thinned report only
/// the hash knows what it was.
async fn is_stored(state: &AppState, sha256: [u8; 32], report: &Arc<Report>, json: Vec<u8>) -> Result<bool> {
    let again = Arc::clone(report);
    if state.compute(move || [pack::hash(&json), pack::hash(again.to_json().as_bytes())]).await?.contains(&sha256) {
        return Ok(true);
    }
    let _turn = state.turn_to_read().await?;
    let Some(packed) = reports::get(state.pool(), report.run_id).await? else { return Ok(false) };
    let again = Arc::clone(report);
    let compare = move || pack::unpack(&packed).map(|stored| !stored.is_thinned() && stored == *again);
    state.compute(compare).await?
}

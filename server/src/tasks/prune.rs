//! Retention: lets go of what only the recent past needs. In small steps that leave what others hold; one that is cut off
//! is simply gone on with.

use std::time::{Duration, Instant};

use jiff::Timestamp;
use plimsoll_domain::ids::RunId;

use super::{Error, pack};
use crate::store::prune::{self, Counts, Cutoffs};
use crate::store::reports::Packed;
use crate::store::{Pool, StoreError};

const LIVE_EVENTS: Duration = Duration::from_secs(7 * 24 * 3_600);
const UPLOADS: Duration = Duration::from_secs(7 * 24 * 3_600);
const EVENTS: Duration = Duration::from_secs(30 * 24 * 3_600);
/// GitHub lets people redeliver what is younger.
const INBOX: Duration = Duration::from_secs(30 * 24 * 3_600);
/// Checks are shown for longer, but by then nothing about them is sent again.
const TOLD: Duration = Duration::from_secs(30 * 24 * 3_600);
const RUNNERS: Duration = Duration::from_secs(30 * 24 * 3_600);

/// A step ends after about this long, so that whoever waits for it hears something.
const STEP: Duration = Duration::from_secs(10);

#[derive(Debug, thiserror::Error)]
pub enum PruneError {
    #[error(transparent)]
    Store(#[from] StoreError),
    #[error("a task of ours failed: {0}")]
    Task(#[from] tokio::task::JoinError),
}

/// What one step did.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Pruned {
    pub counts: Counts,
    /// Of the thinned reports, compressed.
    pub bytes_before: u64,
    pub bytes_after: u64,
    /// Reports that could not be read, and are left as they are.
    pub unreadable: u64,
    /// Where the next step goes on among the reports.
    pub after: Option<RunId>,
}

/// What goes at `now`, with windows kept for `windows_after`.
pub fn cutoffs(now: Timestamp, windows_after: Option<Duration>) -> Cutoffs {
    let ago = |age: Duration| now.checked_sub(age).unwrap_or(Timestamp::MIN);
    Cutoffs {
        windows: windows_after.map(ago),
        live_events: ago(LIVE_EVENTS),
        sessions: now,
        uploads: ago(UPLOADS),
        events: ago(EVENTS),
        runners: ago(RUNNERS),
        inbox: ago(INBOX),
        told: ago(TOLD),
    }
}

/// One step: a batch of each kind, and reports for some seconds. There is more to do until it counts nothing.
pub async fn step(pool: &Pool, before: &Cutoffs, after: Option<RunId>) -> Result<Pruned, PruneError> {
    let mut done = Pruned { after, ..Pruned::default() };
    done.counts.live_events = prune::live_events(pool, before.live_events).await?;
    done.counts.sessions = prune::sessions(pool, before.sessions).await?;
    done.counts.uploads = prune::uploads(pool, before.uploads).await?;
    done.counts.deliveries = prune::deliveries(pool, before.events).await?;
    done.counts.events = prune::events(pool, before.events).await?;
    done.counts.runners = prune::runners(pool, before.runners).await?;
    done.counts.inbox = prune::inbox(pool, before.inbox).await?;
    done.counts.told = prune::told(pool, before.told).await?;
    if let Some(windows) = before.windows {
        let until = Instant::now() + STEP;
        while Instant::now() < until && thin_next(pool, windows, &mut done).await? {}
    }
    Ok(done)
}

/// One report, in a transaction of some milliseconds. False when there is none left.
async fn thin_next(pool: &Pool, before: Timestamp, done: &mut Pruned) -> Result<bool, PruneError> {
    let mut transaction = pool.begin().await.map_err(StoreError::from)?;
    let Some((run_id, packed)) = prune::next_whole(&mut *transaction, done.after, before).await? else {
        return Ok(false);
    };
    done.after = Some(run_id);
    let whole = packed.body.len() as u64;
    match tokio::task::spawn_blocking(move || thin(&packed)).await? {
        Ok(body) => {
            prune::put_thinned(&mut *transaction, run_id, &body).await?;
            transaction.commit().await.map_err(StoreError::from)?;
            done.counts.reports += 1;
            done.bytes_before += whole;
            done.bytes_after += body.len() as u64;
        }
        Err(error) => {
            tracing::warn!(%run_id, %error, "a report cannot be read and is left as it is");
            done.unreadable += 1;
        }
    }
    Ok(true)
}

fn thin(packed: &Packed) -> Result<Vec<u8>, Error> {
    let mut report = pack::unpack(packed)?;
    report.thin();
    Ok(pack::pack(&report)?.body)
}

impl Pruned {
    /// How much a step found to do.
    pub fn total(&self) -> u64 {
        let Counts { reports, live_events, sessions, uploads, deliveries, events, runners, inbox, told } = self.counts;
        reports + live_events + sessions + uploads + deliveries + events + runners + inbox + told
    }

    pub fn add(&mut self, other: &Self) {
        let (sum, more) = (&mut self.counts, other.counts);
        sum.reports += more.reports;
        sum.live_events += more.live_events;
        sum.sessions += more.sessions;
        sum.uploads += more.uploads;
        sum.deliveries += more.deliveries;
        sum.events += more.events;
        sum.runners += more.runners;
        sum.inbox += more.inbox;
        sum.told += more.told;
        self.bytes_before += other.bytes_before;
        self.bytes_after += other.bytes_after;
        self.unreadable += other.unreadable;
        self.after = other.after;
    }
}

//! What holds for every job, whatever happened: read from its own history.

use std::collections::BTreeMap;

use plimsoll_domain::ids::RunId;
use plimsoll_domain::job::{Live, State};
use plimsoll_server::store::jobs::Filter;
use plimsoll_server::store::{jobs, live};

use super::actor::told;
use crate::app::App;

/// What happened in all, so that a test can say that it tried something.
pub(crate) type Seen = BTreeMap<&'static str, usize>;

/// Checks every job. A progress must carry in `elapsed_ms` the tag of the lease by which it was sent, and `leases` say
/// which tag the nth lease of a run has.
pub(crate) async fn check(app: &App, leases: &BTreeMap<RunId, Vec<u64>>) -> Seen {
    let mut seen = Seen::new();
    let filter = Filter { project: None, state: None, before: None, limit: 10_000 };
    for run in jobs::list(&app.pool, filter).await.unwrap() {
        let id = run.run_id;
        let events = live::after(&app.pool, id, 0, 100_000).await.unwrap();
        let seqs: Vec<u64> = events.iter().map(|event| event.seq).collect();
        assert_eq!(seqs, (1..=run.last_seq).collect::<Vec<_>>(), "a gap in {id}");

        let (mut at, mut taken, mut running, mut verdicts) = (None, Vec::new(), false, 0);
        for event in &events {
            match &event.what {
                Live::State { state, attempt, .. } => {
                    match at {
                        None => assert_eq!(*state, State::Queued),
                        Some(from) => assert!(State::may_become(from, *state), "{id}: {from:?} to {state:?}"),
                    }
                    assert!(*attempt <= run.max_attempts, "{id}: {attempt} attempts");
                    at = Some(*state);
                    running |= *state == State::Running;
                    if *state == State::Leased {
                        taken.push(Vec::new());
                    }
                }
                Live::Progress(progress) => {
                    assert!(matches!(at, Some(State::Leased | State::Running)), "{id}: progress while {at:?}");
                    taken.last_mut().unwrap().push(progress.elapsed_ms);
                }
                Live::Verdict { .. } => verdicts += 1,
            }
        }
        assert_eq!(at, Some(run.state), "{id}");
        // Only the holder of the lease was ever believed.
        for (n, tags) in taken.iter().enumerate() {
            let tag = leases.get(&id).and_then(|leases| leases.get(n));
            assert!(tags.iter().all(|own| Some(own) == tag), "{id}: {tags:?} by the lease {tag:?}");
        }

        let snapshots: i64 = count(app, "snapshots", id).await;
        assert_eq!(count(app, "verdicts", id).await, snapshots, "{id}");
        assert_eq!(i64::from(verdicts), snapshots, "{id}");
        assert_eq!(
            (run.state == State::Done, run.verdict.is_some()),
            (snapshots == 1 && run.state == State::Done, snapshots == 1)
        );

        let (events, _) = told(app, id).await;
        let often = |name: &str| events.iter().filter(|event| *event == name).count();
        assert_eq!(often("run.requested"), 1, "{id}: {events:?}");
        assert_eq!(often("run.started"), usize::from(running), "{id}: {events:?}");
        assert_eq!(often("run.finished"), usize::from(run.state.is_final()), "{id}: {events:?}");
        *seen.entry(run.state.name()).or_default() += 1;
        *seen.entry("measured").or_default() += usize::from(snapshots == 1);
        *seen.entry("again").or_default() += usize::from(taken.len() > 1);
    }
    seen
}

async fn count(app: &App, table: &str, id: RunId) -> i64 {
    let sql = sqlx::AssertSqlSafe(format!("select count(*) from {table} where run_id = $1"));
    sqlx::query_scalar(sql).bind(id.0).fetch_one(&app.pool).await.unwrap()
}

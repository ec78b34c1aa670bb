//! The same all at once: several runners, requests, cancellations and two servers that look for lost runners, each at
//! its own pace.

use std::collections::BTreeMap;
use std::sync::Mutex;
use std::sync::atomic::{AtomicU64, Ordering};

use plimsoll_domain::ids::RunId;
use plimsoll_domain::job::{Assignment, Ending, Priority, Stage};
use plimsoll_server::tasks::{ingest, jobs, leases};
use uuid::Uuid;

use super::actor::end_lease;
use super::model::{PROJECTS, Random, beat_of, claim_of, ended, everybody, request, short_report};
use super::sound;
use crate::app::App;

const RUNNERS: u64 = 4;
const TURNS: usize = 60;

struct Shared {
    apps: [App; 2],
    asked: Mutex<Vec<RunId>>,
    /// Of each lease of a run, in order of its attempts, what its heartbeats carry.
    leases: Mutex<BTreeMap<RunId, BTreeMap<Uuid, u64>>>,
    tags: AtomicU64,
}

impl Shared {
    fn app(&self, random: &mut Random) -> &App {
        &self.apps[random.below(2)]
    }

    fn any(&self, random: &mut Random) -> Option<RunId> {
        let asked = self.asked.lock().unwrap();
        (!asked.is_empty()).then(|| asked[random.below(asked.len())])
    }

    async fn asks(&self, mut random: Random) {
        for turn in 0..2 * TURNS {
            let key = random.below(6).checked_sub(3).map(|key| format!("pull {key}"));
            let priority = [Priority::Normal, Priority::PullRequest][random.below(2)];
            let state = &self.app(&mut random).state;
            let asked = request(PROJECTS[turn % 2], priority, key);
            let (run, _) = jobs::create(state, &everybody(), asked).await.unwrap();
            self.asked.lock().unwrap().push(run.run_id);
            if random.below(8) == 0
                && let Some(id) = self.any(&mut random)
            {
                // Refused when it is over.
                let _ = jobs::cancel(state, &everybody(), id, "not needed").await;
            }
        }
    }

    async fn runs(&self, mut random: Random) {
        let id = Uuid::now_v7();
        let mut lost: Vec<Assignment> = Vec::new();
        for _ in 0..TURNS {
            let state = self.app(&mut random).state.clone();
            let Some(job) = jobs::claim(&state, &everybody(), &claim_of(id, &PROJECTS)).await.unwrap() else {
                tokio::task::yield_now().await;
                continue;
            };
            let tag = self.tags.fetch_add(1, Ordering::Relaxed);
            self.leases.lock().unwrap().entry(job.run_id).or_default().insert(job.lease.0, tag);
            self.carries_out(&mut random, &job, tag).await;
            // Something of long ago is still on its way: a heartbeat, or a whole report.
            if let Some(old) = lost.pop() {
                let tag = self.leases.lock().unwrap()[&old.run_id][&old.lease.0];
                let _ = jobs::heartbeat(&state, old.run_id, &beat_of(&old, tag, Stage::Smoke)).await;
                if random.below(3) == 0 {
                    self.uploads(&mut random, &old).await;
                }
            }
            if random.below(3) == 0 {
                lost.push(job);
            }
        }
    }

    /// Whatever a server refuses, since the lease is over, ends it.
    async fn carries_out(&self, random: &mut Random, job: &Assignment, tag: u64) {
        for stage in [Stage::Checkout, Stage::Staircase, Stage::Stability] {
            let app = self.app(random);
            if jobs::heartbeat(&app.state, job.run_id, &beat_of(job, tag, stage)).await.is_err() {
                return;
            }
            match random.below(12) {
                0 => return,
                1 => return end_lease(app, job.run_id).await,
                at @ 2..=4 => {
                    let how = [Ending::Failed, Ending::Released, Ending::Cancelled][at - 2];
                    let _ = jobs::end(&app.state, job.run_id, &ended(job, how)).await;
                    return;
                }
                _ => {}
            }
        }
        self.uploads(random, job).await;
    }

    /// The same report on both servers at once.
    async fn uploads(&self, random: &mut Random, job: &Assignment) {
        let report = short_report(job.run_id, job.project.as_str(), 1 + random.below(9) as u64);
        let [one, two] = &self.apps;
        let (one, two) = tokio::join!(ingest::ingest(&one.state, report.clone()), ingest::ingest(&two.state, report));
        match (one, two) {
            (Ok(one), Ok(two)) => assert!(!(one.created && two.created)),
            // Another attempt's report came first.
            (one, two) => assert!(one.is_err() && two.is_err()),
        }
    }

    async fn looks_after(&self, app: &App, over: &tokio::sync::watch::Sender<bool>) {
        while !*over.borrow() {
            leases::run_once(&app.state).await.unwrap();
            // At no time has a runner two jobs.
            let twice = "select count(*) from (select runner from jobs where lease is not null
                         group by runner having count(*) > 1) twice";
            let twice: i64 = sqlx::query_scalar(twice).fetch_one(&app.pool).await.unwrap();
            assert_eq!(twice, 0);
            tokio::task::yield_now().await;
        }
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn nothing_is_lost_or_doubled_when_all_happens_at_once() {
    let one = App::new().await;
    let two = one.beside().await;
    let shared =
        Shared { apps: [one, two], asked: Mutex::default(), leases: Mutex::default(), tags: AtomicU64::new(1) };
    let over = tokio::sync::watch::Sender::new(false);
    let work = async {
        let runners = (1..=RUNNERS).map(|seed| shared.runs(Random(seed)));
        tokio::join!(shared.asks(Random(99)), futures_util::future::join_all(runners));
        over.send_replace(true);
    };
    let [one, two] = &shared.apps;
    tokio::join!(work, shared.looks_after(one, &over), shared.looks_after(two, &over));

    // Nothing more happens: what is left ends.
    for _ in 0..4 {
        let late =
            "update jobs set lease_expires_at = lease_expires_at - interval '1 day', take_by = now() - interval '1 s'";
        sqlx::query(late).execute(&one.pool).await.unwrap();
        leases::run_once(&two.state).await.unwrap();
    }
    let leases = in_order(&shared.leases.lock().unwrap());
    let seen = sound::check(one, &leases).await;
    let not_over = ["queued", "leased", "running"].iter().filter_map(|state| seen.get(state)).count();
    assert_eq!(not_over, 0, "{seen:?}");
    for state in ["done", "measured", "again"] {
        assert!(seen.get(state).is_some_and(|often| *often > 0), "nothing {state}: {seen:?}");
    }
}

/// The tags of each run's leases as they followed each other: a lease's id begins with its time.
fn in_order(leases: &BTreeMap<RunId, BTreeMap<Uuid, u64>>) -> BTreeMap<RunId, Vec<u64>> {
    leases.iter().map(|(id, tags)| (*id, tags.values().copied().collect())).collect()
}

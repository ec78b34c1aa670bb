//! Random requests, claims, heartbeats, ends, reports, cancellations and lost runners over two servers, each compared
//! with what a small model says.

use std::collections::BTreeMap;

use plimsoll_domain::ids::RunId;
use plimsoll_domain::job::{
    Assignment, Claim, Ended, Ending, Heartbeat, Priority, Progress, RunRequest, RunnerFacts, Stage, State, Wanted,
};
use plimsoll_domain::synthetic::Synthetic;
use plimsoll_server::access::{Caller, Grant, Scope};
use plimsoll_server::state::AppState;
use plimsoll_server::tasks::{Error, ingest, jobs, leases};
use uuid::Uuid;

use super::actor::{end_lease, report_of};
use super::sound;
use crate::app::{App, release};

pub(super) const PROJECTS: [&str; 2] = ["sentiment", "speech"];
const PRIORITIES: [Priority; 4] = [Priority::Backfill, Priority::Normal, Priority::Release, Priority::PullRequest];
const MAX_ATTEMPTS: u32 = 3;
const MAX_UNDELIVERED: u32 = 10;

/// SplitMix64: the same numbers for the same seed.
pub(super) struct Random(pub(super) u64);

impl Random {
    pub(super) fn below(&mut self, n: usize) -> usize {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut z = self.0;
        z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        usize::try_from((z ^ (z >> 31)) % n as u64).unwrap()
    }
}

pub(super) fn everybody() -> Caller {
    Caller { grants: vec![Grant { scope: Scope::Admin, project: None }], ..Caller::anonymous() }
}

pub(super) fn request(project: &str, priority: Priority, key: Option<String>) -> RunRequest {
    RunRequest {
        project: project.parse().unwrap(),
        revision: Wanted { tag: Some("v1.0.0".to_owned()), ..Wanted::default() },
        plan: None,
        plan_commit: None,
        profile: None,
        labels: BTreeMap::new(),
        priority: Some(priority),
        supersedes: key,
        run_id: None,
    }
}

pub(super) fn claim_of(runner: Uuid, projects: &[&str]) -> Claim {
    let facts = RunnerFacts {
        id: runner,
        name: format!("runner {runner}"),
        version: "0.1.0".to_owned(),
        labels: BTreeMap::new(),
        projects: projects.iter().map(|slug| slug.parse().unwrap()).collect(),
    };
    Claim { runner: facts, wait_s: 0 }
}

pub(super) fn beat_of(job: &Assignment, tag: u64, stage: Stage) -> Heartbeat {
    let progress = Progress::at(tag, stage);
    Heartbeat { lease: job.lease, progress: vec![progress], draining: false }
}

pub(super) fn ended(job: &Assignment, how: Ending) -> Ended {
    Ended { lease: job.lease, how, reason: "as it happens".to_owned() }
}

/// The least that is a report.
pub(super) fn short_report(id: RunId, project: &str, seed: u64) -> ingest::Received {
    let of = Synthetic {
        project: project.to_owned(),
        seed,
        staircase: vec![5, 10],
        step_s: 5,
        stability_s: 5,
        ..release("v1.0.0", 0)
    };
    report_of(id, &of).into()
}

struct Job {
    id: RunId,
    project: usize,
    priority: Priority,
    key: Option<usize>,
    state: State,
    attempt: u32,
    heard: bool,
    undelivered: u32,
    cancel: bool,
    holder: Option<usize>,
    measured: bool,
}

impl Job {
    fn end_lease(&mut self, to: State) {
        (self.state, self.holder) = (to, None);
    }

    fn lose(&mut self) {
        self.end_lease(match () {
            () if self.cancel => State::Cancelled,
            () if self.attempt < MAX_ATTEMPTS => State::Queued,
            () => State::Expired,
        });
    }

    /// Its runner asks for another.
    fn give_back(&mut self) {
        if self.heard || self.cancel || self.undelivered == MAX_UNDELIVERED {
            return self.lose();
        }
        self.attempt -= 1;
        self.undelivered += 1;
        self.end_lease(State::Queued);
    }

    fn stop(&mut self) {
        match self.state {
            State::Queued => self.state = State::Cancelled,
            State::Leased | State::Running => self.cancel = true,
            _ => {}
        }
    }
}

struct World {
    apps: [App; 2],
    random: Random,
    steps: u64,
    jobs: Vec<Job>,
    /// The order in which projects were served last.
    served: [u64; 2],
    runners: [(Uuid, &'static [&'static str]); 3],
    /// What each runner believes to have.
    held: [Option<Assignment>; 3],
    leases: BTreeMap<RunId, Vec<u64>>,
}

impl World {
    async fn new(seed: u64) -> Self {
        let one = App::new().await;
        let two = one.beside().await;
        let id = Uuid::now_v7;
        Self {
            apps: [one, two],
            random: Random(seed),
            steps: 0,
            jobs: Vec::new(),
            served: [0; 2],
            runners: [(id(), &PROJECTS), (id(), &PROJECTS), (id(), &PROJECTS[..1])],
            held: [None, None, None],
            leases: BTreeMap::new(),
        }
    }

    fn state(&mut self) -> AppState {
        self.steps += 1;
        self.apps[self.random.below(2)].state.clone()
    }

    async fn step(&mut self) {
        let state = self.state();
        let runner = self.random.below(3);
        let any = (!self.jobs.is_empty()).then(|| self.random.below(self.jobs.len()));
        match (self.random.below(20), any) {
            (0..=4, _) | (_, None) => self.ask(&state).await,
            (5..=9, _) => self.claim(&state, runner).await,
            (10..=12, _) => self.beat(&state, runner).await,
            (13..=14, _) => self.end(&state, runner).await,
            (15, Some(job)) => self.lose(&state, job).await,
            (16, Some(job)) => self.expire(&state, job).await,
            (17, Some(job)) => self.cancel(&state, job).await,
            (_, Some(job)) => self.report(&state, job).await,
        }
        let rows: Vec<(Uuid, String, i32, i32, Option<String>)> =
            sqlx::query_as("select run_id, state, attempt, undelivered, cancel from jobs")
                .fetch_all(&self.apps[0].pool)
                .await
                .unwrap();
        assert_eq!(rows.len(), self.jobs.len());
        for (id, state, attempt, undelivered, cancel) in rows {
            let job = self.jobs.iter().find(|job| job.id.0 == id).unwrap();
            let counted = [job.attempt, job.undelivered].map(|n| i32::try_from(n).unwrap());
            let model = (job.state.name(), counted, job.cancel);
            assert_eq!((state.as_str(), [attempt, undelivered], cancel.is_some()), model, "after step {}", self.steps);
        }
    }

    async fn ask(&mut self, state: &AppState) {
        let project = self.random.below(2);
        let priority = PRIORITIES[self.random.below(4)];
        let key = self.random.below(4).checked_sub(1);
        let asked = request(PROJECTS[project], priority, key.map(|key| format!("pull {key}")));
        let (run, created) = jobs::create(state, &everybody(), asked).await.unwrap();
        assert!(created);
        self.jobs
            .iter_mut()
            .filter(|job| key.is_some() && (job.project, job.key) == (project, key))
            .for_each(Job::stop);
        let id = run.run_id;
        self.jobs.push(Job {
            id,
            project,
            priority,
            key,
            state: State::Queued,
            attempt: 0,
            heard: false,
            undelivered: 0,
            cancel: false,
            holder: None,
            measured: false,
        });
    }

    async fn claim(&mut self, state: &AppState, runner: usize) {
        let (id, projects) = self.runners[runner];
        self.jobs.iter_mut().filter(|job| job.holder == Some(runner)).for_each(Job::give_back);
        let served = self.served;
        let waiting = self
            .jobs
            .iter_mut()
            .enumerate()
            .filter(|(_, job)| job.state == State::Queued && projects.contains(&PROJECTS[job.project]));
        let next = waiting.min_by_key(|(at, job)| (std::cmp::Reverse(job.priority), served[job.project], *at));
        self.apps[0].settled().await;
        let taken = jobs::claim(state, &everybody(), &claim_of(id, projects)).await.unwrap();
        assert_eq!(taken.as_ref().map(|job| job.run_id), next.as_ref().map(|(_, job)| job.id), "step {}", self.steps);
        if let Some((_, job)) = next {
            (job.state, job.holder, job.heard) = (State::Leased, Some(runner), false);
            job.attempt += 1;
            self.served[job.project] = self.steps;
            self.leases.entry(job.id).or_default().push(self.steps);
            assert_eq!(taken.as_ref().unwrap().attempt, job.attempt);
        }
        self.held[runner] = taken;
    }

    /// The job that a runner believes to have, if it has it.
    fn of(&mut self, runner: usize) -> (Option<Assignment>, Option<&mut Job>) {
        let held = self.held[runner].clone();
        (held, self.jobs.iter_mut().find(|job| job.holder == Some(runner)))
    }

    async fn beat(&mut self, state: &AppState, runner: usize) {
        let stage = [Stage::Checkout, Stage::Staircase][self.random.below(2)];
        let tag = self.held[runner].as_ref().map_or(0, |held| *self.leases[&held.run_id].last().unwrap());
        let (Some(held), job) = self.of(runner) else { return };
        let answer = jobs::heartbeat(state, held.run_id, &beat_of(&held, tag, stage)).await;
        match job {
            None => assert!(matches!(answer, Err(Error::Conflict(_)))),
            Some(job) => {
                assert_eq!(answer.unwrap().cancel.is_some(), job.cancel);
                job.heard = true;
                if stage.is_measuring() {
                    job.state = State::Running;
                }
            }
        }
    }

    async fn end(&mut self, state: &AppState, runner: usize) {
        let how = [Ending::Failed, Ending::Released, Ending::Cancelled][self.random.below(3)];
        let (Some(held), job) = self.of(runner) else { return };
        let answer = jobs::end(state, held.run_id, &ended(&held, how)).await;
        match job {
            None => assert!(matches!(answer, Err(Error::Conflict(_)))),
            Some(job) => {
                answer.unwrap();
                let released = how == Ending::Released && !job.cancel;
                job.attempt -= u32::from(released);
                job.end_lease(match how {
                    Ending::Failed => State::Failed,
                    _ if released => State::Queued,
                    _ => State::Cancelled,
                });
            }
        }
    }

    async fn lose(&mut self, state: &AppState, job: usize) {
        let job = &mut self.jobs[job];
        end_lease(&self.apps[0], job.id).await;
        let lost = job.holder.is_some();
        if lost {
            job.lose();
        }
        assert_eq!(leases::run_once(state).await.unwrap(), usize::from(lost));
    }

    async fn expire(&mut self, state: &AppState, job: usize) {
        let job = &mut self.jobs[job];
        let late = "update jobs set take_by = now() - interval '1 second' where run_id = $1 and state = 'queued'";
        sqlx::query(late).bind(job.id.0).execute(&self.apps[0].pool).await.unwrap();
        let waits = job.state == State::Queued;
        if waits {
            job.state = State::Expired;
        }
        assert_eq!(leases::run_once(state).await.unwrap(), usize::from(waits));
    }

    async fn cancel(&mut self, state: &AppState, job: usize) {
        let job = &mut self.jobs[job];
        let answer = jobs::cancel(state, &everybody(), job.id, "not needed").await;
        let over = job.state.is_final() && job.state != State::Cancelled;
        assert_eq!(answer.is_err(), over);
        job.stop();
    }

    async fn report(&mut self, state: &AppState, job: usize) {
        let seed = self.steps;
        let job = &mut self.jobs[job];
        if job.measured {
            return;
        }
        let report = short_report(job.id, PROJECTS[job.project], seed);
        assert!(ingest::ingest(state, report.clone()).await.unwrap().created);
        assert!(!ingest::ingest(state, report).await.unwrap().created);
        job.measured = true;
        if job.state.may_become(State::Done) {
            job.end_lease(State::Done);
        }
    }
}

#[tokio::test]
async fn whatever_happens_jobs_go_as_the_model_says() {
    let mut seen = sound::Seen::new();
    for seed in 0..3 {
        let mut world = World::new(seed).await;
        for _ in 0..250 {
            world.step().await;
        }
        for (state, often) in sound::check(&world.apps[1], &world.leases).await {
            *seen.entry(state).or_default() += often;
        }
    }
    for state in ["done", "failed", "cancelled", "expired", "measured", "again"] {
        assert!(seen.get(state).is_some_and(|often| *often > 0), "nothing {state}: {seen:?}");
    }
}

//! `plimsoll agent`: takes jobs from the server, one after the other, for months.
//!
//! What a job says is never run: it names a revision and a plan. What is run stands in `runner.toml`. Whatever happens
//! to a run, its processes end with it; whatever happens to the server or the network, a report that was measured gets
//! there.

mod api;
pub mod check;
mod checkout;
mod clean;
pub mod config;
mod facts;
mod folder;
mod git;
mod history;
mod job;
mod lock;
mod log;
mod ports;
mod pulse;
mod ready;
mod record;
mod recover;
mod releases;
mod sending;
mod shell;
mod signals;
mod state;
mod stopper;
pub(crate) mod supervise;
pub(crate) mod supervisor;
mod token;
mod tree;

use std::sync::Mutex;
use std::time::{Duration, Instant};

use plimsoll_domain::ids::ProjectSlug;
use plimsoll_domain::job::{Assignment, Claim, Ended, Ending, RunnerFacts};
use tokio::sync::watch;
use uuid::Uuid;

use crate::exit::Failure;
use crate::outbox::Outbox;
use crate::spool;
use crate::telemetry::gpu::Gpus;
use crate::upload::{Pauses, Server, ServerError};
use config::{Config, Recipe};
use job::{Job, Outcome};
use lock::{Locks, StateLock};
use log::say;
use releases::Releases;
use sending::Held;
use signals::Asked;
use state::State;
use stopper::{Stop, turned};
pub use token::server;

/// An agent at work.
#[derive(Debug)]
struct Agent {
    config: Config,
    server: Server,
    state: State,
    outbox: Outbox,
    id: Uuid,
    gpus: Option<Gpus>,
    /// Why reports wait, as said last.
    told: Mutex<String>,
    _locks: (Locks, StateLock),
}

/// What an agent did until it ended.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Done {
    pub jobs: u64,
    /// How the last one went.
    pub last: Option<String>,
}

/// How long the server is asked to wait for a job.
const WAIT_S: u32 = 30;
/// Between two claims.
const SHORTEST: Duration = Duration::from_secs(1);
/// Between two looks at what keeps the agent from taking a job.
const LOOK: Duration = Duration::from_secs(5);

/// Works until it is asked to end, or with `once` until it has had a job.
///
/// # Errors
/// It cannot begin: the state's folder, another agent that holds it or the GPU, the signals.
pub async fn run(config: Config, server: Server, once: bool, json: bool) -> Result<Done, Failure> {
    if json {
        log::as_json();
    }
    let asked = signals::listen().map_err(|error| Failure::internal(format!("no signals: {error}")))?;
    let state = State::open(&config.state)?;
    let gpus = Gpus::open(&config.gpus)
        .map_err(|error| Failure::usage(error.to_string()).hint("see `gpus` in runner.toml"))?;
    // However each agent names a GPU, it is the same lock.
    let names = clean::names(&config.gpus, gpus.as_ref());
    let holder = format!("agent {:?}", config.name);
    let locks = Locks::take(config.locks.as_deref(), &names, &holder)?;
    // Before anything in it is read: the run of an agent that lives would be taken for one that was left behind.
    let own = StateLock::take(state.folder(), &holder)?;
    // A run's orphans fall to this process when its supervisor is gone.
    let _ = rustix::process::set_child_subreaper(Some(rustix::process::getpid()));
    let agent = Agent {
        outbox: Outbox::open(&state.outbox())?.telling(|wait| {
            say(None, &format!("reports wait to be sent: {}", wait.why));
        }),
        id: state.id()?,
        config,
        server,
        state,
        gpus,
        told: Mutex::default(),
        _locks: (locks, own),
    };
    agent.recover(&mut asked.drain.clone()).await;
    agent.introduce(&mut asked.drain.clone()).await;
    Ok(agent.work(asked, once).await)
}

/// Reads an environment variable.
fn environment(name: &str) -> Option<String> {
    std::env::var(name).ok()
}

impl Agent {
    /// Says for whom it works, or what the server says of its token: while a port is taken, no job would be asked for.
    async fn introduce(&self, drain: &mut watch::Receiver<bool>) {
        let heard = tokio::select! {
            () = turned(drain) => return,
            heard = self.server.may_claim() => heard,
        };
        if let Err(error @ ServerError::Refused { .. }) = heard {
            return say(None, &check::text(token::failure(&self.config, &self.server, error)));
        }
        say(None, &format!("agent {:?} works for {}", self.config.name, self.server.address()));
        if let Err(error) = heard {
            say(None, &format!("the server does not answer yet: {}", error.why()));
        }
    }

    async fn work(&self, mut asked: Asked, once: bool) -> Done {
        let mut done = Done { jobs: 0, last: None };
        let mut pauses = Pauses::forever();
        let mut ours = Pauses::forever();
        let mut releases = Releases::default();
        let mut told = String::new();
        let mut held = Held::new();
        while !*asked.drain.borrow() {
            // What fell to this process after its run was over, or could not be fetched yet when it was.
            let _ = tokio::task::spawn_blocking(|| tree::reap_orphans(None)).await;
            self.send_first(&mut held, &asked.drain).await;
            let projects = match self.able(&releases) {
                Ok(projects) => projects,
                Err(why) => {
                    tell_once(&mut told, &why);
                    self.pause(LOOK, &mut asked.drain).await;
                    continue;
                }
            };
            let claim = Claim { runner: self.facts(projects), wait_s: WAIT_S };
            let begun = Instant::now();
            let claimed = tokio::select! {
                () = turned(&mut asked.drain) => {
                    self.give_back(&mut asked.now).await;
                    break;
                }
                claimed = self.server.claim(&claim) => claimed,
            };
            let assignment = match claimed {
                Ok(assignment) => {
                    pauses.restart();
                    told.clear();
                    assignment
                }
                Err(error) => {
                    tell_once(&mut told, &format!("no job can be asked for: {}", error.why()));
                    let pause = pauses.next(None).unwrap_or(LOOK);
                    self.pause(pause, &mut asked.drain).await;
                    continue;
                }
            };
            let Some(assignment) = assignment else {
                // A server that does not wait is not asked in a hurry.
                self.pause(SHORTEST.saturating_sub(begun.elapsed()), &mut asked.drain).await;
                continue;
            };
            let (project, run) = (assignment.project.clone(), assignment.run_id);
            let outcome = self.take(assignment, releases.of(&project, run), &asked).await;
            held = Held::new();
            done.jobs += 1;
            done.last = Some(outcome.how);
            self.wait_until_clean(outcome.dirt, &mut asked.drain).await;
            if once {
                break;
            }
            if outcome.gave_back {
                releases.add(&project, run);
            } else {
                releases.forget(&project);
            }
            if outcome.is_nothing {
                let pause = ours.next(None).unwrap_or(LOOK);
                self.pause(pause.max(Duration::from_secs(5)), &mut asked.drain).await;
            } else {
                ours.restart();
            }
        }
        self.last_try(&asked).await;
        done
    }

    /// Carries out a job, or says why not.
    async fn take(&self, assignment: Assignment, given_back: u32, asked: &Asked) -> Outcome {
        let run = assignment.run_id;
        let recipe = self.config.projects.iter().find(|recipe| recipe.project == assignment.project);
        let refused = match (api::check(&assignment), recipe) {
            (Err(why), _) => format!("the job is not one that this runner carries out: {why}"),
            (Ok(()), None) => format!("this runner has no [project.{}] in its runner.toml", assignment.project),
            (Ok(()), Some(recipe)) => {
                say(Some(run), &format!("{}, attempt {}", assignment.project, assignment.attempt));
                return self.carry_out(Job::new(self, recipe, assignment, given_back), asked).await;
            }
        };
        say(Some(run), &refused);
        let reason = refused.chars().filter(|c| !c.is_control()).take(1_000).collect();
        let ended = Ended { lease: assignment.lease, how: Ending::Failed, reason };
        if let Err(error) = self.server.end(run, &ended).await {
            say(Some(run), &format!("the server did not hear of it: {}", error.why()));
        }
        Outcome { dirt: None, is_nothing: true, gave_back: false, how: refused }
    }

    async fn carry_out(&self, job: Job<'_>, asked: &Asked) -> Outcome {
        let (mut drain, mut now) = (asked.drain.clone(), asked.now.clone());
        let too_late = async {
            turned(&mut drain).await;
            job.drain();
            tokio::time::sleep(self.config.drain_timeout).await;
        };
        let running = job.run();
        tokio::pin!(running);
        tokio::select! {
            outcome = &mut running => return outcome,
            () = turned(&mut now) => job.stopper.stop(Stop::Release("the runner was told to end at once".to_owned())),
            () = too_late => job.stopper.stop(Stop::Release("the runner had to end before the run did".to_owned())),
        }
        running.await
    }

    /// The answer to the last request for a job may be on its way still: a request for none gives back what came of it.
    async fn give_back(&self, now: &mut watch::Receiver<bool>) {
        let none = Claim { runner: self.facts(Vec::new()), wait_s: 0 };
        let heard = tokio::select! {
            () = turned(now) => return,
            heard = self.server.claim(&none) => heard,
        };
        if let Err(error) = heard {
            say(None, &format!("the server did not hear that no job is wanted any more: {}", error.why()));
        }
    }

    /// The projects whose jobs can be carried out now. One whose report waits is not among them: the server, which has no
    /// report, would have the same job measured again.
    fn able(&self, releases: &Releases) -> Result<Vec<ProjectSlug>, String> {
        let failed = |failure: Failure| format!("no job is taken: {}", failure.message);
        spool::space(self.state.folder()).map_err(failed)?;
        let waiting = self.outbox.projects().map_err(failed)?;
        let free = |recipe: &&Recipe| ports::taken(&recipe.ports).is_empty();
        let sent = |recipe: &&Recipe| !waiting.contains(&recipe.project);
        let free: Vec<&Recipe> = self.config.projects.iter().filter(free).collect();
        let rested = |recipe: &&Recipe| !releases.rests(&recipe.project);
        if !free.is_empty() && !free.iter().any(sent) {
            return Err("no job is taken: reports of all projects that could be measured wait to be sent".to_owned());
        }
        let able = free.into_iter().filter(sent).filter(rested);
        let able: Vec<ProjectSlug> = able.map(|recipe| recipe.project.clone()).collect();
        if able.is_empty() {
            let taken: Vec<u16> = self.config.projects.iter().flat_map(|recipe| ports::taken(&recipe.ports)).collect();
            if taken.is_empty() {
                return Err("no job is taken for a while: the last one went back to the queue".to_owned());
            }
            return Err(format!("no job is taken: {} taken by another program", ports::named(&taken)));
        }
        Ok(able)
    }

    fn facts(&self, projects: Vec<ProjectSlug>) -> RunnerFacts {
        RunnerFacts {
            id: self.id,
            name: self.config.name.clone(),
            version: env!("CARGO_PKG_VERSION").to_owned(),
            labels: self.config.labels.clone(),
            projects,
        }
    }

    /// Another job would be measured beside what this one left.
    async fn wait_until_clean(&self, dirt: Option<clean::Before>, drain: &mut watch::Receiver<bool>) {
        self.end_leftovers(drain).await;
        let Some(before) = dirt else { return };
        let mut told = String::new();
        while let Err(why) = before.compare(self.gpus.as_ref()) {
            if *drain.borrow() {
                return;
            }
            tell_once(&mut told, &format!("no job is taken: {why} after the last run"));
            self.pause(LOOK, drain).await;
        }
    }

    async fn pause(&self, time: Duration, drain: &mut watch::Receiver<bool>) {
        let _ = tokio::time::timeout(time, turned(drain)).await;
    }
}

/// A state that lasts is said once; without a text it is over.
fn tell_once(told: &mut String, text: &str) {
    if told != text {
        if !text.is_empty() {
            say(None, text);
        }
        text.clone_into(told);
    }
}

//! One job, from its assignment to its end: checkout, start, measurement, clean-up, report.

mod measure;

use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use plimsoll_domain::finding::Finding;
use plimsoll_domain::job::{Assignment, Ended, Ending, Stage};
use plimsoll_domain::report::{Report, Status};

use super::Agent;
use super::clean::Before;
use super::config::Recipe;
use super::facts::Facts;
use super::folder;
use super::log::say;
use super::pulse::{self, Feed};
use super::record;
use super::releases;
use super::shell::Surroundings;
use super::state::{self, Running};
use super::stopper::{Stop, Stopper};
use super::supervisor::Supervisor;
use crate::spool;
use crate::upload::ServerError;

/// A job in progress.
#[derive(Debug)]
pub(super) struct Job<'a> {
    pub(super) agent: &'a Agent,
    pub(super) recipe: &'a Recipe,
    pub(super) assignment: Assignment,
    pub(super) stopper: Arc<Stopper>,
    feed: Feed,
    /// How often this agent gave the job back so far.
    given_back: u32,
}

/// Why there is no report.
#[derive(Debug)]
enum NoReport {
    /// The checkout, the service or the plan is at fault: it would end the same way again.
    Fault(String),
    /// The host or the agent is: another runner may do it, or this one later.
    Ours(String),
    /// The stopper says why.
    Stopped,
}

/// What became of a job.
#[derive(Debug)]
pub(super) struct Outcome {
    /// The host is not as it was.
    pub(super) dirt: Option<Before>,
    /// It could not even be begun: the agent should wait before it takes another job.
    pub(super) is_nothing: bool,
    /// Something here was in its way, and it is in the queue again.
    pub(super) gave_back: bool,
    /// In a few words.
    pub(super) how: String,
}

impl<'a> Job<'a> {
    pub(super) fn new(agent: &'a Agent, recipe: &'a Recipe, assignment: Assignment, given_back: u32) -> Self {
        Self { agent, recipe, assignment, stopper: Arc::new(Stopper::new()), feed: Feed::new(), given_back }
    }

    /// It is the last one.
    pub(super) fn drain(&self) {
        self.feed.drain();
    }

    pub(super) async fn run(&self) -> Outcome {
        let (server, assignment) = (self.agent.server.clone(), self.assignment.clone());
        let heart = tokio::spawn(pulse::beat(server, assignment, self.feed.clone(), self.stopper.clone()));
        let heart = heart.abort_handle();
        let outcome = self.carry_out().await;
        heart.abort();
        outcome
    }

    async fn carry_out(&self) -> Outcome {
        let run = self.assignment.run_id;
        let before = Before::of(&self.recipe.ports, self.agent.gpus.as_ref());
        let mut supervisor = match self.guard().await {
            Ok(supervisor) => supervisor,
            Err(why) => return self.without_report(NoReport::Ours(why), None).await,
        };
        let measured = self.measured(&mut supervisor).await;
        // Before anything else can go wrong.
        let kept = match measured {
            Ok(report) => self.keep(report),
            Err(why) => Err(why),
        };
        self.feed.stage(Stage::CleanUp);
        let dirt = self.clean_up(supervisor, &before).await;
        if let Some(why) = &dirt {
            say(Some(run), &format!("after the run: {why}"));
        }
        let mut outcome = match kept {
            Ok(report) => self.with_report(report, dirt.as_deref()).await,
            Err(why) => self.without_report(why, dirt.as_deref()).await,
        };
        outcome.dirt = dirt.map(|_| before);
        outcome
    }

    /// From now on nothing of the run outlives the agent.
    async fn guard(&self) -> Result<Supervisor, String> {
        let supervisor = Supervisor::begin(self.assignment.run_id, self.agent.config.grace)
            .await
            .map_err(|error| format!("the supervisor could not be started: {error}"))?;
        self.write_running(&supervisor, None)?;
        Ok(supervisor)
    }

    fn write_running(&self, supervisor: &Supervisor, service: Option<super::tree::Process>) -> Result<(), String> {
        let running = Running {
            run: self.assignment.run_id,
            project: self.assignment.project.clone(),
            boot: state::boot(),
            supervisor: supervisor.process(),
            service,
        };
        self.agent.state.set_running(&running).map_err(|failure| failure.message)
    }

    /// Puts the report where it waits to be sent. One that was stopped says nothing about the service.
    fn keep(&self, report: Report) -> Result<Report, NoReport> {
        if report.status == Status::Interrupted {
            return Err(NoReport::Stopped);
        }
        match self.agent.outbox.keep(&report) {
            Ok(_) => {
                self.agent.state.forget_measured(report.run_id);
                Ok(report)
            }
            Err(failure) => {
                // A disk that filled up meanwhile: what took its time to measure is not thrown away.
                if let Ok(saved) = spool::save(&self.agent.state.measured(report.run_id), &report) {
                    say(Some(report.run_id), &format!("its report is at {}: upload it", saved.path.display()));
                }
                Err(NoReport::Ours(format!("the report could not be kept: {}", failure.message)))
            }
        }
    }

    /// Ends the service, whatever happened, and takes away what the run made. Says what is not as it was.
    async fn clean_up(&self, mut supervisor: Supervisor, before: &Before) -> Option<String> {
        let around = self.around(self.facts(None));
        let run = self.assignment.run_id;
        let commands = [("stop", &self.recipe.stop), ("clean_up", &self.recipe.clean_up)];
        let mut left = 0;
        for (name, command) in commands {
            if let Some(command) = command
                && let Err(ill) = around.line(&command.line, command.timeout).await
            {
                say(Some(run), &format!("`{name}` {ill}"));
            }
            // After `stop` what is left of the service, after `clean_up` what that left.
            left = supervisor.kill().await;
        }
        left = left.min(supervisor.end().await);
        self.remove_checkouts().await;
        self.agent.state.prune();
        if left > 0 {
            return Some(format!("{left} processes of the run would not end"));
        }
        self.agent.state.clear_running();
        before.compare_patiently(self.agent.gpus.as_ref()).await.err()
    }

    async fn remove_checkouts(&self) {
        let (run, state) = (self.assignment.run_id, &self.agent.state);
        for folder in [state.checkout(run), state.plan_checkout(run)] {
            state::remove_folder(folder).await;
        }
        if let Some(repository) = self.repository() {
            repository.forget().await;
        }
    }

    async fn with_report(&self, mut report: Report, dirt: Option<&str>) -> Outcome {
        let run = self.assignment.run_id;
        if let Some(dirt) = dirt {
            let message = format!("The host was not free after the run: {dirt}.");
            report.findings.push(Finding::notice("host_not_free", message));
            if let Err(failure) = self.agent.outbox.keep(&report) {
                say(Some(run), &failure.message);
            }
        }
        self.feed.stage(Stage::Upload);
        say(Some(run), "measured; the report is kept and is being sent");
        // What cannot be sent by then waits in the outbox, and is sent before the next job is taken.
        let sent = self.agent.send_reports(self.stopper.flag());
        let how = match tokio::time::timeout(UPLOAD, sent).await {
            Ok(0) => "its report is sent",
            _ => "its report waits to be sent",
        };
        say(Some(run), how);
        Outcome { dirt: None, is_nothing: false, gave_back: false, how: how.to_owned() }
    }

    async fn without_report(&self, why: NoReport, dirt: Option<&str>) -> Outcome {
        let run = self.assignment.run_id;
        let given_up = self.given_back + 1 >= releases::MOST;
        let (how, mut reason, gave_back) = match (why, self.stopper.why()) {
            (NoReport::Stopped, Some(Stop::Cancelled(reason))) => (Ending::Cancelled, reason.clone(), false),
            (NoReport::Stopped, Some(Stop::Release(reason))) => (Ending::Released, reason.clone(), false),
            (NoReport::Stopped, Some(Stop::TooLong(reason))) => (Ending::Failed, reason.clone(), false),
            (_, Some(Stop::LeaseLost(reason))) => {
                let how = format!("given up: {reason}");
                say(Some(run), &how);
                return Outcome { dirt: None, is_nothing: false, gave_back: false, how };
            }
            (NoReport::Fault(reason), _) => (Ending::Failed, reason, false),
            (NoReport::Ours(reason), _) if given_up => {
                (Ending::Failed, format!("{reason} (given up after {} tries on this runner)", releases::MOST), false)
            }
            (NoReport::Ours(reason), _) => (Ending::Released, reason, true),
            (NoReport::Stopped, None) => (Ending::Released, "the run stopped".to_owned(), true),
        };
        say(Some(run), &format!("ended without a report: {reason}"));
        let partial = self.agent.state.measured(run).with_extension("partial.json");
        if partial.exists() {
            say(Some(run), &format!("what was measured until then: {}", partial.display()));
        }
        if how == Ending::Failed {
            say(Some(run), &format!("the end of {}:", self.log().display()));
            record::tail(&self.log()).iter().for_each(|line| say(Some(run), &format!("  | {line}")));
        }
        if let Some(dirt) = dirt {
            reason = format!("{reason} (afterwards: {dirt})");
        }
        let reason: String =
            self.without_places(reason).chars().filter(|c| !c.is_control()).take(LONGEST_REASON).collect();
        self.say_ended(Ended { lease: self.assignment.lease, how, reason: reason.clone() }).await;
        Outcome { dirt: None, is_nothing: false, gave_back, how: reason }
    }

    /// Where things lie on this host is not for the server's pages.
    fn without_places(&self, mut text: String) -> String {
        for folder in [self.checkout().as_path(), self.agent.state.folder()] {
            if folder.parent().is_some_and(|parent| parent != Path::new("")) {
                text = text.replace(&folder.display().to_string(), "…");
            }
        }
        text
    }

    /// For a while: when it does not get through, the lease ends by itself.
    async fn say_ended(&self, ended: Ended) {
        let run = self.assignment.run_id;
        let mut pauses = crate::upload::Pauses::within(Duration::from_secs(self.assignment.lease_s.min(300).into()));
        loop {
            match self.agent.server.end(run, &ended).await {
                Ok(()) => return,
                Err(error @ ServerError::Refused { .. }) => {
                    return say(Some(run), &format!("the server does not take its end: {}", error.why()));
                }
                Err(error) => match pauses.next(None) {
                    Some(pause) => tokio::time::sleep(pause).await,
                    None => return say(Some(run), &format!("the server did not hear of its end: {}", error.why())),
                },
            }
        }
    }

    fn log(&self) -> PathBuf {
        self.agent.state.log(self.assignment.run_id)
    }

    fn checkout(&self) -> PathBuf {
        folder::checkout(&self.agent.state, self.recipe, self.assignment.run_id)
    }

    fn plan(&self) -> &str {
        self.assignment.plan.as_deref().unwrap_or(&self.recipe.plan)
    }

    fn facts(&self, commit: Option<String>) -> Facts<'_> {
        let wanted = &self.assignment.revision;
        let commit = commit.or_else(|| wanted.commit.as_ref().map(ToString::to_string));
        let image = self.recipe.image.as_ref();
        let image = image.and_then(|image| super::facts::image(image, wanted.tag.as_deref(), commit.as_deref()).ok());
        Facts { run: self.assignment.run_id, wanted, commit, plan: self.plan(), checkout: None, image }
    }

    /// Where commands run, and what they see.
    fn around(&self, facts: Facts<'_>) -> Surroundings {
        let checkout = self.checkout();
        let facts = Facts { checkout: Some(&checkout), ..facts };
        let environment = facts.environment(&self.agent.config, self.recipe, &super::environment);
        let folder = folder::of_commands(&self.agent.state, self.recipe, self.assignment.run_id);
        Surroundings { folder, environment, log: self.log() }
    }
}

/// How long the upload of a report may hold up the next job.
const UPLOAD: Duration = Duration::from_secs(10 * 60);
const LONGEST_REASON: usize = 1_000;

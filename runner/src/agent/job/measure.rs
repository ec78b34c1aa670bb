//! From the checkout to the report.

use std::path::{Path, PathBuf};
use std::time::Duration;

use plimsoll_domain::ids::CommitSha;
use plimsoll_domain::job::Stage;
use plimsoll_domain::report::Report;
use plimsoll_domain::revision::Revision;

use super::super::checkout::{NoCheckout, Repository};
use super::super::config::Place;
use super::super::facts::{self, Facts, least};
use super::super::git::Git;
use super::super::log::say;
use super::super::pulse::Listener;
use super::super::shell::Surroundings;
use super::super::stopper::Stop;
use super::super::supervise::Start;
use super::super::supervisor::Supervisor;
use super::super::tree::RUN_ID;
use super::super::{environment, history, ports, ready};
use super::{Job, NoReport};
use crate::exit::Failure;
use crate::phases::{self, Cause, RunError};
use crate::pin::{self, Asked};
use crate::plan::confined::Confined;
use crate::plan::{self, Loaded, Overrides};
use crate::spec::RunSpec;
use crate::spool::Partial;
use crate::{exit, host};

impl Job<'_> {
    pub(super) async fn measured(&self, supervisor: &mut Supervisor) -> Result<Report, NoReport> {
        let run = self.assignment.run_id;
        self.feed.stage(Stage::Checkout);
        let commit = self.or_stop(self.check_out()).await?;
        let loaded = self.load_plan()?;
        let revision = self.or_stop(async { Ok(self.revision(commit.as_ref()).await) }).await?;
        let facts = self.facts(commit.as_ref().map(ToString::to_string));
        self.confine_working_directory()?;
        let around = self.around(facts.clone());
        self.feed.stage(Stage::Start);
        self.or_stop(self.pull(&facts, &around)).await?;
        let taken = ports::taken(&self.recipe.ports);
        if !taken.is_empty() {
            return Err(NoReport::Ours(format!("{} taken before the service was started", ports::named(&taken))));
        }
        say(Some(run), &format!("starting {} {}", self.recipe.project, self.revision_text(commit.as_ref())));
        self.or_stop(self.start(supervisor, &around)).await?;
        let spec = self.or_stop(self.spec(loaded, revision)).await?;
        self.run_phases(spec).await
    }

    /// What is under way is dropped when the run is stopped.
    async fn or_stop<T>(&self, doing: impl Future<Output = Result<T, NoReport>>) -> Result<T, NoReport> {
        tokio::select! {
            biased;
            () = self.stopper.stopped() => Err(NoReport::Stopped),
            done = doing => done,
        }
    }

    pub(super) fn repository(&self) -> Option<Repository<'_>> {
        let Place::Repository(address) = &self.recipe.place else { return None };
        let folder = self.agent.state.repository(&self.recipe.project);
        Some(Repository { address, folder, around: self.around_git() })
    }

    /// Little of the agent's own environment, and not its token.
    fn around_git(&self) -> Surroundings {
        let mut seen = least(&environment);
        for name in &self.recipe.inherit {
            if let Some(value) = environment(name) {
                seen.push((name.clone(), value));
            }
        }
        // So that it, too, ends with the run.
        seen.push((RUN_ID.to_owned(), self.assignment.run_id.to_string()));
        Surroundings { folder: self.agent.state.folder().to_owned(), environment: seen, log: self.log() }
    }

    /// The commit that is checked out; `None` without a repository and a commit in the job.
    async fn check_out(&self) -> Result<Option<CommitSha>, NoReport> {
        let wanted = &self.assignment.revision;
        let Some(repository) = self.repository() else { return Ok(wanted.commit.clone()) };
        let commit = self.fetched(&repository).await?;
        let (run, state) = (self.assignment.run_id, &self.agent.state);
        self.checked_out(&repository, &commit, &state.checkout(run)).await?;
        if let Some(named) = &self.assignment.plan_commit {
            let plan_commit = repository.commit(named).await;
            let plan_commit =
                plan_commit.map_err(|why| self.no_checkout("the plan's commit could not be fetched", why))?;
            if plan_commit != commit {
                self.checked_out(&repository, &plan_commit, &state.plan_checkout(run)).await?;
            }
        }
        Ok(Some(commit))
    }

    /// A network that fails is tried a few times. Where it answers and git fails all the same, the repository here is
    /// begun anew: a git that was killed has left a lock in it, say.
    async fn fetched(&self, repository: &Repository<'_>) -> Result<CommitSha, NoReport> {
        const FETCHED: &str = "the revision could not be fetched";
        const PAUSES: [Duration; 2] = [Duration::from_secs(2), Duration::from_secs(10)];
        let mut pauses = PAUSES.iter();
        loop {
            match (repository.fetch(&self.assignment.revision).await, pauses.next()) {
                (Ok(commit), _) => return Ok(commit),
                (Err(NoCheckout::Git(_)), Some(pause)) => tokio::time::sleep(*pause).await,
                (Err(NoCheckout::Git(why)), None) if repository.answers().await.is_ok() => {
                    say(Some(self.assignment.run_id), &format!("{why}: the repository is fetched anew"));
                    repository.remove().await;
                    break;
                }
                (Err(why), _) => return Err(self.no_checkout(FETCHED, why)),
            }
        }
        repository.fetch(&self.assignment.revision).await.map_err(|why| self.no_checkout(FETCHED, why))
    }

    async fn checked_out(&self, repository: &Repository<'_>, commit: &CommitSha, to: &Path) -> Result<(), NoReport> {
        let done = repository.check_out(commit, to).await;
        done.map_err(|why| self.no_checkout("the revision could not be checked out", why))
    }

    /// A network or a disk is not the revision's fault.
    fn no_checkout(&self, what: &str, why: NoCheckout) -> NoReport {
        let text = with_log(&format!("{what}: {why}"));
        match why {
            NoCheckout::Git(_) => NoReport::Ours(text),
            NoCheckout::NoSuchRevision(_) => NoReport::Fault(text),
        }
    }

    /// Where the plan lies: beside the service, or in the commit that is named for it.
    fn plan_folder(&self) -> PathBuf {
        let apart = self.agent.state.plan_checkout(self.assignment.run_id);
        if apart.is_dir() { apart } else { self.checkout() }
    }

    fn load_plan(&self) -> Result<Loaded, NoReport> {
        let folder = self.plan_folder();
        let confined = Confined::open(&folder)
            .map_err(|error| NoReport::Fault(format!("the folder of the plan cannot be opened: {error}")))?;
        let given = Overrides {
            project: Some(self.assignment.project.clone()),
            profile: self.assignment.profile,
            ..Overrides::default()
        };
        plan::load_listed(&confined, self.plan(), &given, &environment, &self.recipe.listed)
            .map_err(|error| NoReport::Fault(told(&Failure::from(error))))
    }

    /// The folder is named by the configuration, but what has that name comes with the revision.
    fn confine_working_directory(&self) -> Result<(), NoReport> {
        let Some(below) = &self.recipe.working_directory else { return Ok(()) };
        let confined = Confined::open(&self.checkout()).map_err(|error| NoReport::Fault(error.to_string()))?;
        confined.folder(below).map(drop).map_err(|why| NoReport::Fault(format!("working_directory: {why}")))
    }

    async fn pull(&self, facts: &Facts<'_>, around: &Surroundings) -> Result<(), NoReport> {
        const PULL: Duration = Duration::from_secs(30 * 60);
        let Some(image) = &self.recipe.image else { return Ok(()) };
        let named = facts::image(image, self.assignment.revision.tag.as_deref(), facts.commit.as_deref());
        let named = named.map_err(NoReport::Fault)?;
        if !image.pull {
            return Ok(());
        }
        let pulled = around.run(&image.engine, &["pull".into(), "--".into(), named.into()], PULL).await;
        pulled
            .map(drop)
            .map_err(|ill| Self::at_log(&format!("the image could not be pulled: `{} pull` {ill}", image.engine)))
    }

    async fn start(&self, supervisor: &mut Supervisor, around: &Surroundings) -> Result<(), NoReport> {
        let start = Start {
            line: self.recipe.start.clone(),
            folder: around.folder.clone(),
            environment: around.environment.clone(),
            log: around.log.clone(),
        };
        let service = supervisor.start(start).await;
        let service = service.map_err(|error| NoReport::Ours(format!("`start` could not be started: {error}")))?;
        self.write_running(supervisor, Some(service)).map_err(NoReport::Ours)?;
        let ready = ready::wait(&self.recipe.ready, &self.recipe.ports, around, supervisor).await;
        ready.map_err(|why| Self::at_log(&why))
    }

    async fn spec(&self, loaded: Loaded, revision: Revision) -> Result<RunSpec, NoReport> {
        let (testbed, unknown) = host::testbed(&loaded.requests.url, &loaded.testbed, &self.agent.config.gpus);
        let asked = Asked {
            flag: None,
            plan: &loaded.plan,
            project: &self.assignment.project,
            testbed: &testbed,
            baseline: None,
            server: Some(&self.agent.server),
        };
        let (pinned, unpinned) = pin::choose(asked).await.map_err(|failure| match failure.exit {
            exit::Exit::Unreachable => NoReport::Ours(failure.message),
            _ => NoReport::Fault(failure.message),
        })?;
        for note in [unknown, unpinned].into_iter().flatten() {
            say(Some(self.assignment.run_id), &note.message);
        }
        let most = self.agent.config.limits.max_workers;
        let loads = pinned.map(|load| load.workers.max(load.capacity_workers.unwrap_or(0)));
        if let Some(workers) = loads.filter(|workers| *workers > most) {
            return Err(NoReport::Fault(format!(
                "the pinned load takes {workers} workers; this runner allows {most} (`max_workers = {workers}` in [limits] \
                 of the runner's runner.toml would allow it)"
            )));
        }
        Ok(RunSpec {
            run_id: self.assignment.run_id,
            project: self.assignment.project.clone(),
            revision,
            testbed,
            plan: loaded.plan,
            requests: loaded.requests,
            pinned,
        })
    }

    /// The job's names, and what git tells of their history. A checkout is what its commit says; a folder that stands
    /// for one may have been changed.
    async fn revision(&self, commit: Option<&CommitSha>) -> Revision {
        let wanted = &self.assignment.revision;
        let around = self.around_git();
        let told = match (self.repository(), commit) {
            (Some(repository), Some(commit)) => history::of_commit(&repository.git(), commit.as_str()).await,
            _ => history::of_folder(Git::folder(&around, &self.checkout()), commit).await,
        };
        let told = told.unwrap_or_default();
        Revision {
            commit: told.commit.or(commit.cloned()),
            tag: wanted.tag.clone().or(told.tag),
            branch: wanted.branch.clone().or(told.branch),
            pull_request: wanted.pull_request,
            merge_base: wanted.merge_base.clone().or(told.merge_base),
            ..told
        }
    }

    async fn run_phases(&self, spec: RunSpec) -> Result<Report, NoReport> {
        let partial = Partial::beside(&self.agent.state.measured(spec.run_id));
        let partial = partial.map_err(|failure| say(Some(spec.run_id), &failure.message)).ok();
        let (run, gpus) = (spec.run_id, self.agent.gpus.as_ref());
        let mut listener = Listener { run, feed: self.feed.clone(), gpus, partial };
        let most = Duration::from_millis(self.agent.config.limits.max_duration_ms);
        let running = phases::run(spec, &mut listener, self.stopper.flag());
        tokio::pin!(running);
        let ended = tokio::select! {
            ended = &mut running => ended,
            () = tokio::time::sleep(most) => {
                let most = humantime::format_duration(most);
                self.stopper.stop(Stop::TooLong(format!(
                    "the run took longer than {most} (`max_duration` in [limits] of the runner's runner.toml)"
                )));
                running.await
            }
        };
        ended.map_err(|error| self.failed(&error))
    }

    /// What the service answered stays here: it is not for the server's pages.
    fn failed(&self, error: &RunError) -> NoReport {
        let run = self.assignment.run_id;
        say(Some(run), &error.message);
        let advice = error.advice.as_deref().unwrap_or_default();
        match error.cause {
            Cause::Service => Self::at_log(&format!("the service does not answer as the plan expects. {advice}")),
            Cause::Plan => NoReport::Fault(format!("the plan cannot be carried out: {}", error.message)),
            Cause::Ours => NoReport::Ours(error.message.clone()),
        }
    }

    fn at_log(why: &str) -> NoReport {
        NoReport::Fault(with_log(why))
    }

    fn revision_text(&self, commit: Option<&CommitSha>) -> String {
        let wanted = &self.assignment.revision;
        let names = [wanted.tag.clone(), wanted.branch.clone(), commit.map(|sha| sha.short().to_owned())];
        names.into_iter().flatten().collect::<Vec<_>>().join(" ")
    }
}

/// Which file that is, the agent says in its own log.
fn with_log(why: &str) -> String {
    format!("{} (the run's log on the runner tells more)", why.trim_end())
}

/// A failure in one line, with what to do.
fn told(failure: &Failure) -> String {
    let hint = failure.hint.as_ref().map(|hint| format!(" ({})", hint.replace('\n', " "))).unwrap_or_default();
    format!("{}{hint}", failure.message)
}

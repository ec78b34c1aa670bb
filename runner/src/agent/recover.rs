//! What an agent finds that another one left, which was killed.

use std::time::Duration;

use plimsoll_domain::job::Wanted;
use rustix::process::Signal;
use tokio::sync::watch;

use super::facts::Facts;
use super::log::say;
use super::shell::Surroundings;
use super::state::{Running, boot, remove_folder};
use super::tree::{Members, Process};
use super::{Agent, LOOK, environment, folder, tell_once};

/// Beyond the grace that a supervisor gives: what it takes at most to end a run.
const PATIENCE: Duration = Duration::from_secs(15);
const ROUND: Duration = Duration::from_millis(20);

impl Agent {
    /// Ends what is left of the last run and takes away its folders.
    pub(super) async fn recover(&self, drain: &mut watch::Receiver<bool>) {
        if let Some(running) = self.state.running() {
            say(Some(running.run), "an agent before this one did not come to its end: cleaning up after it");
            self.end_processes(&running).await;
            self.outwait_supervisor(&running).await;
            self.clean_up(&running).await;
            self.end_leftovers(drain).await;
        }
        self.remove_checkouts().await;
    }

    /// Ends what is left of the last run, again and again: as long as some of it lives it is not forgotten, and another
    /// job would be measured beside it.
    pub(super) async fn end_leftovers(&self, drain: &mut watch::Receiver<bool>) {
        let mut told = String::new();
        while let Some(running) = self.state.running() {
            let left = self.end_processes(&running).await;
            if left == 0 {
                return self.state.clear_running();
            }
            tell_once(&mut told, &format!("no job is taken: {left} processes of run {} would not end", running.run));
            if *drain.borrow() {
                return;
            }
            self.pause(LOOK, drain).await;
        }
    }

    /// The supervisor of the agent before this one ends whatever carries the run's id, the commands of its clean-up too:
    /// they are run when it is gone.
    async fn outwait_supervisor(&self, running: &Running) {
        let Some(supervisor) = known(running, running.supervisor).filter(|process| process.lives()) else { return };
        say(Some(running.run), "its supervisor is still at work: the clean-up goes on when it is gone");
        let gone = async {
            while supervisor.lives() {
                tokio::time::sleep(ROUND).await;
            }
        };
        if tokio::time::timeout(self.config.grace + PATIENCE, gone).await.is_err() {
            say(Some(running.run), "its supervisor did not come to its end and is killed");
            supervisor.signal(Signal::KILL);
        }
    }

    async fn end_processes(&self, running: &Running) -> usize {
        let of = |process| known(running, process).into_iter().collect::<Vec<_>>();
        let (run, grace) = (running.run, self.config.grace);
        let (parents, groups) = (of(running.supervisor), of(running.service));
        let ended = move || Members { run, parents: &parents, groups: &groups }.end(grace).len();
        tokio::task::spawn_blocking(ended).await.unwrap_or(0)
    }

    /// The recipe's own clean-up: containers, say, are nobody's children.
    async fn clean_up(&self, running: &Running) {
        let Some(recipe) = self.config.projects.iter().find(|recipe| recipe.project == running.project) else { return };
        let checkout = folder::checkout(&self.state, recipe, running.run);
        let wanted = Wanted::default();
        let facts = Facts {
            run: running.run,
            wanted: &wanted,
            commit: None,
            plan: &recipe.plan,
            checkout: Some(&checkout),
            image: None,
        };
        let around = Surroundings {
            folder: folder::of_commands(&self.state, recipe, running.run),
            environment: facts.environment(&self.config, recipe, &environment),
            log: self.state.log(running.run),
        };
        for command in [&recipe.stop, &recipe.clean_up].into_iter().flatten() {
            if let Err(ill) = around.line(&command.line, command.timeout).await {
                say(Some(running.run), &format!("a command of its clean-up {ill}"));
            }
        }
    }

    async fn remove_checkouts(&self) {
        let entries = std::fs::read_dir(self.state.checkouts()).into_iter().flatten().flatten();
        for entry in entries {
            remove_folder(entry.path()).await;
        }
    }
}

/// A process of a run, unless the numbers are somebody else's after a reboot.
fn known(running: &Running, process: Option<Process>) -> Option<Process> {
    process.filter(|_| running.boot.is_some() && running.boot == boot())
}

//! What an agent finds that another one left, which was killed.

use plimsoll_domain::job::Wanted;

use super::facts::Facts;
use super::log::say;
use super::shell::Surroundings;
use super::state::{Running, boot, remove_folder};
use super::tree::{Members, Process};
use super::{Agent, environment};

impl Agent {
    /// Ends what is left of the last run and takes away its folders.
    pub(super) async fn recover(&self) {
        if let Some(running) = self.state.running() {
            say(Some(running.run), "an agent before this one did not come to its end: cleaning up after it");
            let left = self.end_processes(&running).await;
            if left > 0 {
                say(Some(running.run), &format!("{left} processes would not end"));
            }
            self.clean_up(&running).await;
            self.state.clear_running();
        }
        self.remove_checkouts().await;
    }

    async fn end_processes(&self, running: &Running) -> usize {
        // After a reboot the numbers are somebody else's.
        let known = running.boot.is_some() && running.boot == boot();
        let of = |process: Option<Process>| process.filter(|_| known).into_iter().collect::<Vec<_>>();
        let (run, grace) = (running.run, self.config.grace);
        let (parents, groups) = (of(running.supervisor), of(running.service));
        let ended = move || Members { run, parents: &parents, groups: &groups }.end(grace).len();
        tokio::task::spawn_blocking(ended).await.unwrap_or(0)
    }

    /// The recipe's own clean-up: containers, say, are nobody's children.
    async fn clean_up(&self, running: &Running) {
        let Some(recipe) = self.config.projects.iter().find(|recipe| recipe.project == running.project) else { return };
        let checkout = self.state.checkout(running.run);
        let wanted = Wanted::default();
        let facts = Facts {
            run: running.run,
            wanted: &wanted,
            commit: None,
            plan: &recipe.plan,
            checkout: Some(&checkout),
            image: None,
        };
        let folder = if checkout.is_dir() { checkout.as_path() } else { self.state.folder() };
        let around = Surroundings {
            folder: folder.to_owned(),
            environment: facts.environment(&self.config, recipe, &environment),
            log: self.state.log(running.run),
        };
        for command in [&recipe.stop, &recipe.clean_up].into_iter().flatten() {
            if let Err(ill) = around.line(&command.line, command.timeout).await {
                say(Some(running.run), &format!("a command of its clean-up {ill}"));
            }
        }
        self.end_processes(running).await;
    }

    async fn remove_checkouts(&self) {
        let entries = std::fs::read_dir(self.state.checkouts()).into_iter().flatten().flatten();
        for entry in entries {
            remove_folder(entry.path()).await;
        }
    }
}

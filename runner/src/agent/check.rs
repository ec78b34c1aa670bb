//! `plimsoll agent --check`: whether the agent could work, before it is left alone.

use std::time::Duration;

use plimsoll_domain::ids::ProjectSlug;

use super::checkout::Repository;
use super::config::{Config, Place, Recipe};
use super::facts::least;
use super::lock::{Locks, StateLock};
use super::shell;
use super::state::State;
use super::{clean, environment, ports, token};
use crate::exit::Failure;
use crate::spool;
use crate::telemetry::gpu::Gpus;
use crate::upload::Server;

/// One thing that was looked at.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Looked {
    pub what: String,
    /// What is wrong, and what to do.
    pub wrong: Option<String>,
}

/// Looks at everything that a job needs. Starts no service.
pub async fn check(config: &Config) -> Vec<Looked> {
    let mut all = vec![looked("token", token::server(config, &environment).map(drop).map_err(text))];
    if let Ok(server) = token::server(config, &environment) {
        let accepted = server.may_claim().await.map_err(|error| text(token::failure(config, &server, error)));
        let accepts = accepted.is_ok();
        all.push(looked(&format!("server {}", server.address()), accepted));
        if accepts {
            all.extend(reached(config, &server).await);
        }
    }
    let state = State::open(&config.state);
    let place = format!("state {}", config.state.display());
    match &state {
        Ok(state) => {
            let free = StateLock::take(state.folder(), "a check").and_then(|_| spool::space(state.folder()));
            all.push(looked(&place, free.map(drop).map_err(text)));
        }
        Err(failure) => all.push(looked(&place, Err(text(failure.clone())))),
    }
    let gpus = Gpus::open(&config.gpus);
    // As `run` does.
    let names = clean::names(&config.gpus, gpus.as_ref().ok().and_then(Option::as_ref));
    let found = match gpus {
        Ok(None) if !config.gpus.is_empty() => Err(format!(
            "`gpus` in runner.toml names {}, and there is no GPU here: no NVIDIA driver answers",
            config.gpus.join(", ")
        )),
        Ok(_) => Ok(()),
        Err(error) => Err(error.to_string()),
    };
    all.push(looked("GPUs", found));
    all.push(looked("locks", Locks::take(config.locks.as_deref(), &names, "a check").map(drop).map_err(text)));
    let Ok(state) = state else { return all };
    let around = shell::plain(state.folder(), state.own_log(), least(&environment));
    let git = around.run("git", &["--version".into()], Duration::from_secs(10)).await;
    all.push(looked("git", git.map_err(|ill| format!("it {ill}"))));
    for recipe in &config.projects {
        all.push(looked(&format!("project {}", recipe.project), project(recipe, &state, &around).await));
    }
    all
}

/// Whether the token reaches each project; nothing where the server is too old to say.
async fn reached(config: &Config, server: &Server) -> Vec<Looked> {
    let reach = match server.reach().await {
        Ok(Some(reach)) => reach,
        Ok(None) => return Vec::new(),
        Err(error) => return vec![looked("the token's reach", Err(text(token::failure(config, server, error))))],
    };
    let look = |project: &ProjectSlug| match reach.covers(project) {
        true => Ok(()),
        false => Err(format!(
            "its runs are not for this token → `plimsoll-server token create --scope agent` makes one for all projects, \
             with `--project {project}` one for this project alone"
        )),
    };
    config
        .projects
        .iter()
        .map(|recipe| looked(&format!("token for {}", recipe.project), look(&recipe.project)))
        .collect()
}

async fn project(recipe: &Recipe, state: &State, around: &shell::Surroundings) -> Result<(), String> {
    let taken = ports::taken(&recipe.ports);
    if !taken.is_empty() {
        return Err(format!("{} taken by another program", ports::named(&taken)));
    }
    match &recipe.place {
        Place::Directory(folder) if !folder.is_dir() => Err(format!("there is no folder {}", folder.display())),
        Place::Directory(_) => Ok(()),
        Place::Repository(address) => {
            let mut around = around.clone();
            around
                .environment
                .extend(recipe.inherit.iter().filter_map(|name| Some((name.clone(), environment(name)?))));
            let repository = Repository { address, folder: state.repository(&recipe.project), around };
            repository
                .answers()
                .await
                .map_err(|why| format!("the repository: {why} (see {})", state.own_log().display()))
        }
    }
}

fn looked(what: &str, found: Result<(), String>) -> Looked {
    Looked { what: what.to_owned(), wrong: found.err() }
}

/// Message and hint on one line.
pub(super) fn text(failure: Failure) -> String {
    match failure.hint {
        Some(hint) => format!("{} → {}", failure.message, hint.replace('\n', " ")),
        None => failure.message,
    }
}

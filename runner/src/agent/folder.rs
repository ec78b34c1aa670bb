//! Where the commands of a run are run.

use std::path::PathBuf;

use plimsoll_domain::ids::RunId;

use super::config::{Place, Recipe};
use super::state::State;
use crate::plan::confined::Confined;

/// Where the checkout is, or the folder that stands for one.
pub(super) fn checkout(state: &State, recipe: &Recipe, run: RunId) -> PathBuf {
    match &recipe.place {
        Place::Repository(_) => state.checkout(run),
        Place::Directory(folder) => folder.clone(),
    }
}

/// The working directory of the recipe. Where there is none, before a checkout, after one that failed or when the
/// service took it away, it is a folder with nothing in it: what a line does to its own folder harms nobody there.
pub(super) fn of_commands(state: &State, recipe: &Recipe, run: RunId) -> PathBuf {
    let checkout = checkout(state, recipe, run);
    let below = recipe.working_directory.as_deref();
    // The folder is named by the configuration, but what has that name comes with the revision.
    let confined = Confined::open(&checkout).map_err(|error| error.to_string());
    match (confined.and_then(|confined| confined.folder(below.unwrap_or_default())), below) {
        (Ok(_), Some(below)) => checkout.join(below),
        (Ok(_), None) => checkout,
        (Err(_), _) => state.empty(),
    }
}

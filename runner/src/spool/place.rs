//! Where a report goes when its own folder does not take it.

use std::path::PathBuf;

/// The user's folder for what a program keeps, then the one for temporary files.
pub(super) fn others() -> Vec<PathBuf> {
    let variable = |name: &str| std::env::var_os(name).filter(|value| !value.is_empty()).map(PathBuf::from);
    // systemd's, then the XDG Base Directory Specification's.
    let state = variable("STATE_DIRECTORY")
        .or_else(|| variable("XDG_STATE_HOME").map(|folder| folder.join("plimsoll")))
        .or_else(|| variable("HOME").map(|home| home.join(".local/state/plimsoll")));
    state.into_iter().filter(|folder| folder.is_absolute()).chain([std::env::temp_dir()]).collect()
}

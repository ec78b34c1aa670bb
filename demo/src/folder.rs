//! Where the demo keeps its things.

use std::fs::Permissions;
use std::os::unix::fs::PermissionsExt as _;
use std::path::{Path, PathBuf};

/// A directory of its own, removed with this value, or one that was named and stays.
#[derive(Debug)]
pub(crate) enum Folder {
    Own(tempfile::TempDir),
    Given(PathBuf),
}

impl Folder {
    pub(crate) fn at(given: Option<&Path>) -> Result<Self, String> {
        let Some(given) = given else {
            // Started by root, Postgres runs as another user, who must be able to pass through.
            let permissions = Permissions::from_mode(0o755);
            let made = tempfile::Builder::new().prefix("plimsoll-demo-").permissions(permissions).tempdir();
            return made.map(Self::Own).map_err(|error| format!("no temporary directory: {error}"));
        };
        let named = |error: std::io::Error| format!("--data-dir {}: {error}", given.display());
        std::fs::create_dir_all(given).map_err(named)?;
        // Parts run with this path whatever their working directory.
        Ok(Self::Given(given.canonicalize().map_err(named)?))
    }

    pub(crate) fn path(&self) -> &Path {
        match self {
            Self::Own(made) => made.path(),
            Self::Given(path) => path,
        }
    }
}

//! A wall clock of one program that can be moved while it runs, by libfaketime. The monotonic clock stays true.

use std::path::{Path, PathBuf};

use tokio::process::Command;

#[derive(Debug, Clone)]
pub(crate) struct Clock {
    file: PathBuf,
}

const LIBRARIES: [&str; 4] = [
    "/usr/lib/x86_64-linux-gnu/faketime/libfaketimeMT.so.1",
    "/usr/lib/aarch64-linux-gnu/faketime/libfaketimeMT.so.1",
    "/usr/lib64/faketime/libfaketimeMT.so.1",
    "/usr/lib/faketime/libfaketimeMT.so.1",
];

/// The library, where it is installed.
pub(crate) fn library() -> Option<&'static Path> {
    LIBRARIES.into_iter().map(Path::new).find(|path| path.exists())
}

impl Clock {
    pub(crate) fn new(file: PathBuf) -> Result<Self, String> {
        let clock = Self { file };
        clock.set(0)?;
        Ok(clock)
    }

    /// Lets a program go by it.
    pub(crate) fn apply(&self, command: &mut Command) {
        let Some(library) = library() else { return };
        command
            .env("LD_PRELOAD", library)
            .env("FAKETIME_TIMESTAMP_FILE", &self.file)
            // The file is read anew each second.
            .env("FAKETIME_CACHE_DURATION", "1")
            .env("FAKETIME_DONT_FAKE_MONOTONIC", "1")
            .env("DONT_FAKE_MONOTONIC", "1")
            .env("FAKETIME_DISABLE_SHM", "1")
            .env("FAKETIME_DONT_RESET", "1");
    }

    /// Seconds from the true time.
    pub(crate) fn set(&self, offset: i64) -> Result<(), String> {
        // Whole or not at all: the program may read it at any moment.
        let next = self.file.with_extension("next");
        let write = || {
            std::fs::write(&next, format!("{offset:+}\n"))?;
            std::fs::rename(&next, &self.file)
        };
        write().map_err(|error| format!("{}: {error}", self.file.display()))
    }
}

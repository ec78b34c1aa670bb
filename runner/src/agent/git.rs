//! Git as the agent runs it: fixed settings, no terminal to ask at, no hooks, little of the agent's environment.

use std::ffi::OsString;
use std::path::Path;
use std::time::Duration;

use super::shell::{Ill, Surroundings};

/// Git at one place.
#[derive(Debug)]
pub(super) struct Git<'g> {
    around: &'g Surroundings,
    place: Vec<OsString>,
    /// Settings beside the fixed ones; by variables, since a name may hold anything.
    settings: Vec<(String, String)>,
}

impl<'g> Git<'g> {
    pub(super) fn nowhere(around: &'g Surroundings) -> Self {
        Self { around, place: Vec::new(), settings: Vec::new() }
    }

    /// In a repository without files.
    pub(super) fn bare(around: &'g Surroundings, folder: &Path) -> Self {
        Self { place: vec!["--git-dir".into(), folder.into()], ..Self::nowhere(around) }
    }

    /// In a folder that may be a checkout.
    pub(super) fn folder(around: &'g Surroundings, folder: &Path) -> Self {
        Self { place: vec!["-C".into(), folder.into()], ..Self::nowhere(around) }
    }

    pub(super) fn set(&mut self, name: &str, value: &str) {
        self.settings.push((name.to_owned(), value.to_owned()));
    }

    /// Returns what it wrote on stdout.
    pub(super) async fn ask(&self, words: &[OsString], timeout: Duration) -> Result<String, Ill> {
        let mut all: Vec<OsString> = FIXED.iter().flat_map(|setting| ["-c".into(), setting.into()]).collect();
        all.extend(self.place.iter().chain(words).cloned());
        let mut around = self.around.clone();
        let mut set = |name: String, value: &str| around.environment.push((name, value.to_owned()));
        for (name, value) in ENVIRONMENT {
            set(name.to_owned(), value);
        }
        if !self.settings.is_empty() {
            set("GIT_CONFIG_COUNT".to_owned(), &self.settings.len().to_string());
        }
        for (number, (name, value)) in self.settings.iter().enumerate() {
            set(format!("GIT_CONFIG_KEY_{number}"), name);
            set(format!("GIT_CONFIG_VALUE_{number}"), value);
        }
        around.ask("git", &all, timeout).await
    }
}

/// Whatever else is configured.
const FIXED: [&str; 7] = [
    "core.hooksPath=/dev/null",
    "core.fsmonitor=false",
    "protocol.ext.allow=never",
    "submodule.recurse=false",
    // What git tidies up of itself is done before the service starts.
    "gc.autoDetach=false",
    "maintenance.autoDetach=false",
    "advice.detachedHead=false",
];

const ENVIRONMENT: [(&str, &str); 5] = [
    ("GIT_TERMINAL_PROMPT", "0"),
    ("LC_ALL", "C"),
    ("GIT_ADVICE", "0"),
    ("GIT_OPTIONAL_LOCKS", "0"),
    ("GIT_NO_LAZY_FETCH", "1"),
];

//! `runner.toml`: whom the agent works for, what of the host it may use, and how each project's service is started.
//!
//! The file is the operator's own and trusted: its lines are run by a shell. Nothing else that the agent is told is.

mod parts;
mod recipe;
#[cfg(test)]
mod tests;

use std::collections::BTreeMap;
use std::fs::File;
use std::path::{Path, PathBuf};
use std::time::Duration;

use plimsoll_domain::job;

use crate::exit::Failure;
use crate::plan::section::{Field, Section};
use crate::plan::{self, Environment, Limits, PlanError};
pub use recipe::{Command, Image, Place, Ready, Recipe, Test};

/// The file that the agent looks for.
pub const FILE: &str = "/etc/plimsoll/runner.toml";

const KEYS: [&str; 11] =
    ["server", "token_file", "name", "state", "labels", "gpus", "locks", "drain_timeout", "grace", "limits", "project"];

/// A `runner.toml` with its defaults filled in.
#[derive(Debug)]
pub struct Config {
    pub server: String,
    pub token_file: Option<PathBuf>,
    pub name: String,
    /// Where the agent keeps what must outlive it.
    pub state: PathBuf,
    pub labels: BTreeMap<String, String>,
    /// Index or UUID; empty for a host without, or all of them.
    pub gpus: Vec<String>,
    /// Where the locks of the host's agents lie, when it is not the usual folder.
    pub locks: Option<PathBuf>,
    /// How long a run may go on after the agent was asked to end.
    pub drain_timeout: Duration,
    /// Between asking a service to end and ending it.
    pub grace: Duration,
    pub limits: Limits,
    /// By name, at least one.
    pub projects: Vec<Recipe>,
}

/// Reads the file. Errors say file, line, key and what to do.
pub fn load(path: &Path, environment: Environment) -> Result<Config, Failure> {
    let read = || {
        let file = File::open(path).map_err(|error| {
            PlanError::whole(path, error.to_string()).hint("--config names another file; docs/runner.md shows one")
        })?;
        read(&plan::source(path, file)?, environment)
    };
    read().map_err(|error| Failure { kind: "config", ..Failure::from(error) })
}

fn read(source: &plan::Source, environment: Environment) -> Result<Config, PlanError> {
    let root = plan::parse(source)?;
    let top = Section::top(source, root.get_ref(), &KEYS)?;
    let server = top.need("server", "\"https://plimsoll.example\"")?;
    let address = server.string()?.to_owned();
    recipe::address(&server)?;
    let limits = limits(&top)?;
    let duration = |key, default| parts::duration(&top, key, default);
    let projects = top.open("project")?.fields();
    if projects.is_empty() {
        return Err(PlanError::whole(&source.path, "there is no [project.NAME]")
            .hint("add one for each service that this runner measures"));
    }
    Ok(Config {
        server: address,
        token_file: parts::path(&top, "token_file")?,
        name: match parts::text(&top, "name")? {
            Some(name) => name,
            None => host_name(environment),
        },
        state: match parts::path(&top, "state")? {
            Some(path) => path,
            None => state_folder(environment).ok_or_else(|| {
                PlanError::whole(&source.path, "`state` is missing, and there is no HOME").hint("name a folder")
            })?,
        },
        labels: labels(&top)?,
        gpus: parts::names(&top, "gpus")?,
        locks: parts::path(&top, "locks")?,
        drain_timeout: duration("drain_timeout", Duration::from_secs(30 * 60))?,
        grace: duration("grace", Duration::from_secs(10))?,
        projects: projects.iter().map(|field| recipe::read(field, limits)).collect::<Result<_, _>>()?,
        limits,
    })
}

fn limits(top: &Section) -> Result<Limits, PlanError> {
    let section = top.sub("limits", &["max_workers", "max_duration", "max_body_bytes"])?;
    let mut limits = Limits::default();
    if let Some(field) = section.get("max_workers") {
        limits.max_workers = field.whole(1..=plan::MAX_WORKERS)?;
    }
    if let Some(field) = section.get("max_duration") {
        limits.max_duration_ms = field.duration_ms(1_000)?;
    }
    if let Some(field) = section.get("max_body_bytes") {
        limits.max_body_bytes = field.whole(0..=u32::MAX)?.into();
    }
    Ok(limits)
}

fn labels(top: &Section) -> Result<BTreeMap<String, String>, PlanError> {
    let labels: BTreeMap<_, _> = top
        .open("labels")?
        .fields()
        .iter()
        .map(|field| Ok((field.key.clone(), field.string()?.to_owned())))
        .collect::<Result<_, PlanError>>()?;
    job::check_labels(&labels).map_err(|why| {
        top.get("labels").map_or_else(
            || PlanError::whole(&top.source.path, &why),
            |field: Field<'_>| field.error(format!("is wrong: {why}")),
        )
    })?;
    Ok(labels)
}

fn host_name(environment: Environment) -> String {
    let kernel = std::fs::read_to_string("/proc/sys/kernel/hostname").ok();
    let known = kernel.or_else(|| environment("HOSTNAME")).map(|name| name.trim().to_owned());
    known.filter(|name| job::check_name(name).is_ok()).unwrap_or_else(|| "runner".to_owned())
}

/// A service of the system keeps its state where services do, a person's agent below their home.
fn state_folder(environment: Environment) -> Option<PathBuf> {
    if rustix::process::geteuid().is_root() {
        return Some(PathBuf::from("/var/lib/plimsoll-runner"));
    }
    let filled = |name: &str| environment(name).filter(|value| !value.is_empty());
    let base = filled("XDG_STATE_HOME").map(PathBuf::from);
    Some(base.or_else(|| Some(PathBuf::from(filled("HOME")?).join(".local/state")))?.join("plimsoll-runner"))
}

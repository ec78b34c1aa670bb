//! `[project.NAME]`: where a revision of the service comes from, how it is started and ended, and what its plan may do.

use std::fmt;
use std::path::PathBuf;
use std::time::Duration;

use plimsoll_domain::ids::ProjectSlug;
use plimsoll_domain::job::check_path;
use url::Url;

use super::parts;
use crate::host;
use crate::plan::section::{Field, Section};
use crate::plan::{FILE, Limits, Listed, PlanError};

/// How one project is measured here.
pub struct Recipe {
    pub project: ProjectSlug,
    pub place: Place,
    pub image: Option<Image>,
    /// Path of the plan, unless the job names another.
    pub plan: String,
    /// Of the commands, below the checkout or the folder.
    pub working_directory: Option<String>,
    /// A line for the shell. It may stay in the foreground, or leave the service behind and end with 0.
    pub start: String,
    pub ready: Ready,
    pub stop: Option<Command>,
    pub clean_up: Option<Command>,
    /// Names and values for the commands and the service.
    pub environment: Vec<(String, String)>,
    /// Names whose values the agent passes on.
    pub inherit: Vec<String>,
    /// What must be free before a run and after it.
    pub ports: Vec<u16>,
    pub listed: Listed,
}

/// Where the plan and the commands are.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Place {
    /// A repository that git fetches; each run has a checkout of its own.
    Repository(String),
    /// A folder that is there, whatever revision is asked for.
    Directory(PathBuf),
}

/// A container image whose tag is the revision's.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Image {
    /// Without a tag: `registry.example/sentiment`.
    pub name: String,
    pub engine: String,
    pub pull: bool,
}

/// A line for the shell, and how long it may take.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Command {
    pub line: String,
    pub timeout: Duration,
}

/// When the service takes requests.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Ready {
    pub test: Test,
    pub timeout: Duration,
    pub interval: Duration,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Test {
    /// It answers with 2xx.
    Url(Url),
    /// It ends with 0.
    Command(String),
    /// Each port takes connections.
    Ports,
}

const KEYS: [&str; 16] = [
    "repository",
    "directory",
    "image",
    "engine",
    "pull",
    "plan",
    "working_directory",
    "start",
    "ready",
    "stop",
    "clean_up",
    "environment",
    "inherit",
    "ports",
    "origins",
    "plan_environment",
];

pub(super) fn read(field: &Field, limits: Limits) -> Result<Recipe, PlanError> {
    let project: ProjectSlug = field
        .key
        .parse()
        .map_err(|error| field.source.error(field.key_span.clone(), format!("no project's name: {error}")))?;
    let section = field.table(&KEYS)?;
    let origins = origins(&section)?;
    let ports = ports(&section, &origins)?;
    Ok(Recipe {
        place: place(&section)?,
        image: image(&section)?,
        plan: below(&section, "plan")?.unwrap_or_else(|| FILE.to_owned()),
        working_directory: below(&section, "working_directory")?,
        start: line(&section.need("start", "\"exec ./serve --port 8000\"")?)?,
        ready: ready(&section, &ports)?,
        stop: command(&section, "stop")?,
        clean_up: command(&section, "clean_up")?,
        environment: environment(&section)?,
        inherit: parts::variables(&section, "inherit")?,
        listed: Listed {
            origins: origins.iter().map(|url| url.origin().ascii_serialization()).collect(),
            environment: parts::variables(&section, "plan_environment")?,
            limits,
            place: format!("[project.{project}] of the runner's runner.toml"),
        },
        ports,
        project,
    })
}

fn place(section: &Section) -> Result<Place, PlanError> {
    match (section.get("repository"), parts::path(section, "directory")?) {
        (Some(field), None) => {
            let address = field.string()?;
            let helper = address.contains("::") && !address.contains("://");
            if address.is_empty() || address.starts_with('-') || address.contains(char::is_control) || helper {
                return Err(field.error("is no address of a repository"));
            }
            if Url::parse(address).is_ok_and(|url| holds_secret(&url)) {
                return Err(field
                    .error("holds a user name or a password")
                    .hint("use ssh with a key, or a credential helper of git"));
            }
            Ok(Place::Repository(address.to_owned()))
        }
        (None, Some(path)) => Ok(Place::Directory(path)),
        (None, None) => section
            .need("repository", "\"https://git.example/sentiment.git\"")
            .map(|_| Place::Directory(PathBuf::new()))
            .map_err(|error| error.hint("or `directory = \"/srv/sentiment\"`, a folder that is there already")),
        (Some(field), Some(_)) => {
            Err(field.error("stands beside `directory`").hint("keep one of them: where does the plan lie?"))
        }
    }
}

fn image(section: &Section) -> Result<Option<Image>, PlanError> {
    let engine = parts::text(section, "engine")?;
    let pull = section.get("pull").map(|field| field.bool()).transpose()?.unwrap_or(false);
    let Some(field) = section.get("image") else {
        let stray = section.get("engine").or_else(|| section.get("pull"));
        return match stray {
            Some(field) => Err(field.error("says nothing without `image`")),
            None => Ok(None),
        };
    };
    let name = field.string()?;
    let fits = |c: char| c.is_ascii_lowercase() || c.is_ascii_digit() || "._-/:".contains(c);
    let tagged = name.rsplit('/').next().is_some_and(|last| last.contains(':'));
    if !name.chars().all(fits) || !name.starts_with(|c: char| c.is_ascii_alphanumeric()) || tagged {
        return Err(field
            .error("is no name of an image without its tag")
            .hint("write \"registry.example/sentiment\": the tag is the revision's"));
    }
    Ok(Some(Image { name: name.to_owned(), engine: engine.unwrap_or_else(|| "docker".to_owned()), pull }))
}

fn ready(section: &Section, ports: &[u16]) -> Result<Ready, PlanError> {
    let table = section.sub("ready", &["url", "command", "timeout", "interval"])?;
    let test = match (table.get("url"), table.get("command")) {
        (Some(field), None) => Test::Url(address(&field)?),
        (None, Some(field)) => Test::Command(line(&field)?),
        (None, None) if !ports.is_empty() => Test::Ports,
        (None, None) => {
            let url = "{ url = \"http://127.0.0.1:8000/health\" }";
            return Err(section
                .need("ready", url)
                .err()
                .unwrap_or_else(|| PlanError::whole(&section.source.path, "`ready` names no url and no command")));
        }
        (Some(field), Some(_)) => return Err(field.error("stands beside `command`").hint("keep one of them")),
    };
    Ok(Ready {
        test,
        timeout: parts::duration(&table, "timeout", Duration::from_secs(120))?,
        interval: parts::duration(&table, "interval", Duration::from_millis(500))?,
    })
}

/// `stop = "line"`, or with a timeout of its own.
fn command(section: &Section, key: &str) -> Result<Option<Command>, PlanError> {
    const TIMEOUT: Duration = Duration::from_secs(60);
    let Some(field) = section.get(key) else { return Ok(None) };
    if field.string().is_ok() {
        return Ok(Some(Command { line: line(&field)?, timeout: TIMEOUT }));
    }
    let table = field.table(&["command", "timeout"])?;
    let line = line(&table.need("command", "\"docker compose down\"")?)?;
    Ok(Some(Command { line, timeout: parts::duration(&table, "timeout", TIMEOUT)? }))
}

fn environment(section: &Section) -> Result<Vec<(String, String)>, PlanError> {
    let pair = |field: &Field| {
        let name = parts::variable(field, &field.key)?;
        let value = field.string()?;
        if value.contains('\0') { Err(field.error("holds a NUL")) } else { Ok((name, value.to_owned())) }
    };
    section.open("environment")?.fields().iter().map(pair).collect()
}

fn origins(section: &Section) -> Result<Vec<Url>, PlanError> {
    let list = section.need("origins", "[\"http://127.0.0.1:8000\"]")?;
    let urls: Vec<Url> = list.elements()?.iter().map(address).collect::<Result<_, _>>()?;
    match urls.iter().find(|url| url.path() != "/" || url.query().is_some()) {
        Some(url) => Err(list.error(format!("holds a path: {url}")).hint("write scheme, host and port only")),
        None if urls.is_empty() => Err(list.error("is empty: then no plan could be carried out")),
        None => Ok(urls),
    }
}

pub(super) fn address(field: &Field) -> Result<Url, PlanError> {
    let url = Url::parse(field.string()?).ok().filter(|url| matches!(url.scheme(), "http" | "https"));
    url.filter(|url| url.host_str().is_some_and(|host| !host.is_empty()))
        .ok_or_else(|| field.error("is no http or https address").hint("write \"http://127.0.0.1:8000\""))
        .and_then(|url| match holds_secret(&url) {
            true => Err(field.error("holds a user name or a password").hint("write the address without them")),
            false => Ok(url),
        })
}

/// Everybody on the host reads the arguments of a process, and addresses are logged. Over http a token may stand for the
/// user's name; over ssh the name is an account's.
fn holds_secret(url: &Url) -> bool {
    url.password().is_some() || matches!(url.scheme(), "http" | "https") && !url.username().is_empty()
}

/// By default those of the origins on this host.
fn ports(section: &Section, origins: &[Url]) -> Result<Vec<u16>, PlanError> {
    match section.get("ports") {
        Some(field) => {
            let port = |field: &Field| field.whole(1..=65_535).map(|port| port as u16);
            field.elements()?.iter().map(port).collect()
        }
        None => Ok(origins.iter().filter(|url| host::is_here(url)).filter_map(Url::port_or_known_default).collect()),
    }
}

fn below(section: &Section, key: &str) -> Result<Option<String>, PlanError> {
    let Some(field) = section.get(key) else { return Ok(None) };
    let path = field.string()?;
    check_path(path).map(|()| Some(path.to_owned())).map_err(|why| field.error(format!("is wrong: {why}")))
}

fn line(field: &Field) -> Result<String, PlanError> {
    let line = field.string()?;
    if line.trim().is_empty() || line.contains('\0') {
        return Err(field.error("is no command"));
    }
    Ok(line.to_owned())
}

impl fmt::Debug for Recipe {
    /// Lines and values may hold secrets.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Recipe").field("project", &self.project).field("place", &self.place).finish_non_exhaustive()
    }
}

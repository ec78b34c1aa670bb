//! `plimsoll.toml`: from a file, a profile and flags to a plan with every default filled in.
//!
//! Precedence, weakest first: the profile's figures, the plan's, the flags'.

pub mod confined;
mod phases;
mod profile;
mod service;
pub mod template;
mod testbed;
#[cfg(test)]
mod tests;
mod trust;
mod values;
mod workload;

use std::fs::File;
use std::io::Read as _;
use std::path::{Path, PathBuf};

use plimsoll_domain::ids::ProjectSlug;
use plimsoll_domain::plan::{Plan, Profile};
pub use plimsoll_domain::plan_file::FILE;
use plimsoll_domain::plan_file::source;
pub use plimsoll_domain::plan_file::source::{PlanError, Source};
pub use plimsoll_domain::plan_file::values::duration_ms;
use plimsoll_domain::plan_file::{self, MAX_BYTES, gate};
pub(crate) use plimsoll_domain::plan_file::{parse, section};
use plimsoll_domain::policy::Policy;

use crate::exit::{Exit, Failure};
use crate::spec::Requests;
use confined::Confined;
pub use phases::SHORTEST_MS;
use section::nearest;
pub use testbed::Names;
use trust::Trust;
pub use trust::{Limits, Listed};
pub use values::{duration_text, rising};

/// A plan asks for no more workers than this, in any phase.
pub const MAX_WORKERS: u32 = 100_000;

/// Looks up an environment variable.
pub type Environment<'e> = &'e dyn Fn(&str) -> Option<String>;

/// What flags override.
#[derive(Debug, Clone, Default)]
pub struct Overrides {
    pub profile: Option<Profile>,
    pub project: Option<ProjectSlug>,
    /// Without a path it keeps the plan's.
    pub url: Option<String>,
    /// Rising, from 1.
    pub staircase: Option<Vec<u32>>,
    pub step_ms: Option<u64>,
    pub stability_ms: Option<u64>,
}

/// A plan that was read.
#[derive(Debug)]
pub struct Loaded {
    pub path: PathBuf,
    pub project: ProjectSlug,
    pub plan: Plan,
    pub requests: Requests,
    pub policy: Policy,
    pub testbed: Names,
}

impl Loaded {
    /// The folder of the plan: workload files and the checkout are looked for there.
    pub fn folder(&self) -> &Path {
        folder(&self.path)
    }
}

/// Reads a plan. Errors say file, line, key and what to do.
pub fn load(path: &Path, given: &Overrides, environment: Environment) -> Result<Loaded, PlanError> {
    read(&open(path)?, given, environment, Trust::Own)
}

/// Reads a plan that came with a revision: from `checkout`, by a path below it, without following links. It may name
/// only what is `listed`.
pub fn load_listed(
    checkout: &Confined,
    path: &str,
    given: &Overrides,
    environment: Environment,
    listed: &Listed,
) -> Result<Loaded, PlanError> {
    let shown = Path::new(path);
    let broken = |why: String| PlanError::whole(shown, why);
    let (folder, name) = path.rsplit_once('/').unwrap_or(("", path));
    let folder = checkout.folder(folder).map_err(broken)?;
    let source = source(shown, folder.file(name).map_err(broken)?)?;
    let environment = |name: &str| listed.environment.iter().any(|known| known == name).then(|| environment(name))?;
    read(&source, given, &environment, Trust::Listed(&folder, listed))
}

/// Checks a text as if it lay at `path`.
pub fn check_text(path: &Path, text: &str, given: &Overrides, environment: Environment) -> Result<Loaded, PlanError> {
    read(&Source { path: path.to_owned(), text: text.to_owned() }, given, environment, Trust::Own)
}

fn read(source: &Source, given: &Overrides, environment: Environment, trust: Trust<'_>) -> Result<Loaded, PlanError> {
    let path = &source.path;
    let root = parse(source)?;
    let top = plan_file::top(source, root.get_ref())?;
    let project = match &given.project {
        Some(project) => project.clone(),
        None => plan_file::project(&top)?,
    };
    let profile = match given.profile {
        Some(profile) => profile,
        None => top.get("profile").map_or(Ok(Profile::Standard), |field| profile_named(&field))?,
    };
    trust.names(&top)?;
    let work = workload::read(&top, folder(path), trust)?;
    let sent = service::read(&top, work.has_body(), given, environment)?;
    let phases = phases::read(&top, profile, given)?;
    let loaded = Loaded {
        path: path.to_owned(),
        project,
        policy: gate::policy(&top)?,
        testbed: testbed::names(&top)?,
        requests: Requests {
            url: sent.url,
            method: sent.service.method.clone(),
            headers: sent.headers,
            bodies: work.bodies,
        },
        plan: Plan { profile, service: sent.service, workload: work.workload, phases },
    };
    trust.allows(&top, &loaded)?;
    Ok(loaded)
}

/// Reads only the project and the thresholds: what `policy push` and `compare --plan` need.
pub fn load_gate(path: &Path) -> Result<(Option<ProjectSlug>, Policy), PlanError> {
    let gate = plan_file::read_gate(path, &open(path)?.text)?;
    Ok((gate.project, gate.policy.unwrap_or_default()))
}

fn folder(path: &Path) -> &Path {
    match path.parent() {
        Some(parent) if !parent.as_os_str().is_empty() => parent,
        _ => Path::new("."),
    }
}

fn open(path: &Path) -> Result<Source, PlanError> {
    let broken = |why: &str| PlanError::whole(path, why);
    let file = File::open(path).map_err(|error| match error.kind() {
        std::io::ErrorKind::NotFound => {
            broken("there is no such file").hint("`plimsoll init` writes a first plan; --plan names another file")
        }
        _ => broken(&error.to_string()),
    })?;
    source(path, file)
}

/// The text of a file, whose name is for messages.
pub(crate) fn source(path: &Path, file: File) -> Result<Source, PlanError> {
    let broken = |why: &str| PlanError::whole(path, why);
    let mut bytes = Vec::new();
    file.take(MAX_BYTES + 1).read_to_end(&mut bytes).map_err(|error| broken(&error.to_string()))?;
    if bytes.len() as u64 > MAX_BYTES {
        return Err(broken("the file is larger than 1 MiB"));
    }
    let text = String::from_utf8(bytes).map_err(|_| broken("the file is not UTF-8 text"))?;
    Ok(Source { path: path.to_owned(), text })
}

impl From<PlanError> for Failure {
    fn from(error: PlanError) -> Self {
        Self {
            kind: "plan",
            exit: Exit::Usage,
            message: error.to_string(),
            excerpt: error.excerpt().map(ToOwned::to_owned),
            hint: error.advice().map(ToOwned::to_owned),
            report: None,
        }
    }
}

/// The profiles by name.
pub const PROFILES: [(&str, Profile); 3] =
    [("standard", Profile::Standard), ("pr", Profile::Pr), ("quick", Profile::Quick)];

fn profile_named(field: &section::Field<'_>) -> Result<Profile, PlanError> {
    let name = field.string()?;
    let known = PROFILES.map(|(name, _)| name);
    PROFILES.iter().find(|(known, _)| *known == name).map(|(_, profile)| *profile).ok_or_else(|| {
        let near = nearest(name, &known);
        let hint =
            near.map_or_else(|| format!("known: {}", known.join(", ")), |near| format!("did you mean {near:?}?"));
        field.error(format!("is no profile: {name:?}")).hint(hint)
    })
}

/// A profile's name on the command line and on screen.
pub fn profile_name(profile: Profile) -> &'static str {
    PROFILES.iter().find(|(_, known)| *known == profile).map_or("standard", |(name, _)| name)
}

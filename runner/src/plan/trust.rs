//! What a plan may do that comes with a revision: the runner's own configuration lists it, and each refusal says what
//! there would allow it.

use super::confined::Confined;
use super::section::{Field, Section};
use super::source::PlanError;
use super::{Loaded, values};

/// Whose plan it is.
#[derive(Debug, Clone, Copy)]
pub(super) enum Trust<'t> {
    /// Of the person who runs it.
    Own,
    /// Anybody's: files come from this folder, the plan's, and it may name what is listed.
    Listed(&'t Confined, &'t Listed),
}

/// What somebody else's plan may name.
#[derive(Debug, Clone)]
pub struct Listed {
    /// As `scheme://host:port`, a default port left out.
    pub origins: Vec<String>,
    /// Names in `${NAME}`.
    pub environment: Vec<String>,
    pub limits: Limits,
    /// Where the lists are, for messages: `[project.NAME] of the runner's runner.toml`.
    pub place: String,
}

/// How much of the host and of its time a plan may take.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Limits {
    pub max_workers: u32,
    pub max_duration_ms: u64,
    /// Of one request.
    pub max_body_bytes: u64,
}

impl Default for Limits {
    fn default() -> Self {
        Self { max_workers: 1_000, max_duration_ms: 2 * 3_600_000, max_body_bytes: 16 << 20 }
    }
}

impl Trust<'_> {
    /// Before anything is looked up in the environment.
    pub(super) fn names(self, top: &Section) -> Result<(), PlanError> {
        let Self::Listed(_, listed) = self else { return Ok(()) };
        for field in top.open("service")?.open("headers")?.fields() {
            for name in field.string()?.split("${").skip(1).filter_map(|rest| rest.split('}').next()) {
                if !listed.environment.iter().any(|known| known == name) {
                    return Err(field
                        .error(format!(
                            "uses the environment variable {name:?}, which this runner does not give to plans"
                        ))
                        .hint(format!("add {name:?} to `plan_environment` in {} to allow it", listed.place)));
                }
            }
        }
        Ok(())
    }

    /// Once it is read.
    pub(super) fn allows(self, top: &Section, loaded: &Loaded) -> Result<(), PlanError> {
        match self {
            Self::Own => Ok(()),
            Self::Listed(_, listed) => Judge { top, loaded, listed }.all(),
        }
    }
}

struct Judge<'j> {
    top: &'j Section<'j>,
    loaded: &'j Loaded,
    listed: &'j Listed,
}

impl Judge<'_> {
    fn all(&self) -> Result<(), PlanError> {
        let Self { listed, loaded, .. } = self;
        let origin = &loaded.plan.service.origin;
        if !listed.origins.contains(origin) {
            let why = format!("would send load to {origin}, which this runner does not allow");
            // Added, since what is listed stays allowed.
            let hint = format!("add {origin:?} to `origins` in {} to allow it", listed.place);
            return Err(self.refuse("service", "url", &why, hint));
        }
        self.workers()?;
        self.bodies()?;
        self.duration()
    }

    fn workers(&self) -> Result<(), PlanError> {
        let phases = &self.loaded.plan.phases;
        let stability = phases.stability.workers.unwrap_or(0);
        let most = self.listed.limits.max_workers;
        for (section, key, workers) in [
            ("stability", "workers", stability),
            ("staircase", "workers", phases.staircase.workers.last().copied().unwrap_or(0)),
            ("staircase", "max_workers", if phases.staircase.search { phases.staircase.max_workers } else { 0 }),
        ] {
            if workers > most {
                let why = format!("asks for {workers} workers; this runner allows {most}");
                return Err(self.refuse(section, key, &why, limit(format!("max_workers = {workers}"))));
            }
        }
        Ok(())
    }

    fn bodies(&self) -> Result<(), PlanError> {
        let longest = self.loaded.requests.bodies.iter().map(Vec::len).max().unwrap_or(0) as u64;
        let most = self.listed.limits.max_body_bytes;
        if longest <= most {
            return Ok(());
        }
        let key = if self.field("workload", "file").is_some() { "file" } else { "body" };
        let why = format!("holds a request of {longest} bytes; this runner allows {most}");
        Err(self.refuse("workload", key, &why, limit(format!("max_body_bytes = {longest}"))))
    }

    /// What the phases take as planned. A search or an extension that goes on past the limit is cut off by the clock.
    fn duration(&self) -> Result<(), PlanError> {
        let phases = &self.loaded.plan.phases;
        let stairs = phases.staircase.step_ms.saturating_mul(phases.staircase.workers.len() as u64);
        let parts = [
            phases.smoke.duration_ms,
            phases.warm_up.max_duration_ms,
            phases.warm_up.top_ms,
            stairs,
            phases.stability.duration_ms,
        ];
        let planned = parts.into_iter().fold(0, u64::saturating_add);
        let most = self.listed.limits.max_duration_ms;
        if planned <= most {
            return Ok(());
        }
        let (section, key) =
            if stairs > phases.stability.duration_ms { ("staircase", "step") } else { ("stability", "duration") };
        let text = values::duration_text;
        let why = format!("makes the run {} long; this runner allows {}", text(planned), text(most));
        Err(self.refuse(section, key, &why, limit(format!("max_duration = {:?}", text(planned)))))
    }

    /// At the value, or about the plan as a whole where it is a default.
    fn refuse(&self, section: &str, key: &str, why: &str, hint: String) -> PlanError {
        let error = match self.field(section, key) {
            Some(field) => field.error(why),
            None => PlanError::whole(&self.loaded.path, format!("`{section}.{key}` {why}")),
        };
        error.hint(hint)
    }

    fn field(&self, section: &str, key: &str) -> Option<Field<'_>> {
        self.top.open(section).ok()?.get(key)
    }
}

fn limit(line: String) -> String {
    format!("`{line}` in [limits] of the runner's runner.toml would allow it")
}

//! Values that `runner.toml` has in several places.

use std::path::PathBuf;
use std::time::Duration;

use plimsoll_domain::job;

use crate::plan::PlanError;
use crate::plan::section::{Field, Section};

pub(super) fn text(section: &Section, key: &str) -> Result<Option<String>, PlanError> {
    section.get(key).map(|field| name(&field)).transpose()
}

pub(super) fn name(field: &Field) -> Result<String, PlanError> {
    let text = field.string()?;
    job::check_name(text).map(|()| text.to_owned()).map_err(|why| field.error(format!("is wrong: {why}")))
}

/// A list of names; none when it is not there.
pub(super) fn names(section: &Section, key: &str) -> Result<Vec<String>, PlanError> {
    let Some(field) = section.get(key) else { return Ok(Vec::new()) };
    field.elements()?.iter().map(name).collect()
}

/// Names of environment variables.
pub(super) fn variables(section: &Section, key: &str) -> Result<Vec<String>, PlanError> {
    let Some(field) = section.get(key) else { return Ok(Vec::new()) };
    field.elements()?.iter().map(|element| variable(element, element.string()?)).collect()
}

/// A name that an environment variable can have, and that the agent does not set or keep for itself.
pub(super) fn variable(field: &Field, name: &str) -> Result<String, PlanError> {
    let fits = |c: char| c.is_ascii_alphanumeric() || c == '_';
    if name.is_empty() || name.len() > 200 || !name.chars().all(fits) || name.starts_with(|c: char| c.is_ascii_digit())
    {
        return Err(field.error(format!("is wrong: {name:?} is no name of an environment variable")));
    }
    if name.starts_with("PLIMSOLL_") {
        return Err(field
            .error(format!("is wrong: {name} belongs to the agent"))
            .hint("the agent sets PLIMSOLL_RUN_ID and its like, and its token is for nobody else"));
    }
    Ok(name.to_owned())
}

/// An absolute path: the agent's own folder says nothing.
pub(super) fn path(section: &Section, key: &str) -> Result<Option<PathBuf>, PlanError> {
    let read = |field: Field| {
        let path = PathBuf::from(field.string()?);
        if path.is_absolute() { Ok(path) } else { Err(field.error("must be a whole path, beginning with `/`")) }
    };
    section.get(key).map(read).transpose()
}

pub(super) fn duration(section: &Section, key: &str, default: Duration) -> Result<Duration, PlanError> {
    section.get(key).map_or(Ok(default), |field| field.duration_ms(10).map(Duration::from_millis))
}

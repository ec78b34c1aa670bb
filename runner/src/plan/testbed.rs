//! `[testbed]`: what people call the host.

use std::collections::BTreeMap;

use super::section::{Field, Section};
use super::source::PlanError;

/// The name and the labels of the host.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Names {
    pub name: Option<String>,
    pub labels: BTreeMap<String, String>,
}

pub(super) fn names(top: &Section) -> Result<Names, PlanError> {
    let section = top.sub("testbed", &["name", "labels"])?;
    let name = section.get("name").map(|field| text(&field)).transpose()?;
    let fields = section.open("labels")?.fields();
    let labels = fields.iter().map(|field| Ok((field.key.clone(), text(field)?)));
    Ok(Names { name, labels: labels.collect::<Result<_, PlanError>>()? })
}

/// Short text that pages will show.
fn text(field: &Field<'_>) -> Result<String, PlanError> {
    let text = field.string()?;
    match text.chars().count() {
        0 => Err(field.error("is empty")),
        1..=100 => Ok(text.to_owned()),
        long => Err(field.error(format!("has {long} characters; at most 100 are shown"))),
    }
}

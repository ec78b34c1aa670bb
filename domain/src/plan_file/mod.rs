//! `plimsoll.toml` as text: what everybody who reads a part of it shares. The runner reads all of it; the server reads
//! whose it is and the gate. Nothing here opens a file.

pub mod gate;
pub mod section;
pub mod source;
pub mod values;

use std::path::Path;

use toml::de::DeTable;

use crate::ids::{BadName, ProjectSlug};
use crate::policy::Policy;
use section::Section;
use source::{PlanError, Source};

/// The file that is looked for.
pub const FILE: &str = "plimsoll.toml";
/// A plan larger than this is refused.
pub const MAX_BYTES: u64 = 1 << 20;

const SECTIONS: [&str; 10] =
    ["project", "profile", "service", "workload", "smoke", "warm_up", "staircase", "stability", "gate", "testbed"];

/// Whose plan it is, and by which thresholds it is judged.
#[derive(Debug, Clone, PartialEq)]
pub struct Gate {
    pub project: Option<ProjectSlug>,
    /// `None` without a `[gate]`.
    pub policy: Option<Policy>,
}

/// Reads no more of a plan than that, and that its sections are known.
pub fn read_gate(path: &Path, text: &str) -> Result<Gate, PlanError> {
    let source = Source { path: path.to_owned(), text: text.to_owned() };
    let root = parse(&source)?;
    let top = top(&source, root.get_ref())?;
    let project = top.get("project").map(|_| project(&top)).transpose()?;
    let policy = top.get("gate").map(|_| gate::policy(&top)).transpose()?;
    Ok(Gate { project, policy })
}

/// Any file of ours that is written so.
pub fn parse(source: &Source) -> Result<toml::Spanned<DeTable<'_>>, PlanError> {
    DeTable::parse(&source.text).map_err(|error| {
        let message = error.message().trim().replace('\n', "; ");
        match error.span() {
            Some(span) => source.error(span, format!("not TOML: {message}")),
            None => PlanError::whole(&source.path, format!("not TOML: {message}")),
        }
    })
}

/// The top of a plan.
pub fn top<'s>(source: &'s Source, root: &'s DeTable<'s>) -> Result<Section<'s>, PlanError> {
    Section::top(source, root, &SECTIONS)
}

pub fn project(top: &Section<'_>) -> Result<ProjectSlug, PlanError> {
    let field = top.need("project", "\"my-service\"")?;
    field.string()?.parse().map_err(|error: BadName| field.error(format!("is wrong: {error}")))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_gate_is_read_without_the_rest() {
        let plan = "project = \"ranker\"\n[service]\nurl = \"${HOST}/x\"\n[gate]\np99 = { max_increase = \"20%\" }\n";
        let gate = read_gate(Path::new(FILE), plan).unwrap();
        assert_eq!(gate.project.unwrap().as_str(), "ranker");
        assert_eq!(gate.policy, Some(Policy { p99_increase: 0.2, ..Policy::default() }));
        let silent = read_gate(Path::new(FILE), "").unwrap();
        assert_eq!(silent, Gate { project: None, policy: None });
    }

    #[test]
    fn what_is_wrong_says_where_and_what_to_do() {
        let broken = |text: &str| read_gate(Path::new("bench/plimsoll.toml"), text).unwrap_err();
        let slip = broken("[gate]\np9 = 1\n");
        assert_eq!(slip.to_string(), "bench/plimsoll.toml:2:1: unknown key `p9` in [gate]");
        assert!(slip.excerpt().unwrap().contains("p9 = 1") && slip.advice().unwrap().contains("`p99`"), "{slip:?}");
        assert!(broken("project = \"No Name\"").to_string().contains("`project` is wrong"));
        assert!(broken("[gate").to_string().contains("not TOML"));
    }
}

//! What commands see of a job: environment variables, and nothing in their lines.

use std::path::Path;

use plimsoll_domain::ids::RunId;
use plimsoll_domain::job::Wanted;

use super::config::{Config, Image, Recipe};
use super::tree::RUN_ID;
use crate::plan::Environment;

/// A run as its commands know it.
#[derive(Debug, Clone)]
pub(super) struct Facts<'f> {
    pub(super) run: RunId,
    pub(super) wanted: &'f Wanted,
    /// What the revision was resolved to.
    pub(super) commit: Option<String>,
    pub(super) plan: &'f str,
    pub(super) checkout: Option<&'f Path>,
    pub(super) image: Option<String>,
}

impl Facts<'_> {
    /// The whole environment of a command: little of the agent's own, what the recipe says, the facts.
    pub(super) fn environment(&self, config: &Config, recipe: &Recipe, own: Environment) -> Vec<(String, String)> {
        let mut all = least(own);
        let mut set = |name: &str, value: String| match all.iter_mut().find(|(known, _)| known == name) {
            Some((_, old)) => *old = value,
            None => all.push((name.to_owned(), value)),
        };
        if !config.gpus.is_empty() {
            // The numbers that NVML and this file use.
            set("CUDA_DEVICE_ORDER", "PCI_BUS_ID".to_owned());
            set("CUDA_VISIBLE_DEVICES", config.gpus.join(","));
        }
        for name in &recipe.inherit {
            if let Some(value) = own(name) {
                set(name, value);
            }
        }
        for (name, value) in &recipe.environment {
            set(name, value.clone());
        }
        set(RUN_ID, self.run.to_string());
        set("PLIMSOLL_PROJECT", recipe.project.to_string());
        set("PLIMSOLL_PLAN", self.plan.to_owned());
        let optional = [
            ("PLIMSOLL_COMMIT", self.commit.clone()),
            ("PLIMSOLL_TAG", self.wanted.tag.clone()),
            ("PLIMSOLL_BRANCH", self.wanted.branch.clone()),
            ("PLIMSOLL_PULL_REQUEST", self.wanted.pull_request.map(|number| number.to_string())),
            ("PLIMSOLL_CHECKOUT", self.checkout.map(|path| path.display().to_string())),
            ("PLIMSOLL_IMAGE", self.image.clone()),
        ];
        for (name, value) in optional {
            if let Some(value) = value {
                set(name, value);
            }
        }
        all
    }
}

/// What a program can hardly do without.
pub(super) fn least(own: Environment) -> Vec<(String, String)> {
    let default = |name: &str| match name {
        "PATH" => Some("/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin".to_owned()),
        _ => None,
    };
    let pair = |name: &str| Some((name.to_owned(), own(name).or_else(|| default(name))?));
    ["PATH", "HOME", "LANG"].into_iter().filter_map(pair).collect()
}

/// The image of a revision: its tag is the revision's tag, else the commit.
pub(super) fn image(image: &Image, tag: Option<&str>, commit: Option<&str>) -> Result<String, String> {
    let Some(tag) = tag.or(commit) else {
        return Err("the job names neither a tag nor a commit, by which an image is told".to_owned());
    };
    let first = |c: char| c.is_ascii_alphanumeric() || c == '_';
    let fits = |c: char| c.is_ascii_alphanumeric() || "_.-".contains(c);
    if tag.len() > 128 || !tag.starts_with(first) || !tag.chars().all(fits) {
        return Err(format!("{tag:?} is no tag that an image can have"));
    }
    Ok(format!("{}:{tag}", image.name))
}

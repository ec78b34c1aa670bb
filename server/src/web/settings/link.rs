//! The repository of a project as a form: lists are written a line each.

use std::collections::BTreeMap;

use axum::http::StatusCode;
use serde::Deserialize;

use super::filled;
use crate::access::{Caller, Scope};
use crate::error::{AppError, Result};
use crate::state::AppState;
use crate::store::github::links::Link;
use crate::store::github::repositories::Repository;
use crate::tasks::links::{PLAN, QUEUE_MINUTES, Wanted};

#[derive(Debug, Deserialize)]
pub(in crate::web) struct Form {
    repository: String,
    plan: Option<String>,
    paths: Option<String>,
    tags: Option<String>,
    labels: Option<String>,
    queue_minutes: Option<String>,
}

/// What the section shows.
#[derive(Debug)]
pub(super) struct Shown {
    /// The server acts as an App.
    pub(super) configured: bool,
    /// It is linked.
    pub(super) linked: bool,
    pub(super) lead: String,
    pub(super) repository: String,
    /// Its page.
    pub(super) url: Option<String>,
    pub(super) plan: String,
    pub(super) paths: String,
    pub(super) tags: String,
    pub(super) labels: String,
    pub(super) queue_minutes: String,
    /// The caller may choose another repository.
    pub(super) chooses: bool,
    /// What is wrong, and does not come from the form.
    pub(super) wrong: Option<String>,
}

impl Form {
    pub(super) fn read(&self) -> Result<Wanted> {
        let unfit = |why: &str| AppError::new(StatusCode::UNPROCESSABLE_ENTITY, why);
        let queue_minutes = match filled(self.queue_minutes.as_deref()) {
            Some(text) => text.parse().map_err(|_| unfit("the merge queue's minutes: write a number from 5 to 360"))?,
            None => QUEUE_MINUTES,
        };
        let labels = lines(self.labels.as_deref()).map(|line| match line.split_once('=') {
            Some((key, value)) => Ok((key.trim().to_owned(), value.trim().to_owned())),
            None => Err(unfit("labels: write each on a line of its own, as NAME=VALUE")),
        });
        Ok(Wanted {
            repository: self.repository.trim().to_owned(),
            plan: filled(self.plan.as_deref()).unwrap_or(PLAN).to_owned(),
            paths: lines(self.paths.as_deref()).map(ToOwned::to_owned).collect(),
            tags: filled(self.tags.as_deref()).map(ToOwned::to_owned),
            labels: labels.collect::<Result<BTreeMap<_, _>>>()?,
            queue_minutes,
        })
    }

    /// As it was filled in.
    pub(super) fn shown(self, shown: Shown) -> Shown {
        Shown {
            repository: self.repository,
            plan: self.plan.unwrap_or_default(),
            paths: self.paths.unwrap_or_default(),
            tags: self.tags.unwrap_or_default(),
            labels: self.labels.unwrap_or_default(),
            queue_minutes: self.queue_minutes.unwrap_or_default(),
            ..shown
        }
    }
}

fn lines(text: Option<&str>) -> impl Iterator<Item = &str> {
    text.unwrap_or_default().lines().map(str::trim).filter(|line| !line.is_empty())
}

impl Shown {
    pub(super) fn of(state: &AppState, caller: &Caller, linked: Option<(Link, Repository)>) -> Self {
        let configured = state.app().is_some();
        let chooses = caller.may_everywhere(Scope::Admin);
        let Some((link, repository)) = linked else {
            return Self {
                configured,
                linked: false,
                lead: "None: tags, pushes and pull requests do not start runs of this project by themselves."
                    .to_owned(),
                repository: String::new(),
                url: None,
                plan: PLAN.to_owned(),
                paths: String::new(),
                tags: String::new(),
                labels: String::new(),
                queue_minutes: QUEUE_MINUTES.to_string(),
                chooses,
                wrong: None,
            };
        };
        let lead = match &link.read_commit {
            Some(commit) => {
                format!("Plan and policy are those of {}, on {}.", commit.short(), repository.default_branch)
            }
            None => format!("Plan and policy are read at the next push to {}.", repository.default_branch),
        };
        let broken = |why: &String| format!("The plan could not be read, so the policy from before holds: {why}");
        let wrong = match repository.reachable {
            true => link.read_error.as_ref().map(broken),
            false => Some("The GitHub App does not reach this repository any more: install it there again.".to_owned()),
        };
        let labels: Vec<String> = link.labels.iter().map(|(key, value)| format!("{key}={value}")).collect();
        Self {
            configured,
            linked: true,
            lead,
            url: Some(format!("{}/{}", state.github_site().url, repository.full_name)),
            repository: repository.full_name,
            plan: link.plan,
            paths: link.paths.join("\n"),
            tags: link.tags.unwrap_or_default(),
            labels: labels.join("\n"),
            queue_minutes: link.queue_minutes.to_string(),
            chooses,
            wrong,
        }
    }
}

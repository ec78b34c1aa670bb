//! Which repository a project is measured from, as administrators say it, by the command line, the API or the pages:
//! each act with its line in the audit log.

use std::collections::BTreeMap;

use plimsoll_domain::ids::{CommitSha, ProjectSlug};
use plimsoll_domain::job::{check_labels, check_name, check_path};
use serde::{Deserialize, Serialize};
use serde_json::json;

use super::github::check_glob;
use super::github::start::BY_ITSELF;
use super::{Error, Result};
use crate::access::{Caller, Scope};
use crate::github::{Client, Place};
use crate::state::AppState;
use crate::store::audit::{self, Entry};
use crate::store::github::links::{self, Link, NewLink};
use crate::store::github::repositories::{self, Repository};
use crate::store::github::tags;
use crate::store::projects::{self, Visibility};
use crate::store::{self, Pool, Transaction};

/// How a project is linked to a repository.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, utoipa::ToSchema)]
#[serde(deny_unknown_fields, expecting = "an object with repository")]
#[schema(as = ProjectLink)]
pub struct Wanted {
    /// As `owner/name`: one that the GitHub App is installed on.
    #[schema(example = "octo/ranker")]
    pub repository: String,
    /// Path of the plan in it.
    #[serde(default = "plan")]
    pub plan: String,
    /// Globs of which one must match a changed file; empty matches every file.
    #[serde(default)]
    pub paths: Vec<String>,
    /// A glob; without one, every tag that is a semantic version.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub tags: Option<String>,
    /// What a runner must have, for example `gpu` = `A10`.
    #[serde(default)]
    pub labels: BTreeMap<String, String>,
    /// How long a merge queue waits for the check.
    #[serde(default = "queue_minutes")]
    #[schema(minimum = 5, maximum = 360)]
    pub queue_minutes: i32,
}

pub const PLAN: &str = "plimsoll.toml";
pub const QUEUE_MINUTES: i32 = 60;
const MAX_PATHS: usize = 50;

fn plan() -> String {
    PLAN.to_owned()
}

fn queue_minutes() -> i32 {
    QUEUE_MINUTES
}

impl Wanted {
    /// Without anything said but the repository.
    pub(super) fn from_name(repository: &str) -> Self {
        Self {
            repository: repository.to_owned(),
            plan: plan(),
            paths: Vec::new(),
            tags: None,
            labels: BTreeMap::new(),
            queue_minutes: QUEUE_MINUTES,
        }
    }

    /// As it is now.
    pub fn of(link: Link, repository: &Repository) -> Self {
        let Link { plan, paths, tags, labels, queue_minutes, .. } = link;
        Self { repository: repository.full_name.clone(), plan, paths, tags, labels, queue_minutes }
    }

    /// Says which field is wrong, and how.
    fn check(&self) -> Result<(), String> {
        let named = self.repository.split_once('/').is_some_and(|(owner, name)| {
            [owner, name].iter().all(|part| check_name(part).is_ok() && !part.contains(['/', ' ']))
        });
        if !named {
            return Err("repository: write it as OWNER/NAME".to_owned());
        }
        check_path(&self.plan).map_err(|why| format!("plan: {why}"))?;
        if self.paths.len() > MAX_PATHS {
            return Err(format!("paths: more than {MAX_PATHS}"));
        }
        for path in &self.paths {
            check_glob(path).map_err(|why| format!("paths: {path:?}: {why}"))?;
        }
        if let Some(tags) = &self.tags {
            check_glob(tags).map_err(|why| format!("tags: {tags:?}: {why}"))?;
        }
        check_labels(&self.labels)?;
        match self.queue_minutes {
            5..=360 => Ok(()),
            other => Err(format!("queue_minutes: {other} is not from 5 to 360")),
        }
    }
}

/// What was done.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Linked {
    pub repository: Repository,
    /// It was not linked to this repository before.
    pub new: bool,
    /// Tags that exist and are not measured. `None`: GitHub was not asked.
    pub tags: Option<usize>,
}

/// A project, as it is linked. `None` when it is not.
pub async fn get(pool: &Pool, project: &ProjectSlug) -> Result<Option<(Link, Repository)>> {
    let Some(link) = links::get(pool, project).await? else { return Ok(None) };
    let repository = repositories::get(pool, link.repository).await?;
    let repository = repository.ok_or_else(|| Error::internal("a link without its repository"))?;
    Ok(Some((link, repository)))
}

/// For the sender of a request. How a project is linked is its administrators' to say; to which repository, only an
/// administrator of the server: what a plan there says is shown, and checks and comments are written there.
pub async fn set(state: &AppState, caller: &Caller, project: &ProjectSlug, wanted: &Wanted) -> Result<Linked> {
    let former = get(state.pool(), project).await?;
    let same = former.is_some_and(|(_, repository)| repository.full_name.eq_ignore_ascii_case(&wanted.repository));
    if !same {
        caller.require_everywhere(Scope::Admin)?;
    }
    let linked = put(state.pool(), state.app(), caller.entry(""), project, wanted, state.new_projects()).await?;
    // A later push does it too.
    if let Err(error) = super::github::plan::refresh_now(state, project).await {
        tracing::warn!(%error, %project, "the plan of a link is not read yet");
    }
    Ok(linked)
}

/// Links a project, or changes how it is linked. A project that is new is created: with this visibility, or private
/// where the repository is. What is there at this moment stays as it is: with the client its tags are remembered.
pub async fn put(
    pool: &Pool,
    client: Option<&Client>,
    by: Entry,
    project: &ProjectSlug,
    wanted: &Wanted,
    visibility: Visibility,
) -> Result<Linked> {
    wanted.check().map_err(Error::Unfit)?;
    let repository = repositories::named(pool, &wanted.repository).await?.filter(|repository| repository.reachable);
    let repository = repository.ok_or_else(|| Error::Unfit(unreached(&wanted.repository)))?;
    let known = links::get(pool, project).await?.is_some_and(|link| link.repository == repository.id);
    let tags = if known { None } else { existing(client, &repository).await };
    let visibility = if repository.private { Visibility::Private } else { visibility };
    let mut transaction = store::begin(pool).await?;
    projects::ensure(&mut *transaction, project, visibility).await?;
    let new = write(&mut transaction, by, project, &repository, wanted, tags.as_deref()).await?;
    store::commit(transaction).await?;
    Ok(Linked { repository, new, tags: tags.map(|tags| tags.len()) })
}

/// Makes a project for a repository. False when there is one of this name already, which is left alone.
pub(super) async fn found(
    state: &AppState,
    client: &Client,
    project: &ProjectSlug,
    repository: &Repository,
) -> Result<bool> {
    let wanted = Wanted::from_name(&repository.full_name);
    let tags = existing(Some(client), repository).await;
    let visibility = if repository.private { Visibility::Private } else { state.new_projects() };
    let mut transaction = store::begin(state.pool()).await?;
    if !projects::add(&mut *transaction, project, visibility).await? {
        return Ok(false);
    }
    let by = Entry::new(BY_ITSELF, "");
    write(&mut transaction, by, project, repository, &wanted, tags.as_deref()).await?;
    store::commit(transaction).await?;
    Ok(true)
}

async fn write(
    transaction: &mut Transaction,
    by: Entry,
    project: &ProjectSlug,
    repository: &Repository,
    wanted: &Wanted,
    tags: Option<&[(String, CommitSha)]>,
) -> Result<bool> {
    let link = NewLink {
        project,
        repository: repository.id,
        plan: &wanted.plan,
        paths: &wanted.paths,
        tags: wanted.tags.as_deref(),
        labels: &wanted.labels,
        queue_minutes: wanted.queue_minutes,
        created_by: &by.actor,
    };
    let new = links::put(&mut **transaction, &link).await?;
    if let Some(tags) = tags {
        tags::put_all(&mut **transaction, project, tags).await?;
    }
    let entry = by.project(Some(project)).subject(&repository.full_name).detail(json!({ "link": wanted }));
    audit::write(&mut **transaction, &Entry { action: "project.link".to_owned(), ..entry }).await?;
    Ok(new)
}

/// Nothing there starts a run any more. False when it was not linked.
pub async fn remove(pool: &Pool, by: Entry, project: &ProjectSlug) -> Result<bool> {
    let Some((_, repository)) = get(pool, project).await? else { return Ok(false) };
    let mut transaction = store::begin(pool).await?;
    if !links::remove(&mut *transaction, project).await? {
        return Ok(false);
    }
    let entry = by.project(Some(project)).subject(&repository.full_name);
    audit::write(&mut *transaction, &Entry { action: "project.unlink".to_owned(), ..entry }).await?;
    store::commit(transaction).await?;
    Ok(true)
}

fn unreached(repository: &str) -> String {
    format!(
        "repository: the GitHub App does not reach {repository}, as far as this server knows: install the App there (on \
         GitHub: the App's page, Install, and choose the repository), and link it again once GitHub has told this server"
    )
}

/// The tags that are there, if GitHub tells them; without that, whoever looks for tags that were missed finds them.
async fn existing(client: Option<&Client>, repository: &Repository) -> Option<Vec<(String, CommitSha)>> {
    let place = Place::from(repository);
    match client?.at(&place).tags().await {
        Ok(tags) => Some(tags),
        Err(error) => {
            tracing::warn!(%error, repository = repository.full_name, "its tags are not known yet");
            None
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn wanted() -> Wanted {
        serde_json::from_str(r#"{"repository": "octo/ranker"}"#).unwrap()
    }

    #[test]
    fn a_repository_is_enough_and_what_does_not_fit_names_its_field() {
        assert_eq!(wanted().check(), Ok(()));
        let paths = |path: &str| Wanted { paths: vec![path.to_owned()], ..wanted() };
        for (unfit, field) in [
            (Wanted { repository: "ranker".to_owned(), ..wanted() }, "repository: "),
            (Wanted { repository: "octo/ranker/x".to_owned(), ..wanted() }, "repository: "),
            (Wanted { repository: "octo/".to_owned(), ..wanted() }, "repository: "),
            (Wanted { plan: "../plimsoll.toml".to_owned(), ..wanted() }, "plan: "),
            (paths("src/["), "paths: \"src/[\": "),
            (paths(""), "paths: "),
            (Wanted { paths: vec!["x".to_owned(); 51], ..wanted() }, "paths: more than 50"),
            (Wanted { tags: Some("v{".to_owned()), ..wanted() }, "tags: "),
            (Wanted { labels: BTreeMap::from([("gpu".to_owned(), String::new())]), ..wanted() }, "labels: "),
            (Wanted { queue_minutes: 4, ..wanted() }, "queue_minutes: "),
        ] {
            let why = unfit.check().unwrap_err();
            assert!(why.starts_with(field), "{field}: {why}");
        }
    }
}

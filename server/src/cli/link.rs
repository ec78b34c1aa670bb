//! `plimsoll-server project link` and `unlink`.

use std::collections::BTreeMap;

use plimsoll_domain::ids::ProjectSlug;
use plimsoll_server::store::audit::Entry;
use plimsoll_server::store::github::links::Link as Linked;
use plimsoll_server::store::github::repositories::Repository;
use plimsoll_server::store::projects::Visibility;
use plimsoll_server::tasks::links::{self, PLAN, QUEUE_MINUTES, Wanted};

use super::CliError;
use super::database::{Database, is_new};

#[derive(Debug, clap::Args)]
pub(super) struct Link {
    #[command(flatten)]
    database: Database,
    project: ProjectSlug,
    /// One that the GitHub App is installed on.
    #[arg(long, value_name = "OWNER/NAME")]
    repository: String,
    /// Path of the plan in the repository.
    #[arg(long, value_name = "PATH", default_value = PLAN)]
    plan: String,
    /// Measure only changes to files that match one of these, such as 'src/**' [default: all]
    #[arg(long, value_name = "GLOB", num_args = 1..)]
    path: Vec<String>,
    /// Measure tags like this [default: those that are semantic versions]
    #[arg(long, value_name = "GLOB")]
    tags: Option<String>,
    /// What a runner must have, such as gpu=A10; may be given several times.
    #[arg(long = "label", value_name = "K=V", value_parser = label)]
    labels: Vec<(String, String)>,
    /// How long a merge queue waits for the check.
    #[arg(long, value_name = "N", default_value_t = QUEUE_MINUTES)]
    queue_minutes: i32,
    /// Who may read the project, if it is new [default: what the server that ran last with the data directory makes new
    /// ones, else private; of a private repository always private]
    #[arg(long, value_name = "VISIBILITY", env = "PLIMSOLL_NEW_PROJECTS")]
    new_projects: Option<Visibility>,
}

#[derive(Debug, clap::Args)]
pub(super) struct Unlink {
    #[command(flatten)]
    database: Database,
    project: ProjectSlug,
}

pub(super) fn link(args: Link) -> Result<(), CliError> {
    let Link { database, project, repository, plan, path, tags, labels, queue_minutes, new_projects } = args;
    let wanted = Wanted { repository, plan, paths: path, tags, labels: BTreeMap::from_iter(labels), queue_minutes };
    let visibility = database.new_projects(new_projects);
    let (linked, is_new) = database.with(async |pool| {
        let is_new = is_new(&pool, Some(&project)).await?;
        let by = Entry::new("console", "");
        Ok((links::put(&pool, None, by, &project, &wanted, visibility).await?, is_new))
    })?;
    if is_new {
        let private = linked.repository.private || visibility == Visibility::Private;
        eprintln!("Project {project} is new, and {}.", if private { "private" } else { "public" });
    }
    eprintln!("Project {project} is measured from {}.", linked.repository.full_name);
    Ok(())
}

pub(super) fn unlink(args: &Unlink) -> Result<(), CliError> {
    let Unlink { database, project } = args;
    let by = Entry::new("console", "");
    match database.with(async |pool| Ok(links::remove(&pool, by, project).await?))? {
        true => eprintln!("Project {project} is not measured from a repository any more."),
        false => return Err(CliError::Misused(format!("project {project} is not linked to a repository"))),
    }
    Ok(())
}

/// For people, a line each.
pub(super) fn lines(link: &Linked, repository: &Repository) -> Vec<String> {
    let mut lines = vec![format!("repository {}", repository.full_name), format!("plan {}", link.plan)];
    lines.extend(link.paths.iter().map(|path| format!("path {path}")));
    lines.extend(link.tags.iter().map(|tags| format!("tags {tags}")));
    lines.extend(link.labels.iter().map(|(key, value)| format!("label {key}={value}")));
    lines.push(format!("merge queue waits {} minutes", link.queue_minutes));
    lines.extend(link.read_commit.iter().map(|commit| format!("plan and policy of {}", commit.short())));
    lines.extend(link.read_error.iter().map(|error| format!("the plan could not be read: {error}")));
    if !repository.reachable {
        lines.push("the GitHub App does not reach this repository any more".to_owned());
    }
    lines
}

fn label(text: &str) -> Result<(String, String), String> {
    let (key, value) = text.split_once('=').ok_or("write it as NAME=VALUE")?;
    Ok((key.to_owned(), value.to_owned()))
}

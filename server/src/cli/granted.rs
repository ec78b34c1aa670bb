//! What `token create` and `member add` share: a scope, for one project or for all.

use plimsoll_domain::ids::ProjectSlug;
use plimsoll_server::access::{Grant, Scope};
use plimsoll_server::store::Pool;
use plimsoll_server::store::projects::Visibility;

use super::CliError;
use super::database::{Database, is_new};

#[derive(Debug, clap::Args)]
pub(super) struct Granted {
    #[command(flatten)]
    database: Database,
    /// What is allowed: read, upload, agent or admin, each including those before it.
    #[arg(long)]
    scope: Scope,
    /// In this project only [default: in all]
    #[arg(long, value_name = "PROJECT")]
    project: Option<ProjectSlug>,
    /// Who may read the project, if it is new [default: what the server that ran last with the data directory makes new
    /// ones, else private]
    #[arg(long, value_name = "VISIBILITY", env = "PLIMSOLL_NEW_PROJECTS")]
    new_projects: Option<Visibility>,
}

impl Granted {
    /// Does it, and says when it made the project too.
    pub(super) fn give<T>(
        self,
        act: impl AsyncFnOnce(&Pool, &Grant, Visibility) -> Result<T, CliError>,
    ) -> Result<T, CliError> {
        let Self { database, scope, project, new_projects } = self;
        let visibility = database.new_projects(new_projects);
        let grant = Grant { scope, project };
        let project = grant.project.clone();
        let (done, is_new) = database.with(async move |pool| {
            let is_new = is_new(&pool, grant.project.as_ref()).await?;
            Ok((act(&pool, &grant, visibility).await?, is_new))
        })?;
        if let Some(project) = project.filter(|_| is_new) {
            eprintln!("Project {project} is new, and {}.", visibility.name());
        }
        Ok(done)
    }
}

/// Where it reaches, in a sentence.
pub(super) fn place(project: Option<&ProjectSlug>) -> String {
    project.map_or("all projects".to_owned(), |project| format!("project {project}"))
}

/// The same in a table.
pub(super) fn cell(project: Option<&ProjectSlug>) -> String {
    project.map_or("all".to_owned(), ToString::to_string)
}

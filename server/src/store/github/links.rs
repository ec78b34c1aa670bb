//! The repository that a project is measured from, and how.

use std::collections::BTreeMap;

use plimsoll_domain::ids::{CommitSha, ProjectSlug};
use sqlx::types::Json;

use super::super::{Executor, Labels, Result, corrupt};

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Link {
    pub project: ProjectSlug,
    pub repository: i64,
    /// Path of the plan in it.
    pub plan: String,
    /// Globs of which one must match a changed file; empty matches every file.
    pub paths: Vec<String>,
    /// A glob; without one, every tag that is a semantic version.
    pub tags: Option<String>,
    /// What a runner must have.
    pub labels: BTreeMap<String, String>,
    /// The newest commit of the default branch whose plan and policy were read.
    pub read_commit: Option<CommitSha>,
    /// What was wrong with them.
    pub read_error: Option<String>,
    /// How long the merge queue waits for the check.
    pub queue_minutes: i32,
    pub created_by: String,
}

/// What people set.
#[derive(Debug, Clone)]
pub struct NewLink<'a> {
    pub project: &'a ProjectSlug,
    pub repository: i64,
    pub plan: &'a str,
    pub paths: &'a [String],
    pub tags: Option<&'a str>,
    pub labels: &'a BTreeMap<String, String>,
    pub queue_minutes: i32,
    pub created_by: &'a str,
}

/// Links a project that there is, or changes how it is linked. True when it was not linked to this repository before.
pub async fn put(executor: impl Executor<'_>, link: &NewLink<'_>) -> Result<bool> {
    let new = sqlx::query_scalar!(
        r#"with former as (select repository from github_links where project = $1)
           insert into github_links (project, repository, plan, paths, tags, labels, queue_minutes, created_by)
           values ($1, $2, $3, $4, $5, $6, $7, $8)
           on conflict (project) do update set repository = excluded.repository, plan = excluded.plan,
               paths = excluded.paths, tags = excluded.tags, labels = excluded.labels,
               queue_minutes = excluded.queue_minutes, created_by = excluded.created_by,
               read_commit = null, read_error = null
           returning not exists (select 1 from former where repository = $2) as "new!""#,
        link.project.as_str(),
        link.repository,
        link.plan,
        link.paths,
        link.tags,
        Json(link.labels) as _,
        link.queue_minutes,
        link.created_by,
    );
    Ok(new.fetch_one(executor).await?)
}

/// False when it was not linked.
pub async fn remove(executor: impl Executor<'_>, project: &ProjectSlug) -> Result<bool> {
    let done = sqlx::query!("delete from github_links where project = $1", project.as_str()).execute(executor).await?;
    Ok(done.rows_affected() > 0)
}

/// Remembers which commit's plan and policy were read, and what was wrong with them.
pub async fn read(
    executor: impl Executor<'_>,
    project: &ProjectSlug,
    commit: &CommitSha,
    error: Option<&str>,
) -> Result<()> {
    sqlx::query!(
        "update github_links set read_commit = $2, read_error = $3 where project = $1",
        project.as_str(),
        commit.as_str(),
        error,
    )
    .execute(executor)
    .await?;
    Ok(())
}

/// For the checked macros.
macro_rules! links {
    ($condition:literal $(, $argument:expr)*) => {
        sqlx::query_as!(
            Row,
            r#"select project, repository, plan, paths, tags, labels as "labels: Labels", read_commit, read_error,
                   queue_minutes, created_by
               from github_links "# + $condition
            $(, $argument)*
        )
    };
}

pub async fn get(executor: impl Executor<'_>, project: &ProjectSlug) -> Result<Option<Link>> {
    let row = links!("where project = $1", project.as_str()).fetch_optional(executor).await?;
    row.map(Link::try_from).transpose()
}

/// The projects that are measured from a repository.
pub async fn of_repository(executor: impl Executor<'_>, repository: i64) -> Result<Vec<Link>> {
    let rows = links!("where repository = $1 order by project", repository).fetch_all(executor).await?;
    rows.into_iter().map(Link::try_from).collect()
}

pub async fn list(executor: impl Executor<'_>, limit: i64) -> Result<Vec<Link>> {
    let rows = links!("order by project limit $1", limit).fetch_all(executor).await?;
    rows.into_iter().map(Link::try_from).collect()
}

struct Row {
    project: String,
    repository: i64,
    plan: String,
    paths: Vec<String>,
    tags: Option<String>,
    labels: Labels,
    read_commit: Option<String>,
    read_error: Option<String>,
    queue_minutes: i32,
    created_by: String,
}

impl TryFrom<Row> for Link {
    type Error = super::super::StoreError;

    fn try_from(row: Row) -> Result<Self> {
        let read_commit = row.read_commit.map(|sha| sha.parse()).transpose();
        Ok(Self {
            project: row.project.parse().map_err(|e| corrupt("project")(format!("{e}")))?,
            repository: row.repository,
            plan: row.plan,
            paths: row.paths,
            tags: row.tags,
            labels: row.labels.0,
            read_commit: read_commit.map_err(|e| corrupt("commit")(format!("{e}")))?,
            read_error: row.read_error,
            queue_minutes: row.queue_minutes,
            created_by: row.created_by,
        })
    }
}

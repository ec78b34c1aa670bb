//! The one comment of a project on a pull request, as far as it is known.

use plimsoll_domain::ids::ProjectSlug;

use super::super::{Executor, Result};

#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Comment {
    /// GitHub's id.
    pub comment: Option<i64>,
    /// A digest of what it says.
    pub told: Option<String>,
}

pub async fn get(
    executor: impl Executor<'_>,
    project: &ProjectSlug,
    repository: i64,
    pull_request: i64,
) -> Result<Comment> {
    let found = sqlx::query_as!(
        Comment,
        "select comment, told from github_comments where project = $1 and repository = $2 and pull_request = $3",
        project.as_str(),
        repository,
        pull_request,
    );
    Ok(found.fetch_optional(executor).await?.unwrap_or_default())
}

/// What GitHub has by now.
pub async fn told(
    executor: impl Executor<'_>,
    project: &ProjectSlug,
    repository: i64,
    pull_request: i64,
    comment: i64,
    told: &str,
) -> Result<()> {
    sqlx::query!(
        "insert into github_comments (project, repository, pull_request, comment, told, told_at)
         values ($1, $2, $3, $4, $5, now())
         on conflict (project, repository, pull_request)
         do update set comment = excluded.comment, told = excluded.told, told_at = excluded.told_at",
        project.as_str(),
        repository,
        pull_request,
        comment,
        told,
    )
    .execute(executor)
    .await?;
    Ok(())
}

//! Tags that are known, measured or not: one run for each name and commit.

use plimsoll_domain::ids::{CommitSha, ProjectSlug};

use super::super::{Executor, Result};

/// Remembers it; false when it was known. Of several that do it at the same time one is told that it is new, once the
/// others' transactions have ended.
pub async fn put(executor: impl Executor<'_>, project: &ProjectSlug, tag: &str, commit: &CommitSha) -> Result<bool> {
    let done = sqlx::query!(
        "insert into github_tags (project, tag, commit_sha) values ($1, $2, $3) on conflict do nothing",
        project.as_str(),
        tag,
        commit.as_str(),
    )
    .execute(executor)
    .await?;
    Ok(done.rows_affected() > 0)
}

/// Remembers many, in one go.
pub async fn put_all(executor: impl Executor<'_>, project: &ProjectSlug, tags: &[(String, CommitSha)]) -> Result<()> {
    let (names, commits): (Vec<_>, Vec<_>) = tags.iter().map(|(tag, sha)| (tag.clone(), sha.to_string())).unzip();
    sqlx::query!(
        "insert into github_tags (project, tag, commit_sha) select $1, * from unnest($2::text[], $3::text[])
         on conflict do nothing",
        project.as_str(),
        &names,
        &commits,
    )
    .execute(executor)
    .await?;
    Ok(())
}

pub async fn is_known(
    executor: impl Executor<'_>,
    project: &ProjectSlug,
    tag: &str,
    commit: &CommitSha,
) -> Result<bool> {
    let found = sqlx::query_scalar!(
        r#"select exists (select 1 from github_tags where project = $1 and tag = $2 and commit_sha = $3) as "exists!""#,
        project.as_str(),
        tag,
        commit.as_str(),
    );
    Ok(found.fetch_one(executor).await?)
}

//! Installations of the App, and the repositories that they reach.

use super::super::{Executor, Result};

/// A repository by GitHub's own id, which outlives a new name.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Repository {
    pub id: i64,
    pub installation: i64,
    /// owner/name
    pub full_name: String,
    pub default_branch: String,
    pub private: bool,
    /// The installation reaches it, and is not suspended.
    pub reachable: bool,
}

/// An installation is there, perhaps again.
pub async fn install(executor: impl Executor<'_>, installation: i64, account: &str) -> Result<()> {
    sqlx::query!(
        "insert into github_installations (id, account) values ($1, $2)
         on conflict (id) do update set account = excluded.account, removed_at = null",
        installation,
        account,
    )
    .execute(executor)
    .await?;
    Ok(())
}

/// An installation was heard of, by an event that may be late: one that is gone is not there again by that. Whether it is
/// there.
pub async fn meet(executor: impl Executor<'_>, installation: i64, account: &str) -> Result<bool> {
    let is_there = sqlx::query_scalar!(
        r#"insert into github_installations as i (id, account) values ($1, $2)
           on conflict (id) do update set account = i.account
           returning removed_at is null as "there!""#,
        installation,
        account,
    );
    Ok(is_there.fetch_one(executor).await?)
}

pub async fn suspend(executor: impl Executor<'_>, installation: i64, suspended: bool) -> Result<()> {
    sqlx::query!("update github_installations set suspended = $2 where id = $1", installation, suspended)
        .execute(executor)
        .await?;
    Ok(())
}

/// It is gone, and reaches nothing any more.
pub async fn uninstall(executor: impl Executor<'_>, installation: i64) -> Result<()> {
    sqlx::query!(
        "with gone as (update github_installations set removed_at = now() where id = $1 returning id)
         update github_repositories set removed_at = now()
         where installation = (select id from gone) and removed_at is null",
        installation,
    )
    .execute(executor)
    .await?;
    Ok(())
}

/// A repository as an event shows it. Not every event knows the default branch.
#[derive(Debug, Clone, Copy)]
pub struct Seen<'a> {
    pub id: i64,
    pub installation: i64,
    pub full_name: &'a str,
    pub default_branch: Option<&'a str>,
    pub private: bool,
}

/// Remembers it; its installation is known.
pub async fn put(executor: impl Executor<'_>, seen: Seen<'_>) -> Result<()> {
    sqlx::query!(
        "insert into github_repositories (id, installation, full_name, default_branch, private)
         values ($1, $2, $3, coalesce($4, 'main'), $5)
         on conflict (id) do update set installation = excluded.installation, full_name = excluded.full_name,
             default_branch = coalesce($4, github_repositories.default_branch), private = excluded.private,
             removed_at = null",
        seen.id,
        seen.installation,
        seen.full_name,
        seen.default_branch,
        seen.private,
    )
    .execute(executor)
    .await?;
    Ok(())
}

/// The installation does not reach it any more.
pub async fn remove(executor: impl Executor<'_>, id: i64) -> Result<()> {
    sqlx::query!("update github_repositories set removed_at = now() where id = $1 and removed_at is null", id)
        .execute(executor)
        .await?;
    Ok(())
}

/// For the checked macros.
macro_rules! repositories {
    ($condition:literal $(, $argument:expr)*) => {
        sqlx::query_as!(
            Repository,
            r#"select r.id, r.installation, r.full_name, r.default_branch, r.private,
                   (r.removed_at is null and i.removed_at is null and not i.suspended) as "reachable!"
               from github_repositories r join github_installations i on i.id = r.installation "# + $condition
            $(, $argument)*
        )
    };
}

pub async fn get(executor: impl Executor<'_>, id: i64) -> Result<Option<Repository>> {
    Ok(repositories!("where r.id = $1", id).fetch_optional(executor).await?)
}

/// By its name, whatever its case; of several that had it the one that is reached.
pub async fn named(executor: impl Executor<'_>, full_name: &str) -> Result<Option<Repository>> {
    let found = repositories!(
        "where lower(r.full_name) = lower($1) order by r.removed_at desc nulls first, r.id desc limit 1",
        full_name
    );
    Ok(found.fetch_optional(executor).await?)
}

/// Those that are reached, by name.
pub async fn list(executor: impl Executor<'_>, limit: i64) -> Result<Vec<Repository>> {
    let found = repositories!(
        "where r.removed_at is null and i.removed_at is null order by lower(r.full_name), r.id limit $1",
        limit
    );
    Ok(found.fetch_all(executor).await?)
}

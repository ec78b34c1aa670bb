//! Projects and their policies.

use plimsoll_domain::ids::{ProjectSlug, RunId};
use plimsoll_domain::policy::Policy;
use serde::{Deserialize, Serialize};
use sqlx::types::Json;

use super::snapshots::{self, SnapshotRow};
use super::{Executor, Pool, Result, corrupt};

#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Project {
    pub slug: ProjectSlug,
    pub policy: Policy,
}

/// Who may read a project.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize, utoipa::ToSchema)]
#[serde(rename_all = "snake_case")]
pub enum Visibility {
    /// Everybody who can connect.
    #[default]
    Public,
    /// Who has a token or a membership for it.
    Private,
}

impl Visibility {
    pub fn name(self) -> &'static str {
        match self {
            Self::Public => "public",
            Self::Private => "private",
        }
    }
}

impl std::str::FromStr for Visibility {
    type Err = String;
    fn from_str(text: &str) -> Result<Self, String> {
        let known = [Self::Public, Self::Private].into_iter().find(|visibility| visibility.name() == text);
        known.ok_or_else(|| format!("{text:?} is no visibility; known: public, private"))
    }
}

/// Whose projects somebody may read.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Readable {
    All,
    /// Public ones and these.
    PublicAnd(Vec<String>),
}

impl Readable {
    /// Those besides the public ones; `None` for all.
    pub(super) fn own(&self) -> Option<&[String]> {
        match self {
            Self::All => None,
            Self::PublicAnd(own) => Some(own),
        }
    }
}

/// A line of the list of projects.
#[derive(Debug, Clone, PartialEq, Serialize, utoipa::ToSchema)]
pub struct Overview {
    pub slug: ProjectSlug,
    /// Whether everybody may read it.
    pub public: bool,
    pub snapshots: i64,
    pub latest: Option<SnapshotRow>,
}

/// More projects than this are not listed.
pub const MAX_LISTED: i64 = 1_000;

pub async fn get(executor: impl Executor<'_>, slug: &ProjectSlug) -> Result<Option<Project>> {
    let row = sqlx::query!(r#"select policy as "policy: Json<Policy>" from projects where slug = $1"#, slug.as_str())
        .fetch_optional(executor)
        .await?;
    Ok(row.map(|row| Project { slug: slug.clone(), policy: row.policy.0 }))
}

/// Whether everybody may read it; `None` when there is no such project.
pub async fn is_public(executor: impl Executor<'_>, slug: &ProjectSlug) -> Result<Option<bool>> {
    let found = sqlx::query_scalar!(
        r#"select visibility = 'public' as "public!" from projects where slug = $1"#,
        slug.as_str()
    );
    Ok(found.fetch_optional(executor).await?)
}

/// The project of a run, measured or asked for.
pub async fn of_run(executor: impl Executor<'_>, run_id: RunId) -> Result<Option<ProjectSlug>> {
    let found = sqlx::query_scalar!(
        r#"select project as "project!" from snapshots where run_id = $1
           union select project from jobs where run_id = $1 limit 1"#,
        run_id.0
    );
    let found = found.fetch_optional(executor).await?;
    found.map(|project| project.parse().map_err(|e| corrupt("project")(format!("{e}")))).transpose()
}

/// Creates the project with the default policy, if it is new.
pub async fn ensure(executor: impl Executor<'_>, slug: &ProjectSlug, visibility: Visibility) -> Result<()> {
    add(executor, slug, visibility).await.map(drop)
}

/// Creates a project with the default policy. False when there is one of this name.
pub async fn add(executor: impl Executor<'_>, slug: &ProjectSlug, visibility: Visibility) -> Result<bool> {
    let done = sqlx::query!(
        "insert into projects (slug, policy, visibility) values ($1, $2, $3) on conflict (slug) do nothing",
        slug.as_str(),
        Json(Policy::default()) as _,
        visibility.name(),
    );
    Ok(done.execute(executor).await?.rows_affected() > 0)
}

/// Sets the policy of a project that there is.
pub async fn set_policy(executor: impl Executor<'_>, slug: &ProjectSlug, policy: &Policy) -> Result<()> {
    let set = sqlx::query!("update projects set policy = $2 where slug = $1", slug.as_str(), Json(policy) as _);
    set.execute(executor).await?;
    Ok(())
}

/// Sets who may read a project that there is.
pub async fn set_visibility(executor: impl Executor<'_>, slug: &ProjectSlug, visibility: Visibility) -> Result<()> {
    let set = sqlx::query!("update projects set visibility = $2 where slug = $1", slug.as_str(), visibility.name());
    set.execute(executor).await?;
    Ok(())
}

/// Projects by name, with their newest snapshot.
pub async fn list(pool: &Pool, readable: &Readable) -> Result<Vec<Overview>> {
    let counts = sqlx::query!(
        r#"select slug, visibility = 'public' as "public!", (select count(*) from snapshots where project = slug) as "snapshots!"
           from projects where $2::text[] is null or slug = any($2) or visibility = 'public' order by slug limit $1"#,
        MAX_LISTED,
        readable.own(),
    )
    .fetch_all(pool)
    .await?;
    let slugs: Vec<&str> = counts.iter().map(|row| row.slug.as_str()).collect();
    let mut newest = snapshots::newest_of(pool, &slugs).await?;
    counts
        .into_iter()
        .map(|row| {
            let slug: ProjectSlug = row.slug.parse().map_err(|e| corrupt("project")(format!("{e}")))?;
            let latest = newest.iter().position(|snapshot| snapshot.project == slug).map(|at| newest.swap_remove(at));
            Ok(Overview { slug, public: row.public, snapshots: row.snapshots, latest })
        })
        .collect()
}

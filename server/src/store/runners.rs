//! Runners, as they introduced themselves last.

use jiff::Timestamp;
use plimsoll_domain::ids::{ProjectSlug, RunId};
use plimsoll_domain::job::RunnerFacts;
use serde::Serialize;
use sqlx::types::Json;
use std::collections::BTreeMap;
use uuid::Uuid;

use super::time::from_db;
use super::{Executor, Labels, Result, corrupt};

/// What lists show of a runner.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, utoipa::ToSchema)]
pub struct Runner {
    /// Whoever knows it can speak for the runner: not told.
    #[serde(skip)]
    pub id: Uuid,
    pub name: String,
    pub labels: BTreeMap<String, String>,
    pub version: String,
    /// The projects it has a recipe for and may serve.
    #[schema(value_type = Vec<String>)]
    pub projects: Vec<ProjectSlug>,
    #[schema(value_type = String, format = DateTime)]
    pub first_seen_at: Timestamp,
    #[schema(value_type = String, format = DateTime)]
    pub last_seen_at: Timestamp,
    /// It takes no more runs: it has ended, or does so after the one that it carries out.
    pub ended: bool,
    /// What it carries out.
    #[schema(value_type = Option<Uuid>)]
    pub run: Option<RunId>,
}

/// Runners that one token may bring.
pub const MAX_OF_TOKEN: i64 = 1_000;

/// Stores what a runner says of itself, with its newest request for a job (`None` when it says that it
/// wants none any more); false for a new one when its token has
/// brought as many as it may. `projects` are those it may serve; one that asks for none, since it is about to end, has
/// its recipes still.
pub async fn put(
    executor: impl Executor<'_>,
    runner: &RunnerFacts,
    projects: &[String],
    token: Option<Uuid>,
    claim: Option<Uuid>,
) -> Result<bool> {
    let put = sqlx::query!(
        "insert into runners (id, name, labels, version, projects, token, claim)
         select $1, $2, $3, $4, $5, $6, $7
         where exists (select 1 from runners where id = $1)
            or (select count(*) from runners where token is not distinct from $6::uuid) < $8
         on conflict (id) do update set name = excluded.name, labels = excluded.labels, version = excluded.version,
             projects = case when excluded.projects = '{}' then runners.projects else excluded.projects end,
             token = excluded.token, claim = excluded.claim, last_seen_at = now()",
        runner.id,
        runner.name,
        Json(&runner.labels) as _,
        runner.version,
        projects,
        token,
        claim,
        MAX_OF_TOKEN,
    );
    Ok(put.execute(executor).await?.rows_affected() == 1)
}

/// The runner of this job said that it takes no other.
pub async fn ends(executor: impl Executor<'_>, run: RunId) -> Result<()> {
    let ends = sqlx::query!(
        "update runners set claim = null where id = (select runner from jobs where run_id = $1) and claim is not null",
        run.0,
    );
    ends.execute(executor).await?;
    Ok(())
}

/// Whether `claim` is still the runner's newest request; then it stays so until the transaction ends.
pub async fn is_claiming(executor: impl Executor<'_>, runner: Uuid, claim: Uuid) -> Result<bool> {
    let found =
        sqlx::query_scalar!("select id from runners where id = $1 and claim = $2 for no key update", runner, claim);
    Ok(found.fetch_optional(executor).await?.is_some())
}

/// The runners heard last.
pub async fn list(executor: impl Executor<'_>, limit: u32) -> Result<Vec<Runner>> {
    let found = sqlx::query!(
        r#"select r.id, r.name, r.labels as "labels: Labels", r.version, r.projects, r.first_seen_at, r.last_seen_at,
               r.claim is null as "ended!",
               (select j.run_id from jobs j where j.runner = r.id and j.state in ('leased', 'running') limit 1) as run
           from runners r order by r.last_seen_at desc, r.id limit $1"#,
        i64::from(limit),
    );
    let found = found.fetch_all(executor).await?;
    found
        .into_iter()
        .map(|row| {
            let projects = row.projects.iter().map(|slug| slug.parse()).collect::<Result<_, _>>();
            Ok(Runner {
                id: row.id,
                name: row.name,
                labels: row.labels.0,
                version: row.version,
                projects: projects.map_err(|e: plimsoll_domain::ids::BadName| corrupt("runner")(e.to_string()))?,
                first_seen_at: from_db(row.first_seen_at),
                last_seen_at: from_db(row.last_seen_at),
                ended: row.ended,
                run: row.run.map(RunId),
            })
        })
        .collect()
}

/// Whether a runner fits what a run needs: it has these labels and a recipe for the project, and was heard in the last
/// week.
pub async fn serves(
    executor: impl Executor<'_>,
    project: &ProjectSlug,
    labels: &BTreeMap<String, String>,
) -> Result<bool> {
    Ok(serve(executor, &[(project, labels)]).await?.first() == Some(&true))
}

/// The same for each of several runs.
pub async fn serve(
    executor: impl Executor<'_>,
    wanted: &[(&ProjectSlug, &BTreeMap<String, String>)],
) -> Result<Vec<bool>> {
    let projects: Vec<String> = wanted.iter().map(|(project, _)| project.to_string()).collect();
    let labels: Vec<_> = wanted.iter().map(|(_, labels)| serde_json::json!(labels)).collect();
    let found = sqlx::query_scalar!(
        r#"select exists (select 1 from runners r
             where w.project = any(r.projects) and w.labels <@ r.labels
               and r.last_seen_at > now() - interval '7 days') as "exists!"
           from unnest($1::text[], $2::jsonb[]) with ordinality w (project, labels, at) order by w.at"#,
        &projects,
        &labels,
    );
    Ok(found.fetch_all(executor).await?)
}

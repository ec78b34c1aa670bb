//! Check runs of ours: one for each head that is to be judged, and a new one for each "run again".

use std::time::Duration;

use jiff::Timestamp;
use plimsoll_domain::ids::{CommitSha, ProjectSlug, RunId};
use serde::{Deserialize, Serialize};
use sqlx::types::Json;
use uuid::Uuid;

use super::super::time::from_db;
use super::super::{Executor, Result, corrupt};

/// What is judged on a head.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Kind {
    /// A commit of the default branch.
    Branch,
    Tag,
    PullRequest,
    MergeGroup,
}

impl Kind {
    pub const ALL: [Self; 4] = [Self::Branch, Self::Tag, Self::PullRequest, Self::MergeGroup];

    pub fn name(self) -> &'static str {
        match self {
            Self::Branch => "branch",
            Self::Tag => "tag",
            Self::PullRequest => "pull_request",
            Self::MergeGroup => "merge_group",
        }
    }
}

/// How a check concludes, in GitHub's words. `neutral` and `skipped` satisfy a required check, so there are none of them.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Conclusion {
    Success,
    Failure,
    /// Somebody must do something: approve it, for example.
    ActionRequired,
    Cancelled,
    TimedOut,
}

impl Conclusion {
    pub fn name(self) -> &'static str {
        match self {
            Self::Success => "success",
            Self::Failure => "failure",
            Self::ActionRequired => "action_required",
            Self::Cancelled => "cancelled",
            Self::TimedOut => "timed_out",
        }
    }
}

/// How it concludes whatever a run says.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Settled {
    pub conclusion: Conclusion,
    /// One line.
    pub title: String,
    /// Markdown of our own making.
    pub summary: String,
}

#[derive(Debug, Clone, PartialEq)]
pub struct Check {
    /// GitHub's `external_id`.
    pub id: Uuid,
    pub project: ProjectSlug,
    pub repository: i64,
    pub head_sha: CommitSha,
    pub kind: Kind,
    pub tag: Option<String>,
    pub pull_request: Option<i64>,
    pub run_id: Option<RunId>,
    pub settled: Option<Settled>,
    pub deadline: Option<Timestamp>,
    pub superseded: bool,
    /// GitHub's id of it, once it is known.
    pub check_run: Option<i64>,
    pub told_at: Option<Timestamp>,
    /// A digest of what it was last told.
    pub told: Option<String>,
}

#[derive(Debug, Clone)]
pub struct NewCheck<'a> {
    pub project: &'a ProjectSlug,
    pub repository: i64,
    pub head_sha: &'a CommitSha,
    pub kind: Kind,
    pub tag: Option<&'a str>,
    pub pull_request: Option<i64>,
    pub run_id: Option<RunId>,
    pub settled: Option<&'a Settled>,
    /// From now.
    pub deadline: Option<Duration>,
}

/// Stores it in the place of the one that the project has on this head. The caller holds the head's name
/// (`jobs::hold`), so that of two at the same time one is the newest. The project's runs without their check go on.
pub async fn open(executor: impl Executor<'_>, new: &NewCheck<'_>) -> Result<Uuid> {
    let id = Uuid::now_v7();
    sqlx::query!(
        "with former as (
             update github_checks set superseded_at = now()
             where project = $2 and head_sha = $4 and (kind = 'tag') = ($5 = 'tag') and superseded_at is null
             returning id)
         insert into github_checks (id, project, repository, head_sha, kind, tag, pull_request, run_id, settled,
             deadline)
         select $1, $2, $3, $4, $5, $6, $7, $8, $9, now() + make_interval(secs => $10)
         where (select count(*) from former) >= 0",
        id,
        new.project.as_str(),
        new.repository,
        new.head_sha.as_str(),
        new.kind.name(),
        new.tag,
        new.pull_request,
        new.run_id.map(|run| run.0),
        new.settled.map(Json) as _,
        new.deadline.map(|time| time.as_secs_f64()),
    )
    .execute(executor)
    .await?;
    Ok(id)
}

/// From now on it concludes so, whatever its run says.
pub async fn settle(executor: impl Executor<'_>, id: Uuid, settled: &Settled) -> Result<()> {
    sqlx::query!("update github_checks set settled = $2 where id = $1", id, Json(settled) as _)
        .execute(executor)
        .await?;
    Ok(())
}

/// What GitHub knows of it by now.
pub async fn told(executor: impl Executor<'_>, id: Uuid, check_run: i64, told: &str) -> Result<()> {
    sqlx::query!(
        "update github_checks set check_run = $2, told = $3, told_at = now() where id = $1",
        id,
        check_run,
        told,
    )
    .execute(executor)
    .await?;
    Ok(())
}

/// For the checked macros.
macro_rules! checks {
    ($condition:literal $(, $argument:expr)*) => {
        sqlx::query_as!(
            Row,
            r#"select id, project, repository, head_sha, kind, tag, pull_request, run_id,
                   settled as "settled: Json<Settled>", deadline, (superseded_at is not null) as "superseded!",
                   check_run, told_at, told
               from github_checks "# + $condition
            $(, $argument)*
        )
    };
}

pub async fn get(executor: impl Executor<'_>, id: Uuid) -> Result<Option<Check>> {
    checks!("where id = $1", id).fetch_optional(executor).await?.map(Check::try_from).transpose()
}

/// The newest of a project on a head.
pub async fn newest(
    executor: impl Executor<'_>,
    project: &ProjectSlug,
    head: &CommitSha,
    is_tag: bool,
) -> Result<Option<Check>> {
    let found = checks!(
        "where project = $1 and head_sha = $2 and (kind = 'tag') = $3 and superseded_at is null",
        project.as_str(),
        head.as_str(),
        is_tag
    );
    found.fetch_optional(executor).await?.map(Check::try_from).transpose()
}

/// The newest of each project on a head of a repository.
pub async fn of_head(executor: impl Executor<'_>, repository: i64, head: &CommitSha) -> Result<Vec<Check>> {
    let found = checks!(
        "where repository = $1 and head_sha = $2 and superseded_at is null order by project, kind",
        repository,
        head.as_str()
    );
    found.fetch_all(executor).await?.into_iter().map(Check::try_from).collect()
}

/// The last one that was opened of what is judged: a tag, a pull request or neither, of that kind on that head. Another
/// kind may have taken its place since.
pub async fn last(
    executor: impl Executor<'_>,
    project: &ProjectSlug,
    head: &CommitSha,
    kind: Kind,
    tag: Option<&str>,
    pull_request: Option<i64>,
) -> Result<Option<Check>> {
    let found = checks!(
        "where project = $1 and head_sha = $2 and kind = $3 and tag is not distinct from $4
           and pull_request is not distinct from $5
         order by (superseded_at is null) desc, id desc limit 1",
        project.as_str(),
        head.as_str(),
        kind.name(),
        tag,
        pull_request
    );
    found.fetch_optional(executor).await?.map(Check::try_from).transpose()
}

/// The commit of a project's default branch that was judged last.
pub async fn last_of_branch(
    executor: impl Executor<'_>,
    project: &ProjectSlug,
    repository: i64,
) -> Result<Option<CommitSha>> {
    let found = sqlx::query_scalar!(
        "select head_sha from github_checks
         where project = $1 and repository = $2 and kind = 'branch' order by id desc limit 1",
        project.as_str(),
        repository,
    );
    let found = found.fetch_optional(executor).await?;
    found.map(|sha| sha.parse().map_err(|e| corrupt("commit")(format!("{e}")))).transpose()
}

/// Those that a run decides.
pub async fn of_run(executor: impl Executor<'_>, run_id: RunId) -> Result<Vec<Check>> {
    let found = checks!("where run_id = $1 order by created_at, id", run_id.0);
    found.fetch_all(executor).await?.into_iter().map(Check::try_from).collect()
}

/// All of a project on a pull request, the newest first.
pub async fn of_pull(
    executor: impl Executor<'_>,
    project: &ProjectSlug,
    repository: i64,
    pull_request: i64,
    limit: i64,
) -> Result<Vec<Check>> {
    let found = checks!(
        "where project = $1 and repository = $2 and pull_request = $3 order by created_at desc, id desc limit $4",
        project.as_str(),
        repository,
        pull_request,
        limit
    );
    found.fetch_all(executor).await?.into_iter().map(Check::try_from).collect()
}

struct Row {
    id: Uuid,
    project: String,
    repository: i64,
    head_sha: String,
    kind: String,
    tag: Option<String>,
    pull_request: Option<i64>,
    run_id: Option<Uuid>,
    settled: Option<Json<Settled>>,
    deadline: Option<sqlx::types::chrono::DateTime<sqlx::types::chrono::Utc>>,
    superseded: bool,
    check_run: Option<i64>,
    told_at: Option<sqlx::types::chrono::DateTime<sqlx::types::chrono::Utc>>,
    told: Option<String>,
}

impl TryFrom<Row> for Check {
    type Error = super::super::StoreError;

    fn try_from(row: Row) -> Result<Self> {
        let kind = Kind::ALL.into_iter().find(|kind| kind.name() == row.kind);
        Ok(Self {
            id: row.id,
            project: row.project.parse().map_err(|e| corrupt("project")(format!("{e}")))?,
            repository: row.repository,
            head_sha: row.head_sha.parse().map_err(|e| corrupt("commit")(format!("{e}")))?,
            kind: kind.ok_or_else(|| corrupt("check")(format!("no such kind: {}", row.kind)))?,
            tag: row.tag,
            pull_request: row.pull_request,
            run_id: row.run_id.map(RunId),
            settled: row.settled.map(|settled| settled.0),
            deadline: row.deadline.map(from_db),
            superseded: row.superseded,
            check_run: row.check_run,
            told_at: row.told_at.map(from_db),
            told: row.told,
        })
    }
}

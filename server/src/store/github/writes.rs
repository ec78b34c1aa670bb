//! What GitHub is to be told: rows that name a check or a comment, in the order of their lane. What it is told is worked
//! out when it is sent.

use std::time::Duration;

use plimsoll_domain::ids::ProjectSlug;
use uuid::Uuid;

use super::super::{Executor, Result, corrupt};

/// What a row is about.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Subject {
    Check(Uuid),
    /// The one comment of a project on a pull request.
    Comment {
        project: ProjectSlug,
        repository: i64,
        pull_request: i64,
    },
}

/// A row that is to be sent now.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Due {
    pub id: i64,
    /// This one included.
    pub attempts: i32,
    pub lane: String,
    pub subject: Subject,
    /// Since it was decided.
    pub age: Duration,
    /// Something about the same may have been sent before.
    pub tried: bool,
    /// All rows about the same that were there when it was taken: whoever reads the state from then on tells them all.
    covers: Vec<i64>,
}

/// A check is to be told, with those whose place it took, and with one of a pull request its comment.
pub async fn check(executor: impl Executor<'_>, check: Uuid) -> Result<()> {
    sqlx::query!(
        "with told as (
             select c.id, c.project, c.repository, c.pull_request,
                 c.repository || coalesce('#' || c.pull_request, '@' || c.head_sha) as lane
             from github_checks n join github_checks c on c.project = n.project and c.head_sha = n.head_sha
               and (c.kind = 'tag') = (n.kind = 'tag')
             where n.id = $1
               and (c.id = n.id or (c.superseded_at is not null and c.told not like 'completed:%'))),
           checks as (
             insert into github_writes (lane, check_id) select lane, id from told order by id)
         insert into github_writes (lane, comment_project, comment_repository, comment_pull)
         select distinct lane, project, repository, pull_request from told where pull_request is not null",
        check,
    )
    .execute(executor)
    .await?;
    Ok(())
}

/// What is due: of each lane the first row, and none of a lane of which another is under way. It is not due again before
/// `lease` has passed: whoever takes it may send it without a transaction, and when they die, another sends it.
pub async fn take(executor: impl Executor<'_>, most: i64, lease: Duration) -> Result<Vec<Due>> {
    let rows = sqlx::query!(
        r#"with first as (
               select distinct on (lane) id, next_at from github_writes
               where done_at is null and failed_at is null order by lane, id),
           due as (
               select w.id from github_writes w join first on first.id = w.id
               where w.next_at <= now() and w.done_at is null and w.failed_at is null
               order by w.next_at, w.id limit $1 for update of w skip locked)
           update github_writes w set attempts = attempts + 1, next_at = now() + make_interval(secs => $2)
           from due where w.id = due.id
           returning w.id, w.attempts, w.lane, w.check_id, w.comment_project, w.comment_repository, w.comment_pull,
               extract(epoch from now() - w.created_at)::float8 as "age!",
               (w.attempts > 1 or exists (
                   select from github_writes b
                   where b.check_id = w.check_id and b.id <> w.id and b.attempts > 0)) as "tried!",
               array(select s.id from github_writes s
                     where s.lane = w.lane and s.done_at is null and s.failed_at is null
                       and s.check_id is not distinct from w.check_id
                       and s.comment_project is not distinct from w.comment_project) as "covers!""#,
        most,
        lease.as_secs_f64(),
    )
    .fetch_all(executor)
    .await?;
    let subject = |check: Option<Uuid>, project: Option<String>, repository: Option<i64>, pull: Option<i64>| {
        Ok(match (check, project, repository, pull) {
            (Some(check), ..) => Subject::Check(check),
            (None, Some(project), Some(repository), Some(pull_request)) => Subject::Comment {
                project: project.parse().map_err(|e| corrupt("project")(format!("{e}")))?,
                repository,
                pull_request,
            },
            _ => return Err(corrupt("write")("it is about nothing".to_owned())),
        })
    };
    rows.into_iter()
        .map(|row| {
            Ok(Due {
                id: row.id,
                attempts: row.attempts,
                lane: row.lane,
                age: Duration::try_from_secs_f64(row.age).unwrap_or_default(),
                tried: row.tried,
                subject: subject(row.check_id, row.comment_project, row.comment_repository, row.comment_pull)?,
                covers: row.covers,
            })
        })
        .collect()
}

/// It was told, as it is since it was taken.
pub async fn done(executor: impl Executor<'_>, due: &Due) -> Result<()> {
    sqlx::query!(
        "update github_writes set done_at = now(), last_error = null
         where id = any($1) and done_at is null and failed_at is null",
        &due.covers,
    )
    .execute(executor)
    .await?;
    Ok(())
}

/// Attempt number `attempts` failed: once more after `retry`, or never.
pub async fn failed(executor: impl Executor<'_>, due: &Due, error: &str, retry: Option<Duration>) -> Result<()> {
    sqlx::query!(
        "update github_writes set last_error = $3, next_at = now() + make_interval(secs => coalesce($4::float8, 0)),
             failed_at = case when $4::float8 is null then now() end
         where id = $1 and attempts = $2 and done_at is null and failed_at is null",
        due.id,
        due.attempts,
        error,
        retry.map(|time| time.as_secs_f64()),
    )
    .execute(executor)
    .await?;
    Ok(())
}

//! Pull requests as GitHub last showed them, and which head of a fork may be run.

use jiff::Timestamp;
use plimsoll_domain::ids::CommitSha;

use super::super::time::{from_db, to_db};
use super::super::{Executor, Result, Transaction, corrupt};

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Pull {
    pub repository: i64,
    pub number: i64,
    pub head_sha: CommitSha,
    /// When this head was first heard of, by the later of our clock and GitHub's: what was written before it was written
    /// about another.
    pub head_seen_at: Timestamp,
    pub base_ref: String,
    pub base_sha: CommitSha,
    /// From another repository, or from one that is gone.
    pub fork: bool,
    pub open: bool,
    /// GitHub's time of this state.
    pub updated_at: Timestamp,
    /// The head of a fork that somebody with write access lets run.
    pub approved_sha: Option<CommitSha>,
    pub approved_by: Option<String>,
}

impl Pull {
    /// Whether its code may be run: a stranger's only when somebody approved of just this head.
    pub fn may_run(&self) -> bool {
        !self.fork || self.approved_sha.as_ref() == Some(&self.head_sha)
    }
}

/// A state of it that GitHub told.
#[derive(Debug, Clone, Copy)]
pub struct Seen<'a> {
    pub repository: i64,
    pub number: i64,
    pub head_sha: &'a CommitSha,
    pub base_ref: &'a str,
    pub base_sha: &'a CommitSha,
    pub fork: bool,
    pub open: bool,
    pub updated_at: Timestamp,
    /// When it was asked for, by the database's clock.
    pub asked_at: Timestamp,
}

/// Remembers it, unless a newer state is known; false then. GitHub's times are whole seconds: of two states of the same
/// second that counts which was asked for last. Another head takes the approval away.
pub async fn put(executor: impl Executor<'_>, seen: Seen<'_>) -> Result<bool> {
    let done = sqlx::query!(
        "insert into github_pulls as p (repository, number, head_sha, head_seen_at, base_ref, base_sha, fork, open,
             updated_at, asked_at)
         values ($1, $2, $3, greatest(now(), $8), $4, $5, $6, $7, $8, $9)
         on conflict (repository, number) do update set head_sha = excluded.head_sha, base_ref = excluded.base_ref,
             base_sha = excluded.base_sha, fork = excluded.fork, open = excluded.open,
             updated_at = excluded.updated_at, asked_at = excluded.asked_at,
             head_seen_at = case when p.head_sha = excluded.head_sha then p.head_seen_at else excluded.head_seen_at end,
             approved_sha = case when p.head_sha = excluded.head_sha then p.approved_sha end,
             approved_by = case when p.head_sha = excluded.head_sha then p.approved_by end
         where (p.updated_at, p.asked_at) <= (excluded.updated_at, excluded.asked_at)",
        seen.repository,
        seen.number,
        seen.head_sha.as_str(),
        seen.base_ref,
        seen.base_sha.as_str(),
        seen.fork,
        seen.open,
        to_db(seen.updated_at),
        to_db(seen.asked_at),
    )
    .execute(executor)
    .await?;
    Ok(done.rows_affected() > 0)
}

/// The database's time, for [`Seen::asked_at`].
pub async fn now(executor: impl Executor<'_>) -> Result<Timestamp> {
    let now = sqlx::query_scalar!(r#"select clock_timestamp() as "now!""#).fetch_one(executor).await?;
    Ok(from_db(now))
}

/// Lets this head run; false when it is not the pull request's head any more.
pub async fn approve(
    executor: impl Executor<'_>,
    repository: i64,
    number: i64,
    head: &CommitSha,
    by: &str,
) -> Result<bool> {
    let done = sqlx::query!(
        "update github_pulls set approved_sha = head_sha, approved_by = $4
         where repository = $1 and number = $2 and head_sha = $3",
        repository,
        number,
        head.as_str(),
        by,
    )
    .execute(executor)
    .await?;
    Ok(done.rows_affected() > 0)
}

/// For the checked macros.
macro_rules! pulls {
    ($condition:literal $(, $argument:expr)*) => {
        sqlx::query_as!(
            Row,
            r#"select repository, number, head_sha, head_seen_at, base_ref, base_sha, fork, open, updated_at,
                   approved_sha, approved_by
               from github_pulls "# + $condition
            $(, $argument)*
        )
    };
}

pub async fn get(executor: impl Executor<'_>, repository: i64, number: i64) -> Result<Option<Pull>> {
    let found = pulls!("where repository = $1 and number = $2", repository, number);
    found.fetch_optional(executor).await?.map(Pull::try_from).transpose()
}

/// As it is until the transaction ends.
pub async fn lock(transaction: &mut Transaction, repository: i64, number: i64) -> Result<Option<Pull>> {
    let found = pulls!("where repository = $1 and number = $2 for update", repository, number);
    found.fetch_optional(&mut **transaction).await?.map(Pull::try_from).transpose()
}

/// The open one that the check of this head stands for: a check belongs to a commit, not to a pull request. Of several it
/// is that into the default branch, else the oldest: another one, into a branch that has the change already, would pass
/// at once and let the first be merged.
pub async fn first_of_head(executor: impl Executor<'_>, repository: i64, head: &CommitSha) -> Result<Option<i64>> {
    let found = sqlx::query_scalar!(
        "select p.number from github_pulls p join github_repositories r on r.id = p.repository
         where p.repository = $1 and p.head_sha = $2 and p.open
         order by p.base_ref <> r.default_branch, p.number limit 1",
        repository,
        head.as_str(),
    );
    Ok(found.fetch_optional(executor).await?)
}

/// Open ones, the newest first.
pub async fn open(executor: impl Executor<'_>, repository: i64, limit: i64) -> Result<Vec<Pull>> {
    let found = pulls!("where repository = $1 and open order by number desc limit $2", repository, limit);
    found.fetch_all(executor).await?.into_iter().map(Pull::try_from).collect()
}

struct Row {
    repository: i64,
    number: i64,
    head_sha: String,
    head_seen_at: sqlx::types::chrono::DateTime<sqlx::types::chrono::Utc>,
    base_ref: String,
    base_sha: String,
    fork: bool,
    open: bool,
    updated_at: sqlx::types::chrono::DateTime<sqlx::types::chrono::Utc>,
    approved_sha: Option<String>,
    approved_by: Option<String>,
}

impl TryFrom<Row> for Pull {
    type Error = super::super::StoreError;

    fn try_from(row: Row) -> Result<Self> {
        let commit = |sha: String| sha.parse().map_err(|e| corrupt("commit")(format!("{e}")));
        Ok(Self {
            repository: row.repository,
            number: row.number,
            head_sha: commit(row.head_sha)?,
            head_seen_at: from_db(row.head_seen_at),
            base_ref: row.base_ref,
            base_sha: commit(row.base_sha)?,
            fork: row.fork,
            open: row.open,
            updated_at: from_db(row.updated_at),
            approved_sha: row.approved_sha.map(commit).transpose()?,
            approved_by: row.approved_by,
        })
    }
}

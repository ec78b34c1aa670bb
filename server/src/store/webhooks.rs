//! Where a project's events go.

use jiff::Timestamp;
use plimsoll_domain::ids::ProjectSlug;
use serde::Serialize;
use uuid::Uuid;

use super::time::from_db;
use super::{Executor, Result};

/// One as its administrators see it: without its secret.
#[derive(Debug, Clone, PartialEq, Serialize, utoipa::ToSchema)]
pub struct Webhook {
    pub id: Uuid,
    pub url: String,
    #[schema(value_type = String, format = DateTime)]
    pub created_at: Timestamp,
    pub created_by: String,
    /// Events that are on their way.
    pub waiting: i64,
    /// Events that were given up.
    pub given_up: i64,
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(value_type = Option<String>, format = DateTime)]
    pub last_delivered_at: Option<Timestamp>,
    /// Why the newest event that did not arrive did not.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub last_error: Option<String>,
}

#[derive(Debug)]
pub struct New<'a> {
    pub project: &'a ProjectSlug,
    pub url: &'a str,
    pub secret: &'a str,
    pub created_by: &'a str,
}

/// Webhooks of one project.
pub const MAX_PER_PROJECT: i64 = 10;

pub async fn list(executor: impl Executor<'_>, project: &ProjectSlug) -> Result<Vec<Webhook>> {
    let rows = sqlx::query!(
        r#"select w.id, w.url, w.created_at, w.created_by, last_error.text as "last_error?",
               count(d.id) filter (where d.delivered_at is null and d.failed_at is null) as "waiting!",
               count(d.failed_at) as "given_up!", max(d.delivered_at) as last_delivered_at
           from webhooks w
           left join deliveries d on d.webhook = w.id
           left join lateral (
               select last_error as text from deliveries
               where webhook = w.id and delivered_at is null and last_error is not null order by id desc limit 1
           ) last_error on true
           where w.project = $1
           group by w.id, last_error.text order by w.created_at, w.id"#,
        project.as_str(),
    )
    .fetch_all(executor)
    .await?;
    let rows = rows.into_iter().map(|row| Webhook {
        id: row.id,
        url: row.url,
        created_at: from_db(row.created_at),
        created_by: row.created_by,
        waiting: row.waiting,
        given_up: row.given_up,
        last_delivered_at: row.last_delivered_at.map(from_db),
        last_error: row.last_error,
    });
    Ok(rows.collect())
}

/// `None` when the project has as many as it may.
pub async fn create(executor: impl Executor<'_>, new: &New<'_>) -> Result<Option<Uuid>> {
    let made = sqlx::query_scalar!(
        "insert into webhooks (project, url, secret, created_by) select $1, $2, $3, $4
         where (select count(*) from webhooks where project = $1) < $5 returning id",
        new.project.as_str(),
        new.url,
        new.secret,
        new.created_by,
        MAX_PER_PROJECT,
    );
    Ok(made.fetch_optional(executor).await?)
}

/// Removes it with what was on its way; the URL it had, if there was one.
pub async fn remove(executor: impl Executor<'_>, project: &ProjectSlug, id: Uuid) -> Result<Option<String>> {
    let gone =
        sqlx::query_scalar!("delete from webhooks where project = $1 and id = $2 returning url", project.as_str(), id);
    Ok(gone.fetch_optional(executor).await?)
}

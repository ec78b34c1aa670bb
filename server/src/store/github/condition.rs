//! How it goes with GitHub, for the doctor.

use super::super::{Executor, Result};

/// Ages in seconds; no age without anything that has one.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Condition {
    /// Since a delivery came.
    pub last_heard_s: Option<f64>,
    /// Of the oldest delivery that is not handled.
    pub oldest_waiting_s: Option<f64>,
    /// What GitHub was to be told and did not take: that fails now, or was given up in the last day.
    pub failing_writes: i64,
    pub last_write_error: Option<String>,
}

pub async fn read(executor: impl Executor<'_>) -> Result<Condition> {
    let found = sqlx::query_as!(
        Condition,
        r#"with failing as (
               select id, last_error from github_writes
               where last_error is not null and done_at is null
                   and (failed_at is null or failed_at > now() - interval '1 day')
           )
           select
             (select extract(epoch from now() - max(received_at))::float8 from github_inbox) as last_heard_s,
             (select extract(epoch from now() - min(received_at))::float8 from github_inbox
              where handled_at is null and failed_at is null) as oldest_waiting_s,
             (select count(*) from failing) as "failing_writes!",
             (select last_error from failing order by id desc limit 1) as last_write_error"#
    );
    Ok(found.fetch_one(executor).await?)
}

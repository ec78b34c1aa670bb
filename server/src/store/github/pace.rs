//! How much an installation is sent, so that GitHub goes on listening.

use std::time::Duration;

use super::super::{Executor, Result};

/// What is sent at most.
#[derive(Debug, Clone, Copy)]
pub struct Most {
    pub a_minute: i32,
    pub an_hour: i32,
}

/// `None`: one thing more may be written, which counts from now on. Else how long to wait.
pub async fn spend(executor: impl Executor<'_>, installation: i64, most: Most) -> Result<Option<Duration>> {
    let found = sqlx::query!(
        r#"with spent as (
             insert into github_pace as p (installation, minute_writes, hour_writes) values ($1, 1, 1)
             on conflict (installation) do update set
                 minute_at = case when p.minute_at > now() - interval '1 minute' then p.minute_at else now() end,
                 minute_writes = case when p.minute_at > now() - interval '1 minute' then p.minute_writes else 0 end + 1,
                 hour_at = case when p.hour_at > now() - interval '1 hour' then p.hour_at else now() end,
                 hour_writes = case when p.hour_at > now() - interval '1 hour' then p.hour_writes else 0 end + 1
             where p.not_before <= now()
               and (p.minute_writes < $2 or p.minute_at <= now() - interval '1 minute')
               and (p.hour_writes < $3 or p.hour_at <= now() - interval '1 hour')
             returning installation)
           select exists (select from spent) as "spent!",
             (select extract(epoch from greatest(not_before,
                     case when minute_writes >= $2 then minute_at + interval '1 minute' end,
                     case when hour_writes >= $3 then hour_at + interval '1 hour' end) - now())::float8
              from github_pace where installation = $1) as wait"#,
        installation,
        most.a_minute,
        most.an_hour,
    );
    let found = found.fetch_one(executor).await?;
    Ok((!found.spent).then(|| seconds(found.wait)))
}

/// How long nothing is said to the installation, not even asked.
pub async fn paused(executor: impl Executor<'_>, installation: i64) -> Result<Option<Duration>> {
    let found = sqlx::query_scalar!(
        r#"select extract(epoch from not_before - now())::float8 as "wait!" from github_pace
           where installation = $1 and not_before > now()"#,
        installation,
    );
    Ok(found.fetch_optional(executor).await?.map(|wait| seconds(Some(wait))))
}

/// GitHub asks to wait.
pub async fn pause(executor: impl Executor<'_>, installation: i64, time: Duration) -> Result<()> {
    sqlx::query!(
        "insert into github_pace as p (installation, not_before) values ($1, now() + make_interval(secs => $2))
         on conflict (installation) do update set not_before = greatest(p.not_before, excluded.not_before)",
        installation,
        time.as_secs_f64(),
    )
    .execute(executor)
    .await?;
    Ok(())
}

fn seconds(wait: Option<f64>) -> Duration {
    Duration::try_from_secs_f64(wait.unwrap_or(1.0)).unwrap_or_default().max(Duration::from_secs(1))
}

//! COPY in and out of the tables that an upload writes to, and what else is asked of Postgres itself.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::{Duration, Instant};

use futures_util::TryStreamExt as _;
use sqlx::Connection as _;
use sqlx::postgres::{PgConnectOptions, PgConnection};
use uuid::Uuid;

use crate::Fallible;
use plimsoll_server::store::Pool;

/// In the order in which they refer to each other.
const TABLES: [&str; 4] = ["snapshots", "reports", "verdicts", "outbox"];

/// All that one upload wrote, table by table, as COPY gave it.
pub(crate) type Written = Vec<(String, Vec<u8>)>;

/// What the uploads of these runs wrote.
pub(crate) async fn written(pool: &Pool, runs: &[Uuid]) -> Fallible<Vec<Written>> {
    let mut columns = Vec::new();
    for table in TABLES {
        let names: Vec<String> = sqlx::query_scalar(
            "select column_name::text from information_schema.columns
             where table_schema = 'public' and table_name = $1 and is_generated = 'NEVER' order by ordinal_position",
        )
        .bind(table)
        .fetch_all(pool)
        .await?;
        columns.push((table, names.join(", ")));
    }
    let mut connection = pool.acquire().await?;
    let mut all = Vec::new();
    for run in runs {
        let mut one = Vec::new();
        for (table, names) in &columns {
            let sql = format!("copy (select {names} from {table} where run_id = '{run}') to stdout (format binary)");
            let parts: Vec<_> = connection.copy_out_raw(&sql).await?.try_collect().await?;
            one.push((format!("{table} ({names})"), parts.concat()));
        }
        all.push(one);
    }
    Ok(all)
}

/// Removes them, so that they can be written again.
pub(crate) async fn remove(pool: &Pool, runs: &[Uuid]) -> Fallible {
    for sql in ["delete from outbox where run_id = any($1)", "delete from snapshots where run_id = any($1)"] {
        sqlx::query(sql).bind(runs).execute(pool).await?;
    }
    Ok(())
}

/// Writes each by COPY and commits it, over several connections, as uploads are committed one by one.
pub(crate) async fn one_by_one(
    database: &PgConnectOptions,
    all: Arc<Vec<Written>>,
    connections: usize,
) -> Fallible<Duration> {
    let mut open = Vec::new();
    for _ in 0..connections {
        open.push(PgConnection::connect_with(database).await?);
    }
    let next = Arc::new(AtomicUsize::new(0));
    let began = Instant::now();
    let tasks: Vec<_> = open
        .into_iter()
        .map(|mut connection| {
            let (all, next) = (Arc::clone(&all), Arc::clone(&next));
            tokio::spawn(async move {
                while let Some(one) = all.get(next.fetch_add(1, Ordering::Relaxed)) {
                    let mut transaction = connection.begin().await?;
                    write(&mut transaction, one).await?;
                    transaction.commit().await?;
                }
                Ok::<_, sqlx::Error>(connection)
            })
        })
        .collect();
    let mut ended = Vec::new();
    for task in tasks {
        ended.push(task.await??);
    }
    let took = began.elapsed();
    for connection in ended {
        connection.close().await?;
    }
    Ok(took)
}

/// The raw speed of the same rows: table by table in one COPY each, all in one transaction.
pub(crate) async fn at_once(database: &PgConnectOptions, all: &[Written]) -> Fallible<Duration> {
    let tables = joined(all);
    let mut connection = PgConnection::connect_with(database).await?;
    let mut transaction = connection.begin().await?;
    let began = Instant::now();
    write(&mut transaction, &tables).await?;
    transaction.commit().await?;
    Ok(began.elapsed())
}

/// Signature, flags and the length of no extension begin what COPY gives; a count of -1 ends it.
const HEAD: usize = 19;
const END: usize = 2;

/// The rows of all in one piece for each table.
fn joined(all: &[Written]) -> Written {
    let Some(first) = all.first() else { return Vec::new() };
    let whole = |(i, (table, rows)): (usize, &(String, Vec<u8>))| {
        let mut joined = rows[..HEAD].to_vec();
        all.iter().for_each(|one| joined.extend(&one[i].1[HEAD..one[i].1.len() - END]));
        joined.extend(&rows[rows.len() - END..]);
        (table.clone(), joined)
    };
    first.iter().enumerate().map(whole).collect()
}

async fn write(connection: &mut PgConnection, one: &Written) -> Result<(), sqlx::Error> {
    for (table, rows) in one {
        into(connection, table, rows).await?;
    }
    Ok(())
}

/// `table` with its columns; `rows` in the binary format.
pub(crate) async fn into(connection: &mut PgConnection, table: &str, rows: &[u8]) -> Result<u64, sqlx::Error> {
    let mut copy = connection.copy_in_raw(&format!("copy {table} from stdin (format binary)")).await?;
    copy.send(rows).await?;
    copy.finish().await
}

/// So that neither side pays for the pages that the other changed before.
pub(crate) async fn checkpoint(pool: &Pool) -> Fallible {
    let mut connection = pool.acquire().await?;
    for sql in ["set statement_timeout = 0", "checkpoint", "reset statement_timeout"] {
        sqlx::raw_sql(sql).execute(&mut *connection).await?;
    }
    Ok(())
}

pub(crate) async fn database_bytes(pool: &Pool) -> Fallible<i64> {
    Ok(sqlx::query_scalar("select pg_database_size(current_database())").fetch_one(pool).await?)
}

//! Connections, and databases as such.

use std::time::Duration;

use futures_util::{StreamExt as _, TryStreamExt as _};
use secrecy::{ExposeSecret as _, SecretString};
use sqlx::postgres::{PgConnectOptions, PgConnection, PgPoolOptions};
use sqlx::{AssertSqlSafe, Connection as _};

use super::{Pool, Result};

/// A request that finds no free connection for this long is refused.
const ACQUIRE_WITHIN: Duration = Duration::from_secs(5);

/// Whoever is asked directly answers within this time, or is away.
const ANSWERS_WITHIN: Duration = Duration::from_secs(3);

/// A connection that nobody used for this long is asked whether it still works before somebody does. Postgres does not
/// end and come back in less.
const IDLE: Duration = Duration::from_millis(100);

/// Connects. No statement runs longer than half a minute, and no transaction waits longer for its client.
pub async fn open(url: &SecretString, connections: u32) -> Result<Pool> {
    let options = options(url)?.application_name("plimsoll").options([
        ("statement_timeout", "30s"),
        ("idle_in_transaction_session_timeout", "30s"),
        ("lock_timeout", "10s"),
    ]);
    let pool = PgPoolOptions::new().max_connections(connections).acquire_timeout(ACQUIRE_WITHIN);
    // Each was asked when it came back: before each use, too, is a way to the database and back for nothing.
    let pool = pool.test_before_acquire(false).before_acquire(|connection, meta| {
        Box::pin(async move {
            if meta.idle_for >= IDLE {
                connection.ping().await?;
            }
            Ok(true)
        })
    });
    match pool.connect_with(options).await {
        // The pool tries again and again, and keeps to itself why.
        Err(timed_out @ sqlx::Error::PoolTimedOut) => Err(knock(url).await.err().unwrap_or(timed_out.into())),
        opened => Ok(opened?),
    }
}

/// Whether a connection can be made now, and why not.
pub async fn knock(url: &SecretString) -> Result<()> {
    let options = options(url)?;
    let connected = tokio::time::timeout(ANSWERS_WITHIN, PgConnection::connect_with(&options)).await;
    let silent = |_| sqlx::Error::from(std::io::Error::from(std::io::ErrorKind::TimedOut));
    Ok(connected.map_err(silent)??.close().await?)
}

/// Where a URL leads, for people: nothing of it is secret.
pub fn place(url: &SecretString) -> Result<String> {
    let options = options(url)?;
    let host = options.get_socket().map_or_else(|| options.get_host().to_owned(), |path| path.display().to_string());
    let database = options.get_database().unwrap_or_else(|| options.get_username());
    Ok(format!("{database} at {host}:{}", options.get_port()))
}

/// Creates a database, if it is absent. The name must be an identifier.
pub async fn create(admin: &SecretString, name: &str) -> Result<()> {
    let mut connection = PgConnection::connect(admin.expose_secret()).await?;
    let found = sqlx::query("select 1 from pg_database where datname = $1").bind(name);
    if found.fetch_optional(&mut connection).await?.is_none() {
        sqlx::raw_sql(AssertSqlSafe(format!("create database {}", quoted(name)))).execute(&mut connection).await?;
    }
    Ok(connection.close().await?)
}

/// Creates a database as a copy of another, to which nobody may be connected.
pub async fn copy(admin: &SecretString, template: &str, name: &str) -> Result<()> {
    let mut connection = PgConnection::connect(admin.expose_secret()).await?;
    // Copies of a small database are fastest by files, the only way before Postgres 15 had a choice.
    let strategy = if connection.server_version_num().is_some_and(|version| version >= 150_000) {
        " strategy file_copy"
    } else {
        ""
    };
    let sql = format!("create database {} template {}{strategy}", quoted(name), quoted(template));
    sqlx::raw_sql(AssertSqlSafe(sql)).execute(&mut connection).await?;
    Ok(connection.close().await?)
}

/// Each drop waits for a checkpoint, and those under way together wait for the same one.
const AT_ONCE: usize = 16;

/// Drops all databases but those that Postgres brings.
pub async fn drop_all(admin: &SecretString) -> Result<()> {
    let mut connection = PgConnection::connect(admin.expose_secret()).await?;
    let names: Vec<String> = sqlx::query_scalar(
        "select datname from pg_database where datname not in ('postgres', 'template0', 'template1')",
    )
    .fetch_all(&mut connection)
    .await?;
    connection.close().await?;
    let drops = names.into_iter().map(|name| drop_one(admin, name));
    futures_util::stream::iter(drops).buffer_unordered(AT_ONCE).try_collect().await
}

async fn drop_one(admin: &SecretString, name: String) -> Result<()> {
    let mut connection = PgConnection::connect(admin.expose_secret()).await?;
    let sql = format!("drop database if exists {} with (force)", quoted(&name));
    sqlx::raw_sql(AssertSqlSafe(sql)).execute(&mut connection).await?;
    Ok(connection.close().await?)
}

fn options(url: &SecretString) -> Result<PgConnectOptions> {
    let url = url.expose_secret();
    // The library takes whatever else looks like a URL for one that leads to this host.
    if !["postgres://", "postgresql://"].iter().any(|scheme| url.starts_with(scheme)) {
        return Err(sqlx::Error::Configuration("the URL does not begin with postgres://".into()).into());
    }
    Ok(url.parse()?)
}

fn quoted(name: &str) -> String {
    format!("\"{}\"", name.replace('"', "\"\""))
}

//! Connections, and databases as such.

use std::time::Duration;

use secrecy::{ExposeSecret as _, SecretString};
use sqlx::postgres::{PgConnectOptions, PgConnection, PgPoolOptions};
use sqlx::{AssertSqlSafe, Connection as _};

use super::{Pool, Result};

/// A request that finds no free connection for this long is refused.
const ACQUIRE_WITHIN: Duration = Duration::from_secs(5);

/// Connects. No statement runs longer than half a minute, and no transaction waits longer for its client.
pub async fn open(url: &SecretString, connections: u32) -> Result<Pool> {
    let options: PgConnectOptions = url.expose_secret().parse()?;
    let options = options.application_name("plimsoll").options([
        ("statement_timeout", "30s"),
        ("idle_in_transaction_session_timeout", "30s"),
        ("lock_timeout", "10s"),
    ]);
    let pool = PgPoolOptions::new().max_connections(connections).acquire_timeout(ACQUIRE_WITHIN);
    Ok(pool.connect_with(options).await?)
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

/// Drops all databases but those that Postgres brings.
pub async fn drop_all(admin: &SecretString) -> Result<()> {
    let mut connection = PgConnection::connect(admin.expose_secret()).await?;
    let names: Vec<String> = sqlx::query_scalar(
        "select datname from pg_database where datname not in ('postgres', 'template0', 'template1')",
    )
    .fetch_all(&mut connection)
    .await?;
    for name in names {
        let sql = format!("drop database if exists {} with (force)", quoted(&name));
        sqlx::raw_sql(AssertSqlSafe(sql)).execute(&mut connection).await?;
    }
    Ok(connection.close().await?)
}

fn quoted(name: &str) -> String {
    format!("\"{}\"", name.replace('"', "\"\""))
}

//! Migrations: append-only files in `migrations/`, compiled in.

use std::sync::LazyLock;
use std::time::Duration;

use sqlx::migrate::{Migrate as _, MigrateError, Migrator};
use sqlx::postgres::PgConnection;

use super::{Pool, Result, StoreError};

/// An older program starts beside the schema of a newer one, whose migrations it does not know.
static MIGRATIONS: LazyLock<Migrator> = LazyLock::new(|| {
    let mut migrations = sqlx::migrate!("../migrations");
    migrations.set_ignore_missing(true);
    migrations
});

/// A table that is in use for longer than this makes the migration give way, for others would queue up behind it; as
/// does another server that migrates. It is tried again.
const LOCK_WITHIN: &str = "set lock_timeout = '3s'; set statement_timeout = 0";
const PAUSE: Duration = Duration::from_secs(1);
const TRIES: u32 = 100;

/// Brings the schema up to date. Several servers may start at once: an advisory lock lets one through.
pub async fn run(pool: &Pool) -> Result<()> {
    let mut tries = 0;
    loop {
        // One of its own: a migration that fails leaves the advisory lock with its connection.
        let mut connection = pool.acquire().await?.detach();
        let done = migrate(&mut connection).await;
        let _ = sqlx::Connection::close(connection).await;
        tries += 1;
        match done {
            Ok(()) => return Ok(()),
            Err(error) if tries < TRIES && is_lock(&error) => {
                tracing::info!(%error, "migrations wait for a lock");
                tokio::time::sleep(PAUSE).await;
            }
            Err(error) => return Err(failed(error)),
        }
    }
}

/// Whether the database answers and has every migration that this program knows.
pub async fn is_current(pool: &Pool) -> Result<bool> {
    Ok(missing(pool).await?.is_empty())
}

/// The migrations that the database lacks.
pub async fn missing(pool: &Pool) -> Result<Vec<i64>> {
    let mut connection = pool.acquire().await?;
    let applied = connection.list_applied_migrations(&MIGRATIONS.table_name).await.map_err(failed)?;
    let is_applied = |version: i64| applied.iter().any(|done| done.version == version);
    Ok(MIGRATIONS.iter().map(|known| known.version).filter(|version| !is_applied(*version)).collect())
}

async fn migrate(connection: &mut PgConnection) -> Result<(), MigrateError> {
    sqlx::raw_sql(LOCK_WITHIN).execute(&mut *connection).await?;
    MIGRATIONS.run_direct(None, connection, false).await
}

/// A database that goes away meanwhile is no fault of the schema.
fn failed(error: MigrateError) -> StoreError {
    let told = error.to_string();
    match error {
        MigrateError::Execute(cause) | MigrateError::ExecuteMigration(cause, _) => {
            Some(StoreError::from(cause)).filter(StoreError::is_away).unwrap_or(StoreError::Migrate(told))
        }
        _ => StoreError::Migrate(told),
    }
}

/// lock_not_available, deadlock_detected
fn is_lock(error: &MigrateError) -> bool {
    let cause = match error {
        MigrateError::Execute(cause) | MigrateError::ExecuteMigration(cause, _) => cause,
        _ => return false,
    };
    cause.as_database_error().and_then(|e| e.code()).is_some_and(|code| code == "55P03" || code == "40P01")
}

//! Migrations: append-only files in `migrations/`, compiled in.

use sqlx::migrate::Migrator;

use super::{Pool, Result, StoreError};

static MIGRATIONS: Migrator = sqlx::migrate!("../migrations");

/// Brings the schema up to date. Several servers may start at once: an advisory lock lets one through.
pub async fn run(pool: &Pool) -> Result<()> {
    MIGRATIONS.run(pool).await.map_err(|e| StoreError::Migrate(e.to_string()))
}

/// Whether the database answers and has every migration that this program knows.
pub async fn is_current(pool: &Pool) -> Result<bool> {
    use sqlx::migrate::Migrate as _;
    let mut connection = pool.acquire().await?;
    let applied = connection
        .list_applied_migrations(&MIGRATIONS.table_name)
        .await
        .map_err(|e| StoreError::Migrate(e.to_string()))?;
    Ok(MIGRATIONS.iter().all(|known| applied.iter().any(|done| done.version == known.version)))
}

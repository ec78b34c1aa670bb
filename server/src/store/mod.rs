//! The database. Nothing else in the server uses sqlx; every function takes an executor, and the caller owns the
//! transaction.

pub mod audit;
pub mod database;
pub mod deliveries;
pub mod members;
pub mod migrate;
pub mod pages;
pub mod projects;
pub mod reports;
pub mod resolve;
pub mod sessions;
pub mod snapshots;
pub mod testbeds;
pub mod tokens;
pub mod verdicts;
pub mod webhooks;

mod time;

use sqlx::postgres::Postgres;

/// A pool, a connection or a transaction.
pub trait Executor<'c>: sqlx::Executor<'c, Database = Postgres> {}
impl<'c, T: sqlx::Executor<'c, Database = Postgres>> Executor<'c> for T {}

pub type Pool = sqlx::PgPool;

/// For the checked macros: Postgres cuts longer column names.
type RevisionJson = sqlx::types::Json<plimsoll_domain::revision::Revision>;

#[derive(Debug, thiserror::Error)]
pub enum StoreError {
    #[error(transparent)]
    Database(sqlx::Error),
    #[error("the database does not answer: {0}")]
    Unavailable(sqlx::Error),
    /// Postgres keeps no NUL character in a text.
    #[error("a text contains a NUL character")]
    NulInText,
    #[error("the schema cannot be brought up to date: {0}")]
    Migrate(String),
    #[error("the stored {what} cannot be read: {why}")]
    Corrupt { what: &'static str, why: String },
}

pub type Result<T, E = StoreError> = std::result::Result<T, E>;

impl From<sqlx::Error> for StoreError {
    fn from(error: sqlx::Error) -> Self {
        if matches!(error, sqlx::Error::PoolTimedOut | sqlx::Error::Io(_) | sqlx::Error::PoolClosed) {
            return Self::Unavailable(error);
        }
        // untranslatable_character (jsonb) and character_not_in_repertoire (text)
        let nul =
            error.as_database_error().and_then(|e| e.code()).is_some_and(|code| code == "22P05" || code == "22021");
        if nul { Self::NulInText } else { Self::Database(error) }
    }
}

fn corrupt(what: &'static str) -> impl Fn(String) -> StoreError {
    move |why| StoreError::Corrupt { what, why }
}

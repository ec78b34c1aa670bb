//! The database. Nothing else in the server uses sqlx; every function takes an executor, and the caller owns the
//! transaction.

pub mod audit;
pub mod database;
pub mod deliveries;
pub mod gauges;
pub mod github;
pub mod jobs;
pub mod live;
pub mod members;
pub mod migrate;
pub mod outbox;
pub mod pages;
pub mod projects;
pub mod prune;
pub mod reports;
pub mod resolve;
pub mod runners;
pub mod secrets;
pub mod sessions;
pub mod snapshots;
pub mod testbeds;
pub mod tokens;
pub mod uploads;
pub mod verdicts;
pub mod webhooks;

mod time;

use sqlx::postgres::Postgres;

/// A pool, a connection or a transaction.
pub trait Executor<'c>: sqlx::Executor<'c, Database = Postgres> {}
impl<'c, T: sqlx::Executor<'c, Database = Postgres>> Executor<'c> for T {}

pub type Pool = sqlx::PgPool;
pub type Connection = sqlx::pool::PoolConnection<Postgres>;
pub type Transaction = sqlx::Transaction<'static, Postgres>;

/// For several statements one after the other: each return to the pool asks the connection whether it still works.
pub async fn acquire(pool: &Pool) -> Result<Connection> {
    Ok(pool.acquire().await?)
}

pub async fn begin(pool: &Pool) -> Result<Transaction> {
    Ok(pool.begin().await?)
}

pub async fn begin_on(connection: Connection) -> Result<Transaction> {
    Ok(Transaction::begin(connection, None).await?)
}

pub async fn commit(transaction: Transaction) -> Result<()> {
    Ok(transaction.commit().await?)
}

/// What a runner has, or a job asks for.
pub type Labels = sqlx::types::Json<std::collections::BTreeMap<String, String>>;
type ProgressJson = sqlx::types::Json<plimsoll_domain::job::Progress>;
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
        let code = error.as_database_error().and_then(|e| e.code());
        match &error {
            sqlx::Error::PoolTimedOut | sqlx::Error::PoolClosed | sqlx::Error::Io(_) | sqlx::Error::Tls(_) => {
                Self::Unavailable(error)
            }
            // A connection that breaks off in the middle of a message.
            sqlx::Error::Protocol(_) => Self::Unavailable(error),
            _ if code.as_deref().is_some_and(is_away) => Self::Unavailable(error),
            // untranslatable_character (jsonb) and character_not_in_repertoire (text)
            _ if matches!(code.as_deref(), Some("22P05" | "22021")) => Self::NulInText,
            _ => Self::Database(error),
        }
    }
}

impl StoreError {
    /// Whether the database may be there later.
    pub fn is_away(&self) -> bool {
        matches!(self, Self::Unavailable(_)) && !self.is_refusal()
    }

    /// Whether the database knows us, or itself, not by this URL: no URL at all, TLS that one side lacks, a wrong
    /// password, an unknown user or database, no right to connect.
    pub fn is_refusal(&self) -> bool {
        let (Self::Database(error) | Self::Unavailable(error)) = self else { return false };
        let code = error.as_database_error().and_then(|e| e.code());
        matches!(error, sqlx::Error::Configuration(_) | sqlx::Error::Tls(_))
            || code.is_some_and(|code| code.starts_with("28") || code == "3D000")
    }
}

/// Whether an SQLSTATE says that the database cannot work at the moment, and may again: connection exceptions,
/// insufficient resources (also a full disk), shutdown, crash and recovery, a standby, a lock or a statement that took
/// too long, a deadlock.
fn is_away(code: &str) -> bool {
    let classes = ["08", "53", "58"];
    classes.iter().any(|class| code.starts_with(class))
        || matches!(code, "57P01" | "57P02" | "57P03" | "57014" | "55P03" | "25006" | "40001" | "40P01")
}

fn corrupt(what: &'static str) -> impl Fn(String) -> StoreError {
    move |why| StoreError::Corrupt { what, why }
}

//! Which database a command works on, and the way to it.

use std::future::Future;
use std::path::PathBuf;

use plimsoll_domain::ids::ProjectSlug;
use plimsoll_server::config::{self, ConfigError, default_data_dir};
use plimsoll_server::serve;
use plimsoll_server::store::projects::{self, Visibility};
use plimsoll_server::store::{self, Pool};
use secrecy::{ExposeSecret as _, SecretString};

use super::CliError;

#[derive(Debug, clap::Args)]
pub(crate) struct Database {
    /// Folder for the server's token and the embedded Postgres [default: the platform's user data directory, or
    /// /var/lib/plimsoll as root]
    #[arg(long, value_name = "DIR", env = "PLIMSOLL_DATA_DIR")]
    data_dir: Option<PathBuf>,
    /// A Postgres to use instead of the embedded one.
    #[arg(long, value_name = "URL", env = "DATABASE_URL", hide_env_values = true)]
    database_url: Option<SecretString>,
}

/// A command does one thing at a time.
const CONNECTIONS: u32 = 2;

impl Database {
    pub(super) fn data_dir(&self) -> Result<PathBuf, ConfigError> {
        self.data_dir.clone().or_else(default_data_dir).ok_or(ConfigError::NoDataDir)
    }

    /// An empty variable is an unset one.
    pub(super) fn url(&self) -> Option<SecretString> {
        self.database_url.clone().filter(is_set)
    }

    /// What a project becomes that a command makes: what is said, else what the server that ran last with the data
    /// directory makes them. Beside a database URL only a data directory that is named too can be that server's.
    pub(super) fn new_projects(&self, said: Option<Visibility>) -> Visibility {
        let ours = self.url().is_none() || self.data_dir.is_some();
        let noted = || config::noted_new_projects(&self.data_dir().ok().filter(|_| ours)?);
        said.or_else(noted).unwrap_or(Visibility::Private)
    }

    /// Does `work` on the database: the given one, that of the server that runs on the data directory, or else the
    /// embedded one, which then runs as long as the work takes.
    pub(super) fn with<T, F: Future<Output = Result<T, CliError>>>(
        &self,
        work: impl FnOnce(Pool) -> F,
    ) -> Result<T, CliError> {
        let runtime = tokio::runtime::Runtime::new()?;
        runtime.block_on(async {
            let (url, cluster) = match self.url() {
                Some(url) => (url, None),
                None => serve::embedded_database(&self.data_dir()?).await?,
            };
            let pool = store::database::open(&url, CONNECTIONS).await?;
            store::migrate::run(&pool).await?;
            let done = work(pool.clone()).await;
            pool.close().await;
            tokio::task::spawn_blocking(move || drop(cluster)).await?;
            done
        })
    }
}

pub(super) fn is_set(secret: &SecretString) -> bool {
    !secret.expose_secret().is_empty()
}

/// Whether a project is named that there is not yet.
pub(super) async fn is_new(pool: &Pool, project: Option<&ProjectSlug>) -> Result<bool, CliError> {
    let Some(project) = project else { return Ok(false) };
    Ok(projects::is_public(pool, project).await?.is_none())
}

//! Starting and stopping the whole server, for the program and for whoever embeds it.

mod accept;
mod database;
mod front;

use std::future::Future;
use std::io;
use std::net::SocketAddr;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use secrecy::SecretString;
use tokio::sync::oneshot;
use tokio::task::JoinSet;

use crate::access::{TokenFileError, Tokens};
use crate::config::{self, Config, ConfigError};
use crate::github::{self, AppFile, AppFileError, UnfitIdentity};
use crate::postgres::{self, Cluster, Options, PostgresError};
use crate::router::router;
use crate::state::{AppState, Settings};
use crate::store::{self, StoreError};
use crate::tasks::background;
use database::Opened;
use front::Front;

#[derive(Debug, thiserror::Error)]
pub enum ServeError {
    #[error(transparent)]
    Config(#[from] ConfigError),
    #[error(transparent)]
    GitHubApp(#[from] UnfitIdentity),
    #[error(transparent)]
    AppFile(#[from] AppFileError),
    #[error(transparent)]
    Postgres(#[from] PostgresError),
    #[error(transparent)]
    Store(#[from] StoreError),
    #[error("the database cannot be used: {source}; look at --database-url (DATABASE_URL)")]
    Refused { source: StoreError },
    #[error(transparent)]
    Token(#[from] TokenFileError),
    #[error("the data directory {path}: {source}")]
    DataDir { path: PathBuf, source: io::Error },
    #[error(
        "no server has run with --data-dir {0}: start one there first (`plimsoll-server serve`), or name the one that \
         runs, by its --data-dir or --database-url"
    )]
    NeverRan(PathBuf),
    #[error("listening on {at}: {source}")]
    Listen { at: SocketAddr, source: io::Error },
    #[error("no random numbers: {0}")]
    Random(#[from] getrandom::Error),
    #[error("a task of ours failed: {0}")]
    Task(#[from] tokio::task::JoinError),
}

/// A server that runs. Stop it with [`stop`](Self::stop); dropping it cuts requests off and ends the embedded Postgres.
#[derive(Debug)]
pub struct Server {
    address: SocketAddr,
    token: SecretString,
    token_file: PathBuf,
    setup_code: Option<SecretString>,
    state: AppState,
    end: Option<oneshot::Sender<()>>,
    /// Ends with this, as the next one does.
    served: JoinSet<()>,
    background: JoinSet<()>,
    /// Last: ends after everything that uses it.
    cluster: Option<Cluster>,
}

/// Requests under way have this long when the server stops.
const DRAIN_WITHIN: Duration = Duration::from_secs(10);

impl Server {
    /// Listens, opens the database (the embedded one without a URL) and brings the schema up to date. While a database
    /// of somebody else's is away this waits for it, and everything but `/healthz` is answered with 503.
    pub async fn start(config: Config) -> Result<Self, ServeError> {
        config.check()?;
        let data_dir = make_data_dir(&config.data_dir)?;
        let github_app = github_app(config.github_app.as_ref(), &config.github_site, &data_dir)?;
        let (url, cluster) = match &config.database_url {
            Some(url) => (url.clone(), None),
            None => {
                let (url, cluster) = embedded(data_dir.join("postgres"), config.durable).await?;
                (url, Some(cluster))
            }
        };
        let failed = |source| ServeError::Listen { at: config.listen, source };
        let listener = accept::listen(config.listen).map_err(failed)?;
        let address = listener.local_addr().map_err(failed)?;
        let front = Front::new(config.over_tls());
        let (end, ended) = oneshot::channel::<()>();
        let mut served = JoinSet::new();
        served.spawn(accept::serve(listener, front.clone(), config.connections, ended));

        let Opened { pool, token, token_file } =
            database::open(&url, &data_dir).await.map_err(|error| match error {
                ServeError::Store(source) if cluster.is_none() && source.is_refusal() => ServeError::Refused { source },
                error => error,
            })?;
        config::note_new_projects(&data_dir, config.new_projects());
        let (setup, setup_code) = match github_app {
            Some(_) => (None, None),
            None => github::Setup::new(&data_dir).map(|(setup, code)| (Some(Arc::new(setup)), Some(code)))?,
        };
        let settings = Settings {
            tokens: Tokens::new(&config.tokens),
            new_projects: config.new_projects(),
            public_url: config.public_url.map(|url| url.trim_end_matches('/').to_owned()),
            trusted_proxies: config.trusted_proxies,
            allowance: config.allowance,
            allow_private_webhooks: config.allow_private_webhooks,
            github: config.github,
            github_app,
            github_site: config.github_site,
            oidc_issuer: config.oidc_issuer,
            setup,
            retention: config.retention,
            open_metrics: config.open_metrics,
            embedded: cluster.is_some(),
            data_dir: Some(data_dir),
        };
        let state = AppState::new(pool, settings);
        front.open(router(state.clone()));
        let background = background::start(&state);
        Ok(Self { address, token, token_file, setup_code, state, end: Some(end), served, background, cluster })
    }

    /// The address it really listens on.
    pub fn address(&self) -> SocketAddr {
        self.address
    }

    pub fn url(&self) -> String {
        format!("http://{}", self.address)
    }

    /// The address at which people reach it.
    pub fn public_url(&self) -> String {
        self.state.public_url().map_or_else(|| self.url(), ToOwned::to_owned)
    }

    /// A token that may do everything.
    pub fn token(&self) -> &SecretString {
        &self.token
    }

    /// Where the token lies.
    pub fn token_file(&self) -> &Path {
        &self.token_file
    }

    /// What the setup page of the GitHub App asks for, where there is no App.
    pub fn setup_code(&self) -> Option<&SecretString> {
        self.setup_code.as_ref()
    }

    /// The embedded Postgres, if it is one.
    pub fn cluster(&self) -> Option<&Cluster> {
        self.cluster.as_ref()
    }

    /// Lets the requests under way finish, up to a bound, then ends everything.
    pub async fn stop(mut self) -> Result<(), ServeError> {
        self.state.drain();
        drop(self.end.take());
        let drained = tokio::time::timeout(DRAIN_WITHIN, self.served.join_next()).await;
        if drained.is_err() {
            tracing::warn!("requests were still under way and are cut off");
            self.served.abort_all();
        }
        let background = async { while self.background.join_next().await.is_some() {} };
        if tokio::time::timeout(DRAIN_WITHIN, background).await.is_err() {
            tracing::warn!("tasks were still under way and are cut off");
            self.background.shutdown().await;
        }
        let closed = tokio::time::timeout(DRAIN_WITHIN, self.state.pool().close()).await;
        let cluster = self.cluster.take();
        tokio::task::spawn_blocking(move || drop(cluster)).await?;
        if closed.is_err() {
            tracing::warn!("database connections were still in use");
        }
        match drained {
            Ok(Some(served)) => Ok(served?),
            Ok(None) | Err(_) => Ok(()),
        }
    }
}

impl ServeError {
    /// Whether the database may be there later.
    fn is_away(&self) -> bool {
        match self {
            Self::Store(error) | Self::Token(TokenFileError::Store(error)) => error.is_away(),
            _ => false,
        }
    }
}

/// Runs a server until `shutdown` resolves, be it during the start. `started` is told when it listens.
pub async fn serve(
    config: Config,
    started: impl FnOnce(&Server),
    shutdown: impl Future<Output = ()>,
) -> Result<(), ServeError> {
    let mut shutdown = std::pin::pin!(shutdown);
    let server = tokio::select! {
        biased;
        server = Server::start(config) => server?,
        // A Postgres that is just starting ends as soon as it has; the runtime waits for it.
        () = &mut shutdown => {
            tracing::info!("stopped before it listened");
            return Ok(());
        }
    };
    started(&server);
    shutdown.await;
    tracing::info!("stopping");
    server.stop().await
}

/// The name of our database in the embedded Postgres.
const DATABASE: &str = "plimsoll";

/// The database in a data directory: that of the server that runs on it, or else one that is started, and ends with the
/// cluster that is returned.
pub async fn embedded_database(data_dir: &Path) -> Result<(SecretString, Option<Cluster>), ServeError> {
    let at = data_dir.to_owned();
    if let Some(url) = tokio::task::spawn_blocking(move || running_database(&at)).await?? {
        return Ok((url, None));
    }
    let (url, cluster) = embedded(make_data_dir(data_dir)?.join("postgres"), true).await?;
    Ok((url, Some(cluster)))
}

/// The database of the server that runs on a data directory; `None` when none does. One that no server has run with is
/// refused rather than made: its path is a mistake.
pub fn running_database(data_dir: &Path) -> Result<Option<SecretString>, ServeError> {
    let dir = data_dir.join("postgres");
    // First: of one that is just being made the lock says more.
    let running = postgres::running(&dir, DATABASE)?;
    if running.is_none() && !postgres::is_made(&dir)? {
        return Err(ServeError::NeverRan(data_dir.to_owned()));
    }
    Ok(running)
}

async fn embedded(dir: PathBuf, durable: bool) -> Result<(SecretString, Cluster), ServeError> {
    let options = Options { dir, durable };
    let cluster = tokio::task::spawn_blocking(move || Cluster::start(&options)).await??;
    tracing::info!(dir = %cluster.dir().display(), pid = cluster.pid(), "Postgres runs");
    store::database::create(&cluster.url("postgres"), DATABASE).await?;
    Ok((cluster.url(DATABASE), cluster))
}

/// The App of the configuration, else that which the setup page registered.
pub fn github_app(
    configured: Option<&github::Identity>,
    site: &github::Site,
    data_dir: &Path,
) -> Result<Option<github::Client>, ServeError> {
    let identity = match configured {
        Some(identity) => Some(identity.clone()),
        None => AppFile::read(data_dir)?.map(|app| app.identity(&site.api_url)),
    };
    Ok(identity.map(github::Client::new).transpose()?)
}

/// The folder's absolute path, made if need be.
fn make_data_dir(path: &Path) -> Result<PathBuf, ServeError> {
    let made = postgres::make_dir(path).and_then(|()| path.canonicalize());
    made.map_err(|source| ServeError::DataDir { path: path.to_owned(), source })
}

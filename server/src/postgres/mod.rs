//! The embedded database: a real Postgres of our own in a data directory, started with the server and ended with it.
//!
//! One owner per directory, by file lock. It listens on a free loopback port and on a socket in a private directory;
//! the password is random and stays in the directory. On Linux with `setpriv` the kernel ends Postgres when its owner
//! dies, even by SIGKILL; the other way round, a Postgres that dies is started again. Elsewhere an orphan runs on until the next start on the same directory, which ends it first.
//! Everything here blocks: call it from a thread that may.

mod account;
mod binaries;
mod directory;
mod process;
pub mod scratch;
mod supervisor;

pub use directory::{is_made, make_dir};

use std::io;
use std::net::{Ipv4Addr, TcpListener};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use secrecy::{ExposeSecret as _, SecretString};

use account::Account;
use binaries::Binaries;
use directory::Directory;
use process::Failed;
use supervisor::{Recipe, Supervisor};

/// Why there is no database.
#[derive(Debug, thiserror::Error)]
pub enum PostgresError {
    #[error(
        "no Postgres found. Install it:\n  Debian, Ubuntu: apt-get install postgresql\n  Fedora: dnf install \
         postgresql-server\n  macOS: brew install postgresql@17\nor name the folder of its binaries in PG_BIN, or use a \
         database of yours by DATABASE_URL"
    )]
    NoBinaries,
    #[error("PG_BIN is {0}, but there is no `initdb` and `postgres` in it")]
    BadPgBin(PathBuf),
    #[error("the database in {dir} is in use by another plimsoll{}: stop it, or choose another data directory",
        owner.map(|pid| format!(" (process {pid})")).unwrap_or_default())]
    InUse { dir: PathBuf, owner: Option<u32> },
    #[error(
        "Postgres refuses to run as root, and there is no user `postgres` or `nobody` to run it as: start plimsoll as an \
         ordinary user, or use a database of yours by DATABASE_URL"
    )]
    NoAccount,
    #[error(
        "the user `{user}`, as which Postgres runs because it refuses root, may not enter {blocked}: choose a data \
         directory outside it, for example --data-dir /var/lib/plimsoll"
    )]
    NotReachable { user: String, blocked: PathBuf },
    #[error(
        "{dir} holds a database of Postgres {found}, but the Postgres found is {ours}: install {found}, or set PG_BIN"
    )]
    OtherVersion { dir: PathBuf, found: String, ours: String },
    #[error("{path} {why}: Postgres' folder must be one that root or `{user}` made; choose another data directory")]
    Foreign { path: PathBuf, why: &'static str, user: String },
    #[error("{dir} holds a database but not its password file: put it back, or remove the folder to start anew")]
    NoPassword { dir: PathBuf },
    #[error("{what} failed: {why}")]
    Command { what: &'static str, why: String },
    #[error("{path}: {source}")]
    File { path: PathBuf, source: io::Error },
    #[error("no random numbers: {0}")]
    Random(getrandom::Error),
}

/// How to run it.
#[derive(Debug, Clone)]
pub struct Options {
    /// Created when absent.
    pub dir: PathBuf,
    /// False gives up safety against a crash of the host for speed: for tests.
    pub durable: bool,
}

/// A running Postgres. One that ends by itself is started again, at the same address. Dropping it stops it.
#[derive(Debug)]
pub struct Cluster {
    // Ends before the directory's lock, in the recipe, is let go.
    supervisor: Supervisor,
    recipe: Arc<Recipe>,
    password: SecretString,
}

/// The database user, a superuser of this cluster.
const USER: &str = "plimsoll";
/// A port found free may be taken a moment later.
const PORT_TRIES: u32 = 5;

impl Cluster {
    /// Starts Postgres on the directory, after `initdb` at first use. Returns when it accepts connections.
    pub fn start(options: &Options) -> Result<Self, PostgresError> {
        let account = Account::find()?;
        let directory = Directory::claim(&options.dir, &account)?;
        let (binaries, password) = prepare(&directory, &account, options.durable)?;
        Self::run(binaries, account, directory, password, options.durable).map_err(|(error, _)| error)
    }

    /// The same for data that nobody misses: what does not start is removed and made anew, once.
    fn start_over(options: &Options) -> Result<Self, PostgresError> {
        let account = Account::find()?;
        let directory = Directory::claim(&options.dir, &account)?;
        let tried = match prepare(&directory, &account, options.durable) {
            Ok((binaries, password)) => Self::run(binaries, account.clone(), directory, password, options.durable),
            Err(error) => Err((error, Some(directory))),
        };
        let (error, directory) = match tried {
            Ok(cluster) => return Ok(cluster),
            Err((error, Some(directory))) => (error, directory),
            Err((error, None)) => return Err(error),
        };
        tracing::warn!(%error, dir = %directory.path().display(), "made anew");
        directory.wipe()?;
        let (binaries, password) = prepare(&directory, &account, options.durable)?;
        Self::run(binaries, account, directory, password, options.durable).map_err(|(error, _)| error)
    }

    /// Starts it on a free port. What failed gives the directory back.
    fn run(
        binaries: Binaries,
        account: Account,
        directory: Directory,
        password: SecretString,
        durable: bool,
    ) -> Result<Self, (PostgresError, Option<Directory>)> {
        let mut recipe = Recipe { binaries, account, directory, port: 0, durable };
        for _ in 0..PORT_TRIES {
            recipe.port = match free_port() {
                Ok(port) => port,
                Err(error) => return Err((error, Some(recipe.directory))),
            };
            match recipe.start(&|| false) {
                Ok(postmaster) => {
                    let recipe = Arc::new(recipe);
                    let supervisor = Supervisor::watch(postmaster, Arc::clone(&recipe)).map_err(|e| (e, None))?;
                    return Ok(Self { supervisor, recipe, password });
                }
                Err(Failed::PortTaken) => {}
                Err(Failed::Other(error)) => return Err((error, Some(recipe.directory))),
            }
        }
        let error = PostgresError::Command { what: "postgres", why: "no free port".to_owned() };
        Err((error, Some(recipe.directory)))
    }

    /// The address of one of its databases.
    pub fn url(&self, database: &str) -> SecretString {
        url(&self.password, self.recipe.port, database)
    }

    pub fn dir(&self) -> &Path {
        self.recipe.directory.path()
    }

    /// Process id of the postmaster; `None` while there is none.
    pub fn pid(&self) -> Option<u32> {
        self.supervisor.pid()
    }

    /// Ends it: sessions are cut and the data are written out (a "fast" shutdown). Also what dropping does.
    pub fn stop(&self) {
        self.supervisor.stop(Duration::from_secs(10));
    }
}

impl Drop for Cluster {
    fn drop(&mut self) {
        self.stop();
    }
}

/// The address of a database of the cluster that another process runs on this directory; `None` when none does.
pub fn running(dir: &Path, database: &str) -> Result<Option<SecretString>, PostgresError> {
    let found = directory::running(dir)?;
    Ok(found.map(|(port, password)| url(&password, port, database)))
}

fn url(password: &SecretString, port: u16, database: &str) -> SecretString {
    format!("postgres://{USER}:{}@127.0.0.1:{port}/{database}", password.expose_secret()).into()
}

/// What a claimed directory needs before a start: the binaries that fit, and at first use a new database.
fn prepare(directory: &Directory, account: &Account, durable: bool) -> Result<(Binaries, SecretString), PostgresError> {
    let binaries = Binaries::find(directory.version()?.as_deref())?;
    let password = directory.prepare(&binaries, account, durable)?;
    Ok((binaries, password))
}

fn free_port() -> Result<u16, PostgresError> {
    let at = |source| PostgresError::File { path: "127.0.0.1".into(), source };
    let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).map_err(at)?;
    Ok(listener.local_addr().map_err(at)?.port())
}

fn at(path: &Path) -> impl FnOnce(io::Error) -> PostgresError {
    let path = path.to_owned();
    move |source| PostgresError::File { path, source }
}

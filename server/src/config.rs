//! Configuration, read once. Everything secret is wrapped.

use std::net::SocketAddr;
use std::path::PathBuf;

use secrecy::{ExposeSecret as _, SecretString};

use crate::access::MIN_TOKEN;

#[derive(Debug, Clone)]
pub struct Config {
    /// Port 0 takes a free one. Reading needs no token: listen where only those who may read can connect.
    pub listen: SocketAddr,
    /// Holds the server's token and, without `database_url`, the embedded Postgres.
    pub data_dir: PathBuf,
    /// A Postgres of somebody else's.
    pub database_url: Option<SecretString>,
    /// Tokens that may upload and no more, beside the one in the data directory.
    pub tokens: Vec<SecretString>,
    /// Where people reach the pages, when that is not the address listened on.
    pub public_url: Option<String>,
    /// Whether webhooks may lead to addresses that are not public.
    pub allow_private_webhooks: bool,
    /// False makes the embedded Postgres fast and forgetful.
    pub durable: bool,
}

#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum ConfigError {
    #[error("PLIMSOLL_TOKENS: a token has fewer than {MIN_TOKEN} characters; make one with `openssl rand -hex 32`")]
    ShortToken,
    #[error("the public URL {0:?} does not start with http:// or https://")]
    PublicUrl(String),
    #[error("no home directory is known: name a data directory with --data-dir")]
    NoDataDir,
}

impl Config {
    /// On a free port of the loopback interface, with everything in `data_dir`.
    pub fn local(data_dir: impl Into<PathBuf>) -> Self {
        Self {
            listen: SocketAddr::from(([127, 0, 0, 1], 0)),
            data_dir: data_dir.into(),
            database_url: None,
            tokens: Vec::new(),
            public_url: None,
            allow_private_webhooks: false,
            durable: true,
        }
    }

    pub(crate) fn check(&self) -> Result<(), ConfigError> {
        if self.tokens.iter().any(|token| token.expose_secret().len() < MIN_TOKEN) {
            return Err(ConfigError::ShortToken);
        }
        match &self.public_url {
            Some(url) if !url.starts_with("http://") && !url.starts_with("https://") => {
                Err(ConfigError::PublicUrl(url.clone()))
            }
            _ => Ok(()),
        }
    }
}

/// The platform's folder for our data: `/var/lib/plimsoll` as root, else the user's.
pub fn default_data_dir() -> Option<PathBuf> {
    if rustix::process::geteuid().is_root() {
        return Some("/var/lib/plimsoll".into());
    }
    let set = |name| std::env::var_os(name).filter(|value| !value.is_empty()).map(PathBuf::from);
    let home = set("HOME");
    if cfg!(target_os = "macos") {
        return Some(home?.join("Library/Application Support/plimsoll"));
    }
    let data = set("XDG_DATA_HOME").filter(|dir| dir.is_absolute()).or_else(|| Some(home?.join(".local/share")))?;
    Some(data.join("plimsoll"))
}

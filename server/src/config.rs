//! Configuration, read once. Everything secret is wrapped.

mod github_app;

use std::net::SocketAddr;
use std::num::NonZeroUsize;
use std::path::{Path, PathBuf};
use std::time::Duration;

use secrecy::{ExposeSecret as _, SecretString};

use crate::access::{Allowance, Cidr, MIN_TOKEN};
use crate::github;
use crate::store::projects::Visibility;

pub use github_app::{GitHubApp, GitHubAppError};

#[derive(Debug, Clone)]
pub struct Config {
    /// Port 0 takes a free one.
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
    /// For sign-in by GitHub.
    pub github: Option<github::App>,
    /// The App that the server acts as; without one, that which the setup page registered.
    pub github_app: Option<github::Identity>,
    /// Where GitHub is.
    pub github_site: github::Site,
    /// Who says what a workflow is; `None`: GitHub.
    pub oidc_issuer: Option<String>,
    /// Who may read a project that is new. `None`: everybody where only this machine can connect, else nobody without a
    /// token.
    pub new_projects: Option<Visibility>,
    /// Proxies whose `X-Forwarded-For` is believed.
    pub trusted_proxies: Vec<Cidr>,
    pub allowance: Allowance,
    /// Open at the same time; further ones wait.
    pub connections: NonZeroUsize,
    /// Age at which reports lose their windows; `None` keeps them.
    pub retention: Option<Duration>,
    /// Whether `/metrics` needs no token.
    pub open_metrics: bool,
    /// False makes the embedded Postgres fast and forgetful.
    pub durable: bool,
}

pub const DEFAULT_CONNECTIONS: NonZeroUsize = NonZeroUsize::new(1_024).unwrap();

#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum ConfigError {
    #[error("PLIMSOLL_TOKENS: a token has fewer than {MIN_TOKEN} characters; make one with `openssl rand -hex 32`")]
    ShortToken,
    #[error("the public URL {0:?} does not start with http:// or https://")]
    PublicUrl(String),
    #[error(
        "sign-in by GitHub needs both: PLIMSOLL_GITHUB_CLIENT_ID, and PLIMSOLL_GITHUB_CLIENT_SECRET or \
         PLIMSOLL_GITHUB_CLIENT_SECRET_FILE; {0} is missing"
    )]
    HalfGitHub(&'static str),
    #[error("PLIMSOLL_GITHUB_CLIENT_SECRET and PLIMSOLL_GITHUB_CLIENT_SECRET_FILE are both set: set one of them")]
    TwoGitHubSecrets,
    #[error("PLIMSOLL_GITHUB_CLIENT_SECRET_FILE: {path}: {why}")]
    GitHubSecretFile { path: PathBuf, why: String },
    #[error(transparent)]
    GitHubApp(#[from] GitHubAppError),
    #[error("{name} is {url:?}, which does not start with http:// or https://")]
    GitHubUrl { name: &'static str, url: String },
    #[error("no home directory is known: name a data directory with --data-dir")]
    NoDataDir,
}

impl Config {
    /// People reach this server by https.
    pub(crate) fn over_tls(&self) -> bool {
        self.public_url.as_deref().is_some_and(|url| url.starts_with("https://"))
    }

    /// On a free port of the loopback interface, with everything in `data_dir`.
    pub fn local(data_dir: impl Into<PathBuf>) -> Self {
        Self {
            listen: SocketAddr::from(([127, 0, 0, 1], 0)),
            data_dir: data_dir.into(),
            database_url: None,
            tokens: Vec::new(),
            public_url: None,
            allow_private_webhooks: false,
            github: None,
            github_app: None,
            github_site: github::Site::default(),
            oidc_issuer: None,
            new_projects: None,
            trusted_proxies: Vec::new(),
            allowance: Allowance::default(),
            connections: DEFAULT_CONNECTIONS,
            retention: None,
            open_metrics: false,
            durable: true,
        }
    }

    /// Who may read a project that is new.
    pub fn new_projects(&self) -> Visibility {
        let default = if self.listen.ip().is_loopback() { Visibility::Public } else { Visibility::Private };
        self.new_projects.unwrap_or(default)
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

/// What is said about GitHub; an empty value is an unset one. The client is for sign-in.
#[derive(Debug, Clone)]
pub struct GitHub {
    pub client_id: Option<String>,
    pub client_secret: Option<SecretString>,
    /// A file with the secret in it.
    pub client_secret_file: Option<PathBuf>,
    /// What the server acts as.
    pub app: GitHubApp,
    pub url: String,
    pub api_url: String,
}

impl GitHub {
    pub fn site(&self) -> Result<github::Site, ConfigError> {
        let public = github::Site::default();
        let set = |name, url: &str, default| if url.is_empty() { Ok(default) } else { address(name, url) };
        Ok(github::Site {
            url: set("PLIMSOLL_GITHUB_URL", &self.url, public.url)?,
            api_url: set("PLIMSOLL_GITHUB_API_URL", &self.api_url, public.api_url)?,
        })
    }

    /// The App that the server acts as, if one is configured. Part of one is refused.
    pub fn identity(&self) -> Result<Option<github::Identity>, ConfigError> {
        Ok(self.app.clone().identity(&self.site()?.api_url)?)
    }

    /// The app for sign-in, if one is configured. Half of one is refused.
    pub fn app(self) -> Result<Option<github::App>, ConfigError> {
        let github::Site { url, api_url } = self.site()?;
        let client_id = self.client_id.filter(|id| !id.is_empty());
        let given = self.client_secret.filter(|secret| !secret.expose_secret().is_empty());
        let file = self.client_secret_file.filter(|path| !path.as_os_str().is_empty());
        let secret = match (given, file) {
            (Some(_), Some(_)) => return Err(ConfigError::TwoGitHubSecrets),
            (None, Some(path)) => Some(secret_in(path)?),
            (given, None) => given,
        };
        let (client_id, client_secret) = match (client_id, secret) {
            (None, None) => return Ok(None),
            (Some(_), None) => return Err(ConfigError::HalfGitHub("the secret")),
            (None, Some(_)) => return Err(ConfigError::HalfGitHub("the id")),
            (Some(id), Some(secret)) => (id, secret),
        };
        Ok(Some(github::App { client_id, client_secret, url, api_url, within: github::App::WITHIN }))
    }
}

/// Who says what a workflow is, where that is not GitHub itself.
pub fn oidc_issuer(url: &str) -> Result<Option<String>, ConfigError> {
    if url.is_empty() { Ok(None) } else { address("PLIMSOLL_GITHUB_OIDC_ISSUER", url).map(Some) }
}

fn secret_in(path: PathBuf) -> Result<SecretString, ConfigError> {
    let wrong = |path, why: String| ConfigError::GitHubSecretFile { path, why };
    match std::fs::read_to_string(&path) {
        Ok(text) if text.trim().is_empty() => Err(wrong(path, "it is empty".to_owned())),
        Ok(text) => Ok(SecretString::from(text.trim())),
        Err(error) => Err(wrong(path, error.to_string())),
    }
}

/// Without a final slash.
fn address(name: &'static str, url: &str) -> Result<String, ConfigError> {
    if url.starts_with("http://") || url.starts_with("https://") {
        return Ok(url.trim_end_matches('/').to_owned());
    }
    Err(ConfigError::GitHubUrl { name, url: url.to_owned() })
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

/// Where a server leaves what it makes new projects, for the commands beside it: they do not know where it listens.
fn new_projects_file(data_dir: &Path) -> PathBuf {
    data_dir.join("new-projects")
}

/// Leaves it there. One that cannot be written is removed: without it commands make new projects private.
pub(crate) fn note_new_projects(data_dir: &Path, visibility: Visibility) {
    if noted_new_projects(data_dir) == Some(visibility) {
        return;
    }
    let path = new_projects_file(data_dir);
    if let Err(error) = std::fs::write(&path, format!("{}\n", visibility.name())) {
        let _ = std::fs::remove_file(&path);
        tracing::warn!(%error, path = %path.display(), "commands make new projects private: this is not written");
    }
}

/// What the server that ran last with the data directory makes new projects; `None` when none left it.
pub fn noted_new_projects(data_dir: &Path) -> Option<Visibility> {
    std::fs::read_to_string(new_projects_file(data_dir)).ok()?.trim().parse().ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn github(id: &str, secret: &str, file: Option<&std::path::Path>) -> GitHub {
        GitHub {
            client_id: Some(id.to_owned()),
            client_secret: Some(secret.into()),
            client_secret_file: file.map(PathBuf::from),
            app: GitHubApp::default(),
            url: "https://github.example/".to_owned(),
            api_url: "https://api.github.example".to_owned(),
        }
    }

    #[test]
    fn what_new_projects_are_is_left_for_commands() {
        let folder = tempfile::tempdir().unwrap();
        assert_eq!(noted_new_projects(folder.path()), None);
        for visibility in [Visibility::Public, Visibility::Private] {
            note_new_projects(folder.path(), visibility);
            assert_eq!(noted_new_projects(folder.path()), Some(visibility));
        }
        std::fs::write(new_projects_file(folder.path()), "pub").unwrap();
        assert_eq!(noted_new_projects(folder.path()), None, "a half-written one counts for nothing");
    }

    #[test]
    fn half_a_github_app_is_refused_and_both_halves_are_named() {
        for half in [github("id", "", None), github("", "secret", None)] {
            let refused = half.app().unwrap_err().to_string();
            assert!(refused.contains("PLIMSOLL_GITHUB_CLIENT_ID"), "{refused}");
            assert!(refused.contains("PLIMSOLL_GITHUB_CLIENT_SECRET"), "{refused}");
        }
        assert!(github("", "", None).app().unwrap().is_none());
        let app = github("id", "secret", None).app().unwrap().unwrap();
        assert_eq!((app.client_id.as_str(), app.url.as_str()), ("id", "https://github.example"));
        let odd = GitHub { url: "github.example".to_owned(), ..github("id", "secret", None) };
        assert!(odd.app().unwrap_err().to_string().contains("PLIMSOLL_GITHUB_URL"));
    }

    #[test]
    fn the_secret_may_lie_in_a_file() {
        let folder = tempfile::tempdir().unwrap();
        let file = folder.path().join("secret");
        std::fs::write(&file, "  from a file\n").unwrap();
        let app = github("id", "", Some(&file)).app().unwrap().unwrap();
        assert_eq!(app.client_secret.expose_secret(), "from a file");
        assert_eq!(github("id", "too", Some(&file)).app().unwrap_err(), ConfigError::TwoGitHubSecrets);
        std::fs::write(&file, "\n").unwrap();
        for wrong in [file.as_path(), folder.path()] {
            let refused = github("id", "", Some(wrong)).app().unwrap_err();
            assert!(matches!(refused, ConfigError::GitHubSecretFile { .. }), "{refused}");
        }
    }
}

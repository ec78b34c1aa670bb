//! `plimsoll-server serve`.

use std::io::Write as _;
use std::net::SocketAddr;
use std::num::{NonZeroU32, NonZeroUsize};
use std::path::PathBuf;
use std::time::Duration;

use plimsoll_server::access::{Allowance, Cidr, Issuer};
use plimsoll_server::config::{self, Config, DEFAULT_CONNECTIONS};
use plimsoll_server::serve::{Server, serve};
use plimsoll_server::store::projects::Visibility;
use secrecy::{ExposeSecret as _, SecretString};
use tokio::signal::unix::{SignalKind, signal};

use super::CliError;
use super::database::{Database, is_set};

#[derive(Debug, clap::Args)]
pub(super) struct Serve {
    /// Where to listen; port 0 takes a free one.
    #[arg(long, value_name = "ADDR", env = "PLIMSOLL_LISTEN", default_value = "127.0.0.1:7420")]
    listen: SocketAddr,
    #[command(flatten)]
    database: Database,
    /// Tokens that may upload and no more, beside those in the database, separated by commas.
    #[arg(long, value_name = "TOKEN", env = "PLIMSOLL_TOKENS", hide_env_values = true, value_delimiter = ',')]
    tokens: Vec<SecretString>,
    /// The address at which people reach the pages, when a proxy stands before them.
    #[arg(long, value_name = "URL", env = "PLIMSOLL_PUBLIC_URL")]
    public_url: Option<String>,
    /// Let webhooks lead to addresses that are not public: loopback, private networks.
    #[arg(long, env = "PLIMSOLL_ALLOW_PRIVATE_WEBHOOKS")]
    allow_private_webhooks: bool,
    #[command(flatten)]
    github: GitHub,
    /// Who may read a project that is new: `public` (everybody who can connect) or `private` [default: public when
    /// listening on loopback, else private]
    #[arg(long, value_name = "VISIBILITY", env = "PLIMSOLL_NEW_PROJECTS")]
    new_projects: Option<Visibility>,
    /// Proxies whose X-Forwarded-For is believed, as address ranges separated by commas.
    #[arg(long, value_name = "CIDR", env = "PLIMSOLL_TRUSTED_PROXIES", value_delimiter = ',')]
    trusted_proxies: Vec<Cidr>,
    /// Requests a second of one token, and of one address without a token; four times as many may come at once.
    #[arg(long, value_name = "N", env = "PLIMSOLL_MAX_REQUESTS",
          default_value_t = Allowance::default().requests_per_second)]
    max_requests: NonZeroU32,
    /// Failures to sign in, of one address in a minute.
    #[arg(long, value_name = "N", env = "PLIMSOLL_MAX_FAILURES",
          default_value_t = Allowance::default().failures_per_minute)]
    max_failures: NonZeroU32,
    /// Age at which reports lose their per-second windows, such as 90d; figures, histograms and slices stay [default:
    /// they are kept]
    #[arg(long, value_name = "AGE", env = "PLIMSOLL_RETENTION", value_parser = super::age::parse)]
    retention: Option<Duration>,
    /// Let everybody who can connect read /metrics; without this it needs a token that reads the whole server.
    #[arg(long, env = "PLIMSOLL_OPEN_METRICS")]
    open_metrics: bool,
    /// Connections at the same time; further ones wait.
    #[arg(long, value_name = "N", env = "PLIMSOLL_MAX_CONNECTIONS", default_value_t = DEFAULT_CONNECTIONS)]
    max_connections: NonZeroUsize,
}

/// An OAuth app of GitHub's, by which members sign in, and the App that the server acts as.
#[derive(Debug, clap::Args)]
pub(super) struct GitHub {
    /// The OAuth app for sign-in by GitHub; its secret comes by PLIMSOLL_GITHUB_CLIENT_SECRET or a file.
    #[arg(long, value_name = "ID", env = "PLIMSOLL_GITHUB_CLIENT_ID")]
    github_client_id: Option<String>,
    #[arg(long, value_name = "SECRET", env = "PLIMSOLL_GITHUB_CLIENT_SECRET", hide = true, hide_env_values = true)]
    github_client_secret: Option<SecretString>,
    /// File with the OAuth app's secret.
    #[arg(long, value_name = "FILE", env = "PLIMSOLL_GITHUB_CLIENT_SECRET_FILE")]
    github_client_secret_file: Option<PathBuf>,
    /// The GitHub App that the server acts as; its webhook secret comes by PLIMSOLL_GITHUB_WEBHOOK_SECRET or a file.
    #[arg(long, value_name = "ID", env = "PLIMSOLL_GITHUB_APP_ID")]
    github_app_id: Option<String>,
    /// File with the App's private key, as GitHub gave it.
    #[arg(long, value_name = "FILE", env = "PLIMSOLL_GITHUB_PRIVATE_KEY_FILE")]
    github_private_key_file: Option<PathBuf>,
    #[arg(long, value_name = "SECRET", env = "PLIMSOLL_GITHUB_WEBHOOK_SECRET", hide = true, hide_env_values = true)]
    github_webhook_secret: Option<SecretString>,
    /// File with the secret that the App's deliveries are signed with.
    #[arg(long, value_name = "FILE", env = "PLIMSOLL_GITHUB_WEBHOOK_SECRET_FILE")]
    github_webhook_secret_file: Option<PathBuf>,
    /// Where GitHub's pages are.
    #[arg(long, value_name = "URL", env = "PLIMSOLL_GITHUB_URL", default_value = "https://github.com")]
    github_url: String,
    /// Where GitHub's API is.
    #[arg(long, value_name = "URL", env = "PLIMSOLL_GITHUB_API_URL", default_value = "https://api.github.com")]
    github_api_url: String,
    /// Who gives workflows their identity, for an installation of one's own: https://HOST/_services/token.
    #[arg(long, value_name = "URL", env = "PLIMSOLL_GITHUB_OIDC_ISSUER", default_value = Issuer::GITHUB)]
    github_oidc_issuer: String,
}

impl From<GitHub> for config::GitHub {
    fn from(args: GitHub) -> Self {
        Self {
            client_id: args.github_client_id,
            client_secret: args.github_client_secret,
            client_secret_file: args.github_client_secret_file,
            app: config::GitHubApp {
                id: args.github_app_id,
                private_key_file: args.github_private_key_file,
                webhook_secret: args.github_webhook_secret,
                webhook_secret_file: args.github_webhook_secret_file,
            },
            url: args.github_url,
            api_url: args.github_api_url,
        }
    }
}

impl Serve {
    pub(super) fn run(self) -> Result<(), CliError> {
        let oidc_issuer = config::oidc_issuer(&self.github.github_oidc_issuer)?;
        let github = config::GitHub::from(self.github);
        let config = Config {
            listen: self.listen,
            data_dir: self.database.data_dir()?,
            database_url: self.database.url(),
            tokens: self.tokens.into_iter().filter(is_set).collect(),
            public_url: self.public_url,
            allow_private_webhooks: self.allow_private_webhooks,
            oidc_issuer,
            github_site: github.site()?,
            github_app: github.identity()?,
            github: github.app()?,
            new_projects: self.new_projects,
            trusted_proxies: self.trusted_proxies,
            allowance: Allowance { requests_per_second: self.max_requests, failures_per_minute: self.max_failures },
            connections: self.max_connections,
            retention: self.retention,
            open_metrics: self.open_metrics,
            durable: true,
        };
        let runtime = tokio::runtime::Runtime::new()?;
        let mut interrupt = runtime.block_on(async { signal(SignalKind::interrupt()) })?;
        let mut terminate = runtime.block_on(async { signal(SignalKind::terminate()) })?;
        let stop = async move {
            tokio::select! {
                _ = interrupt.recv() => {}
                _ = terminate.recv() => {}
            }
        };
        Ok(runtime.block_on(serve(config, announce, stop))?)
    }
}

/// For people in the log; for programs on stdout.
fn announce(server: &Server) {
    tracing::info!(url = server.url(), token_file = %server.token_file().display(), "listening");
    if let Some(code) = server.setup_code() {
        let page = format!("{}/github/setup", server.public_url());
        tracing::info!(
            page,
            code = code.expose_secret(),
            "no GitHub App yet: to register one, give the page this code"
        );
    }
    let mut stdout = std::io::stdout().lock();
    if let Err(error) = writeln!(stdout, "listening on {}", server.url()).and_then(|()| stdout.flush()) {
        tracing::warn!(%error, "stdout is closed");
    }
}

//! `plimsoll-server`: parses, serves, reports.

use std::io::{IsTerminal as _, Write as _};
use std::net::SocketAddr;
use std::path::PathBuf;
use std::process::ExitCode;

use clap::{Parser, Subcommand};
use plimsoll_server::config::{self, Config, ConfigError, default_data_dir};
use plimsoll_server::serve::{ServeError, Server, serve};
use secrecy::{ExposeSecret as _, SecretString};
use tokio::signal::unix::{SignalKind, signal};
use tracing_subscriber::EnvFilter;

/// Keeps a performance snapshot of every release, compares it with its baseline, and shows both.
#[derive(Debug, Parser)]
#[command(version)]
struct Cli {
    #[command(subcommand)]
    command: Command,
}

#[derive(Debug, Subcommand)]
enum Command {
    /// Serve the API and the pages.
    Serve(Serve),
}

#[derive(Debug, clap::Args)]
struct Serve {
    /// Where to listen; port 0 takes a free one. Reading needs no token.
    #[arg(long, value_name = "ADDR", env = "PLIMSOLL_LISTEN", default_value = "127.0.0.1:7420")]
    listen: SocketAddr,
    /// Folder for the server's token and the embedded Postgres [default: the platform's user data directory, or
    /// /var/lib/plimsoll as root]
    #[arg(long, value_name = "DIR", env = "PLIMSOLL_DATA_DIR")]
    data_dir: Option<PathBuf>,
    /// A Postgres to use instead of the embedded one.
    #[arg(long, value_name = "URL", env = "DATABASE_URL", hide_env_values = true)]
    database_url: Option<SecretString>,
    /// Tokens that may upload and no more, beside the one in the data directory, separated by commas.
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
}

/// An OAuth app of GitHub's, by which members sign in.
#[derive(Debug, clap::Args)]
struct GitHub {
    /// The OAuth app for sign-in by GitHub; its secret comes by PLIMSOLL_GITHUB_CLIENT_SECRET or a file.
    #[arg(long, value_name = "ID", env = "PLIMSOLL_GITHUB_CLIENT_ID")]
    github_client_id: Option<String>,
    #[arg(long, value_name = "SECRET", env = "PLIMSOLL_GITHUB_CLIENT_SECRET", hide = true, hide_env_values = true)]
    github_client_secret: Option<SecretString>,
    /// File with the OAuth app's secret.
    #[arg(long, value_name = "FILE", env = "PLIMSOLL_GITHUB_CLIENT_SECRET_FILE")]
    github_client_secret_file: Option<PathBuf>,
    /// Where GitHub's pages are.
    #[arg(long, value_name = "URL", env = "PLIMSOLL_GITHUB_URL", default_value = "https://github.com")]
    github_url: String,
    /// Where GitHub's API is.
    #[arg(long, value_name = "URL", env = "PLIMSOLL_GITHUB_API_URL", default_value = "https://api.github.com")]
    github_api_url: String,
}

impl From<GitHub> for config::GitHub {
    fn from(args: GitHub) -> Self {
        Self {
            client_id: args.github_client_id,
            client_secret: args.github_client_secret,
            client_secret_file: args.github_client_secret_file,
            url: args.github_url,
            api_url: args.github_api_url,
        }
    }
}

fn main() -> ExitCode {
    let Command::Serve(args) = Cli::parse().command;
    let filter = EnvFilter::try_from_default_env().unwrap_or_else(|_| EnvFilter::new("info,sqlx=warn"));
    let colour = std::io::stderr().is_terminal() && std::env::var_os("NO_COLOR").is_none_or(|value| value.is_empty());
    tracing_subscriber::fmt().with_env_filter(filter).with_ansi(colour).with_writer(std::io::stderr).init();
    if rustls::crypto::ring::default_provider().install_default().is_err() {
        tracing::debug!("a TLS provider was installed already");
    }
    match run(args) {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("plimsoll-server: {error}");
            // 1 is the verdict `regressed` of the other programs, and clap's 2 is wrong usage.
            let misused = error.is::<ConfigError>() || matches!(error.downcast_ref(), Some(ServeError::Config(_)));
            ExitCode::from(if misused { 2 } else { 70 })
        }
    }
}

fn run(args: Serve) -> Result<(), Box<dyn std::error::Error>> {
    let config = Config {
        listen: args.listen,
        data_dir: args.data_dir.or_else(default_data_dir).ok_or(ConfigError::NoDataDir)?,
        // An empty variable is an unset one.
        database_url: args.database_url.filter(is_set),
        tokens: args.tokens.into_iter().filter(is_set).collect(),
        public_url: args.public_url,
        allow_private_webhooks: args.allow_private_webhooks,
        github: config::GitHub::from(args.github).app()?,
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

fn is_set(secret: &SecretString) -> bool {
    !secret.expose_secret().is_empty()
}

/// For people in the log; for programs on stdout.
fn announce(server: &Server) {
    tracing::info!(url = server.url(), token_file = %server.token_file().display(), "listening");
    let mut stdout = std::io::stdout().lock();
    if let Err(error) = writeln!(stdout, "listening on {}", server.url()).and_then(|()| stdout.flush()) {
        tracing::warn!(%error, "stdout is closed");
    }
}

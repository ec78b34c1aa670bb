//! The server as a part of the demo.

use std::io::Write as _;
use std::net::SocketAddr;
use std::path::PathBuf;

use plimsoll_server::config::Config;
use plimsoll_server::serve::{Server, serve};
use tokio::signal::unix::{SignalKind, signal};

#[derive(Debug, clap::Args)]
pub struct ServerArgs {
    #[arg(long, default_value = "127.0.0.1:0")]
    listen: SocketAddr,
    #[arg(long)]
    data_dir: PathBuf,
    /// A Postgres to use instead of one of its own.
    #[arg(long, env = "DATABASE_URL", hide_env_values = true)]
    database_url: Option<String>,
}

/// Serves until it is asked to end; the first line of stdout is the address. The error is a message for people.
pub(crate) fn run(args: ServerArgs) -> Result<(), String> {
    let config =
        Config { listen: args.listen, database_url: args.database_url.map(Into::into), ..Config::local(args.data_dir) };
    let runtime = tokio::runtime::Runtime::new().map_err(|error| format!("the runtime did not start: {error}"))?;
    runtime.block_on(async {
        let mut term = signal(SignalKind::terminate()).map_err(|error| format!("no signals: {error}"))?;
        let stop = async {
            term.recv().await;
        };
        serve(config, announce, stop).await.map_err(|error| error.to_string())
    })
}

fn announce(server: &Server) {
    let mut stdout = std::io::stdout().lock();
    // A demo that has gone away closes the lifeline too.
    let _ = writeln!(stdout, "{}", server.url()).and_then(|()| stdout.flush());
}

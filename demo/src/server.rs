//! The server as a part of the demo.

use std::io::Write as _;
use std::net::SocketAddr;
use std::path::PathBuf;

use plimsoll_server::config::Config;
use plimsoll_server::serve::{Server, serve};
use tokio::signal::unix::{SignalKind, signal};
use tracing_subscriber::EnvFilter;

#[derive(Debug, clap::Args)]
pub struct ServerArgs {
    #[arg(long, default_value = "127.0.0.1:0")]
    listen: SocketAddr,
    #[arg(long)]
    data_dir: PathBuf,
}

/// Serves, on a database of its own, until it is asked to end; the first line of stdout is the address. The error is a
/// message for people.
pub(crate) fn run(args: ServerArgs) -> Result<(), String> {
    // What goes wrong is seen; the rest would only stand between the demo's own lines.
    let filter = EnvFilter::try_from_default_env().unwrap_or_else(|_| EnvFilter::new("warn"));
    tracing_subscriber::fmt().with_env_filter(filter).with_ansi(false).with_writer(std::io::stderr).init();
    let config = Config { listen: args.listen, ..Config::local(args.data_dir) };
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

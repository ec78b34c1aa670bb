//! Flags, and the hidden commands by which the demo runs itself as each of its parts.

use std::ffi::OsString;
use std::io::Write as _;
use std::net::SocketAddr;
use std::path::PathBuf;
use std::process::ExitCode;

use clap::{Args, Parser, Subcommand};

use crate::plan;
use crate::releases::releases;
use crate::server::{self, ServerArgs};
use crate::service::{self, Parameters};

/// Measures three releases of a sample model service on this machine, judges them, and shows them in a browser.
#[derive(Debug, Parser)]
#[command(name = "plimsoll-demo", version, max_term_width = 100)]
pub struct Cli {
    #[command(flatten)]
    pub demo: DemoArgs,
    /// End with stdin: how a part ends with the demo, even when that is killed.
    #[arg(long, hide = true, global = true)]
    pub lifeline: bool,
    #[command(subcommand)]
    pub part: Option<Part>,
}

#[derive(Debug, Args)]
pub struct DemoArgs {
    /// End after the last verdict, with its exit code, and print the three verdicts as one JSON document on stdout.
    #[arg(long)]
    pub exit: bool,
    /// Where to keep the database, the plan and the reports [default: a temporary directory, removed at the end].
    #[arg(long, value_name = "DIR")]
    pub data_dir: Option<PathBuf>,
    /// Address of the web pages; port 0 takes a free one.
    #[arg(long, value_name = "ADDR", default_value = "127.0.0.1:0")]
    pub listen: SocketAddr,
    /// Shorter phases, for tests: rougher figures.
    #[arg(long, hide = true)]
    pub short: bool,
}

#[derive(Debug, Subcommand)]
pub enum Part {
    /// The sample model service alone.
    #[command(hide = true)]
    Service(ServiceArgs),
    /// The server alone.
    #[command(hide = true)]
    Server(ServerArgs),
    /// `plimsoll` with these arguments.
    #[command(hide = true, disable_help_flag = true)]
    Runner(Rest),
    /// Writes the demo's plan into a folder.
    #[command(hide = true)]
    Plan(PlanArgs),
}

#[derive(Debug, Args)]
pub struct ServiceArgs {
    #[arg(long, default_value = "127.0.0.1:0")]
    listen: SocketAddr,
    /// Behave as this release of the demo, whatever the other flags say.
    #[arg(long, value_name = "TAG")]
    release: Option<String>,
    #[command(flatten)]
    parameters: Parameters,
}

#[derive(Debug, Args)]
pub struct PlanArgs {
    folder: PathBuf,
    #[arg(long)]
    short: bool,
}

#[derive(Debug, Args)]
pub struct Rest {
    #[arg(trailing_var_arg = true, allow_hyphen_values = true)]
    args: Vec<OsString>,
}

/// Serves until it is stopped; the first line of stdout is the address.
pub fn service(args: ServiceArgs) -> ExitCode {
    let parameters = match &args.release {
        None => args.parameters,
        Some(tag) => match releases().into_iter().find(|release| release.tag == tag) {
            Some(release) => release.parameters,
            None => return failed(2, format!("the demo has no release {tag:?}")),
        },
    };
    let serve = async {
        let running = service::start(parameters, args.listen).await?;
        let mut out = std::io::stdout();
        writeln!(out, "http://{}", running.address())?;
        out.flush()?;
        running.wait().await
    };
    let runtime = tokio::runtime::Builder::new_multi_thread().worker_threads(2).enable_all().build();
    match runtime.and_then(|runtime| runtime.block_on(serve)) {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => failed(70, format!("the sample service on {}: {error}", args.listen)),
    }
}

pub fn plan(args: &PlanArgs) -> ExitCode {
    match plan::write(&args.folder, args.short) {
        Ok(_) => ExitCode::SUCCESS,
        Err(error) => failed(70, format!("{}: {error}", args.folder.display())),
    }
}

pub fn server(args: ServerArgs) -> ExitCode {
    match server::run(args) {
        Ok(()) => ExitCode::SUCCESS,
        Err(why) => failed(70, why),
    }
}

/// `plimsoll` itself.
pub fn runner(rest: Rest) -> ExitCode {
    plimsoll_runner::cli::main(std::iter::once("plimsoll".into()).chain(rest.args))
}

fn failed(code: u8, why: String) -> ExitCode {
    eprintln!("error: {why}");
    ExitCode::from(code)
}

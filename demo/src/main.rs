//! `plimsoll-demo`: the whole loop on one machine.

use std::process::ExitCode;

use clap::Parser as _;
use plimsoll_demo::cli::{Cli, Part};

fn main() -> ExitCode {
    let cli = Cli::parse();
    if cli.lifeline {
        plimsoll_demo::process::end_with_stdin();
    }
    match cli.part {
        Some(Part::Service(args)) => plimsoll_demo::cli::service(args),
        Some(Part::Server(args)) => plimsoll_demo::cli::server(args),
        Some(Part::Runner(args)) => plimsoll_demo::cli::runner(args),
        Some(Part::Plan(args)) => plimsoll_demo::cli::plan(&args),
        None => plimsoll_demo::demo::run(&cli.demo),
    }
}

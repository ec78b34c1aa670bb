//! The `plimsoll` program.

use std::process::ExitCode;

fn main() -> ExitCode {
    plimsoll_runner::cli::main(std::env::args_os())
}

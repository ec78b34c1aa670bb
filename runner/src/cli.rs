//! The command line: parses, calls one command, prints what it returned, ends with its code.
//!
//! A command returns text for people and one JSON document, and prints neither; progress goes to stderr while it runs.

#[cfg(target_os = "linux")]
mod agent;
mod args;
mod check;
mod compare;
mod gate;
mod init;
mod measure;
mod policy;
mod run;
mod submit;
mod upload;
mod watch;

use std::ffi::OsString;
use std::io::Write as _;
use std::process::ExitCode;

use clap::Parser as _;
use clap::error::ErrorKind;
use serde_json::Value;

use crate::exit::{Exit, Failure};
use crate::report::paint::Paint;
use args::{Cli, Command, PolicyCommand};

/// What a command did.
#[derive(Debug)]
struct Done {
    exit: Exit,
    /// For people, ending with a line break.
    text: String,
    json: Value,
}

/// The whole program. `arguments` begin with the program's name.
pub fn main(arguments: impl IntoIterator<Item = OsString>) -> ExitCode {
    let arguments: Vec<OsString> = arguments.into_iter().collect();
    // Asked for before anything is parsed, so that a usage error and a panic obey it too.
    let json = arguments.iter().any(|argument| argument == "--json");
    exit_with_70_on_panic(json);
    let done = match Cli::try_parse_from(arguments) {
        #[cfg(target_os = "linux")]
        Ok(Cli { command: Command::Supervise, .. }) => {
            crate::agent::supervise::main();
            return ExitCode::SUCCESS;
        }
        Ok(cli) => execute(&cli),
        Err(error) if matches!(error.kind(), ErrorKind::DisplayHelp | ErrorKind::DisplayVersion) => {
            let _ = error.print();
            return ExitCode::SUCCESS;
        }
        Err(error) if !json => {
            let _ = error.print();
            return ExitCode::from(Exit::Usage.code());
        }
        Err(error) => Err(usage(&error)),
    };
    ExitCode::from(finish(done, json).code())
}

fn execute(cli: &Cli) -> Result<Done, Failure> {
    let _ = rustls::crypto::ring::default_provider().install_default();
    // One thread for control, one so that signals are heard whatever the other does.
    let runtime = tokio::runtime::Builder::new_multi_thread()
        .worker_threads(2)
        .enable_all()
        .build()
        .map_err(|error| Failure::internal(format!("the runtime did not start: {error}")))?;
    let paint = Paint::stdout();
    runtime.block_on(async {
        match &cli.command {
            Command::Init(args) => init::execute(args),
            Command::Check(args) => check::execute(args),
            Command::Run(args) => run::execute(args, paint).await,
            Command::Gate(args) => gate::execute(args, paint).await,
            Command::Compare(args) => compare::execute(args, paint),
            Command::Upload(args) => upload::execute(args, paint).await,
            Command::Submit(args) => submit::execute(args, paint).await,
            Command::Watch(args) => watch::execute(args, paint).await,
            Command::Cancel(args) => submit::cancel(args).await,
            Command::Policy(PolicyCommand::Push(args)) => policy::push(args).await,
            #[cfg(target_os = "linux")]
            Command::Agent(args) => agent::execute(args, cli.json).await,
            #[cfg(target_os = "linux")]
            Command::Supervise => Err(Failure::internal("started before")),
        }
    })
}

/// Prints what the command returned. A reader that went away is no error; a stdout that does not take it is: whoever
/// reads it later would take half a document for the whole.
fn finish(done: Result<Done, Failure>, json: bool) -> Exit {
    let mut out = std::io::stdout().lock();
    let (exit, printed) = match (done, json) {
        (Ok(done), true) => (done.exit, writeln!(out, "{:#}", done.json)),
        (Ok(done), false) => (done.exit, write!(out, "{}", done.text)),
        (Err(failure), true) => (failure.exit, writeln!(out, "{:#}", failure.to_json())),
        (Err(failure), false) => {
            let _ = writeln!(std::io::stderr(), "{failure}");
            (failure.exit, Ok(()))
        }
    };
    match printed.and_then(|()| out.flush()) {
        Err(error) if error.kind() != std::io::ErrorKind::BrokenPipe => {
            let failure = Failure::internal(format!("the result could not be written to stdout: {error}"));
            let _ = writeln!(std::io::stderr(), "{}", failure.hint(format!("it was {}", exit.ends())));
            Exit::Internal
        }
        _ => exit,
    }
}

/// clap's own message as a failure of ours: its first line, the rest as the hint.
fn usage(error: &clap::Error) -> Failure {
    let text = error.render().to_string();
    let (first, rest) = text.split_once('\n').unwrap_or((&text, ""));
    let failure = Failure::usage(first.trim_start_matches("error: ").trim());
    match rest.trim() {
        "" => failure,
        rest => failure.hint(rest),
    }
}

/// A defect of ours never looks like a verdict.
fn exit_with_70_on_panic(json: bool) {
    std::panic::set_hook(Box::new(move |panic| {
        let failure = Failure::internal(format!("plimsoll failed, and that is a defect of plimsoll: {panic}"))
            .hint("please report it with this message");
        let exit = finish(Err(failure), json);
        std::process::exit(i32::from(exit.code()));
    }));
}

/// Reads an environment variable for plans and CI facts.
fn environment(name: &str) -> Option<String> {
    std::env::var(name).ok()
}

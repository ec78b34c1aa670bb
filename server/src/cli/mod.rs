//! The command line: what can be asked for, and how a failure ends the program.

mod age;
mod database;
mod doctor;
mod granted;
mod link;
mod member;
mod project;
mod prune;
mod serve;
mod table;
mod token;

use std::process::ExitCode;

use clap::{Parser, Subcommand};
use plimsoll_server::access::acts::ActError;
use plimsoll_server::config::ConfigError;
use plimsoll_server::postgres::PostgresError;
use plimsoll_server::serve::ServeError;
use plimsoll_server::store::StoreError;
use plimsoll_server::tasks;
use plimsoll_server::tasks::prune::PruneError;

/// Keeps a performance snapshot of every release, compares it with its baseline, and shows both.
#[derive(Debug, Parser)]
#[command(version)]
pub(crate) struct Cli {
    /// How log lines on stderr look.
    #[arg(long, global = true, value_enum, value_name = "FORMAT", env = "PLIMSOLL_LOG_FORMAT", default_value = "text")]
    pub(crate) log_format: LogFormat,
    #[command(subcommand)]
    command: Command,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, clap::ValueEnum)]
pub(crate) enum LogFormat {
    Text,
    /// One object a line.
    Json,
}

#[derive(Debug, Subcommand)]
enum Command {
    /// Serve the API and the pages.
    Serve(Box<serve::Serve>),
    /// Make, list and revoke tokens. Needs only the database: the server may run or not.
    Token(token::Args),
    /// Say what people who sign in by GitHub may do.
    Member(member::Args),
    /// Say who may read a project, and which repository it is measured from.
    Project(project::Args),
    /// Look the server over: database, clock, disk, queue.
    Doctor(doctor::Args),
    /// Let go of what only the recent past needs.
    Prune(prune::Args),
}

impl Cli {
    /// What is logged unless RUST_LOG says otherwise: a server tells what it does, a command only what is wrong.
    pub(crate) fn log_filter(&self) -> &'static str {
        match self.command {
            // Who asks GitHub tells what became of it.
            Command::Serve(_) => "info,sqlx=warn,octocrab=off",
            _ => "warn",
        }
    }

    pub(crate) fn run(self) -> Result<(), CliError> {
        match self.command {
            Command::Serve(args) => args.run(),
            Command::Token(args) => args.run(),
            Command::Member(args) => args.run(),
            Command::Project(args) => args.run(),
            Command::Doctor(args) => args.run(),
            Command::Prune(args) => args.run(),
        }
    }
}

/// Why the program ends without having done what it was asked for.
#[derive(Debug, thiserror::Error)]
pub(crate) enum CliError {
    #[error(transparent)]
    Config(#[from] ConfigError),
    #[error(transparent)]
    Serve(#[from] ServeError),
    #[error(transparent)]
    Postgres(#[from] PostgresError),
    #[error(transparent)]
    Store(#[from] StoreError),
    #[error(transparent)]
    Act(#[from] ActError),
    #[error(transparent)]
    Prune(#[from] PruneError),
    #[error(transparent)]
    Undone(#[from] tasks::Error),
    #[error("something is not in order")]
    Unsound,
    #[error("{0}")]
    Misused(String),
    #[error("a task of ours failed: {0}")]
    Task(#[from] tokio::task::JoinError),
    #[error(transparent)]
    Io(#[from] std::io::Error),
}

impl CliError {
    /// 1 is the verdict `regressed` of the other programs, and clap's 2 is wrong usage.
    pub(crate) fn code(&self) -> ExitCode {
        if matches!(self, Self::Unsound) {
            return ExitCode::from(1);
        }
        let failed = matches!(
            self,
            Self::Serve(_)
                | Self::Postgres(_)
                | Self::Store(_)
                | Self::Prune(_)
                | Self::Task(_)
                | Self::Io(_)
                | Self::Act(ActError::Store(_) | ActError::Random(_))
                | Self::Undone(tasks::Error::Store(_) | tasks::Error::Internal(_))
        );
        let config = |error: &ServeError| {
            matches!(error, ServeError::Config(_) | ServeError::NeverRan(_) | ServeError::Refused { .. })
        };
        let misused = !failed || matches!(self, Self::Serve(error) if config(error));
        ExitCode::from(if misused { 2 } else { 70 })
    }
}

//! `plimsoll-server project`.

use std::io::Write as _;

use clap::Subcommand;
use plimsoll_domain::ids::ProjectSlug;
use plimsoll_server::access::acts;
use plimsoll_server::store::audit::Entry;
use plimsoll_server::store::projects::{self, Visibility};

use super::CliError;
use super::database::Database;

#[derive(Debug, clap::Args)]
pub(super) struct Args {
    #[command(subcommand)]
    command: Command,
}

#[derive(Debug, Subcommand)]
enum Command {
    /// Say who may read a project.
    Show(Show),
    /// Set who may read a project; a new one is created.
    Set(Set),
}

#[derive(Debug, clap::Args)]
struct Show {
    #[command(flatten)]
    database: Database,
    project: ProjectSlug,
}

#[derive(Debug, clap::Args)]
struct Set {
    #[command(flatten)]
    database: Database,
    project: ProjectSlug,
    /// `public`: everybody who can connect; `private`: who has a token or is a member.
    #[arg(long)]
    visibility: Visibility,
}

impl Args {
    pub(super) fn run(self) -> Result<(), CliError> {
        match self.command {
            Command::Show(args) => show(&args),
            Command::Set(args) => set(&args),
        }
    }
}

fn show(args: &Show) -> Result<(), CliError> {
    let public = args.database.with(async |pool| Ok(projects::is_public(&pool, &args.project).await?))?;
    let public = public.ok_or_else(|| CliError::Misused(format!("there is no project {}", args.project)))?;
    let visibility = if public { Visibility::Public } else { Visibility::Private };
    Ok(writeln!(std::io::stdout().lock(), "{}", visibility.name())?)
}

fn set(args: &Set) -> Result<(), CliError> {
    args.database.with(async |pool| {
        let by = Entry::new("console", "project.visibility");
        Ok(acts::set_visibility(&pool, by, &args.project, args.visibility).await?)
    })?;
    eprintln!("Project {} is {}.", args.project, args.visibility.name());
    Ok(())
}

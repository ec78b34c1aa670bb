//! `plimsoll-server project`.

use std::io::Write as _;

use clap::Subcommand;
use plimsoll_domain::ids::ProjectSlug;
use plimsoll_server::access::acts;
use plimsoll_server::store::audit::Entry;
use plimsoll_server::store::projects::{self, Visibility};
use plimsoll_server::tasks::links;

use super::database::Database;
use super::{CliError, link};

#[derive(Debug, clap::Args)]
pub(super) struct Args {
    #[command(subcommand)]
    command: Command,
}

#[derive(Debug, Subcommand)]
enum Command {
    /// Say who may read a project, and which repository it is measured from.
    Show(Show),
    /// Set who may read a project; a new one is created.
    Set(Set),
    /// Measure a project from a repository that the GitHub App is installed on.
    Link(link::Link),
    /// Measure it from no repository any more.
    Unlink(link::Unlink),
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
            Command::Link(args) => link::link(args),
            Command::Unlink(args) => link::unlink(&args),
        }
    }
}

fn show(args: &Show) -> Result<(), CliError> {
    let (public, linked) = args.database.with(async |pool| {
        Ok((projects::is_public(&pool, &args.project).await?, links::get(&pool, &args.project).await?))
    })?;
    let public = public.ok_or_else(|| CliError::Misused(format!("there is no project {}", args.project)))?;
    let visibility = if public { Visibility::Public } else { Visibility::Private };
    let mut stdout = std::io::stdout().lock();
    writeln!(stdout, "{}", visibility.name())?;
    for line in linked.iter().flat_map(|(link, repository)| link::lines(link, repository)) {
        writeln!(stdout, "{line}")?;
    }
    Ok(())
}

fn set(args: &Set) -> Result<(), CliError> {
    args.database.with(async |pool| {
        let by = Entry::new("console", "project.visibility");
        Ok(acts::set_visibility(&pool, by, &args.project, args.visibility).await?)
    })?;
    eprintln!("Project {} is {}.", args.project, args.visibility.name());
    Ok(())
}

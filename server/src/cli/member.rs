//! `plimsoll-server member`.

use std::io::Write as _;

use clap::Subcommand;
use plimsoll_domain::ids::ProjectSlug;
use plimsoll_server::access::acts;
use plimsoll_server::store::audit::Entry;
use plimsoll_server::store::members;
use serde_json::json;

use super::database::Database;
use super::granted::{Granted, cell, place};
use super::{CliError, table};

#[derive(Debug, clap::Args)]
pub(super) struct Args {
    #[command(subcommand)]
    command: Command,
}

#[derive(Debug, Subcommand)]
enum Command {
    /// Let a person in, or change what they may do.
    Add(Add),
    /// Take it away again.
    Remove(Remove),
    /// List who may do what.
    List(List),
}

#[derive(Debug, clap::Args)]
struct Add {
    /// The person's login at GitHub.
    login: String,
    #[command(flatten)]
    granted: Granted,
}

#[derive(Debug, clap::Args)]
struct Remove {
    #[command(flatten)]
    database: Database,
    login: String,
    /// What they may do in this project [default: what they may do in all]
    #[arg(long, value_name = "PROJECT")]
    project: Option<ProjectSlug>,
}

#[derive(Debug, clap::Args)]
struct List {
    #[command(flatten)]
    database: Database,
    #[arg(long, value_name = "PROJECT")]
    project: Option<ProjectSlug>,
    #[arg(long)]
    json: bool,
}

impl Args {
    pub(super) fn run(self) -> Result<(), CliError> {
        match self.command {
            Command::Add(args) => add(args),
            Command::Remove(args) => remove(&args),
            Command::List(args) => list(&args),
        }
    }
}

fn add(args: Add) -> Result<(), CliError> {
    let Add { login, granted } = args;
    let (new, grant) = granted.give(async |pool, grant, visibility| {
        let by = Entry::new("console", "member.set");
        Ok((acts::put_member(pool, by, &login, grant, visibility).await?, grant.clone()))
    })?;
    let (done, place) = (if new { "may now" } else { "may from now on" }, place(grant.project.as_ref()));
    eprintln!("{login} {done} {} in {place}.", grant.scope.name());
    Ok(())
}

fn remove(args: &Remove) -> Result<(), CliError> {
    let (login, project) = (&args.login, args.project.as_ref());
    let removed = args.database.with(async |pool| {
        let by = Entry::new("console", "member.remove");
        Ok(acts::remove_member(&pool, by, login, project).await?)
    })?;
    let place = place(project);
    if !removed {
        return Err(CliError::Misused(format!("{login} is no member of {place}: see `plimsoll-server member list`")));
    }
    eprintln!("{login} is no member of {place} any more.");
    Ok(())
}

fn list(args: &List) -> Result<(), CliError> {
    let found = args.database.with(async |pool| Ok(members::list(&pool, args.project.as_ref()).await?))?;
    let mut stdout = std::io::stdout().lock();
    if args.json {
        return Ok(writeln!(stdout, "{}", json!(found))?);
    }
    let rows: Vec<_> = found
        .iter()
        .map(|member| {
            let project = cell(member.project.as_ref());
            [member.login.clone(), member.scope.name().to_owned(), project, member.created_by.clone()]
        })
        .collect();
    Ok(table::write(stdout, ["LOGIN", "SCOPE", "PROJECT", "MADE BY"], &rows)?)
}

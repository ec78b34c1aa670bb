//! `plimsoll-server token`.

use std::io::Write as _;
use std::time::Duration;

use clap::Subcommand;
use plimsoll_domain::ids::ProjectSlug;
use plimsoll_server::access::acts::{self, NewToken};
use plimsoll_server::store::audit::Entry;
use plimsoll_server::store::tokens::{self, State, Token};
use secrecy::ExposeSecret as _;
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
    /// Make a token and print it, once.
    Create(Create),
    /// List the tokens, without the tokens themselves.
    List(List),
    /// End a token, and the sessions that were begun with it.
    Revoke(Revoke),
}

#[derive(Debug, clap::Args)]
struct Create {
    /// What it is for; unique among the tokens in use.
    #[arg(long)]
    name: String,
    #[command(flatten)]
    granted: Granted,
    /// The time after which it ends, such as 90d [default: never]
    #[arg(long, value_name = "TIME", value_parser = humantime::parse_duration)]
    expires: Option<Duration>,
    /// Print an object with all that is known of it.
    #[arg(long)]
    json: bool,
}

#[derive(Debug, clap::Args)]
struct List {
    #[command(flatten)]
    database: Database,
    /// Only those of this project.
    #[arg(long, value_name = "PROJECT")]
    project: Option<ProjectSlug>,
    /// Those that ended too.
    #[arg(long)]
    all: bool,
    #[arg(long)]
    json: bool,
}

#[derive(Debug, clap::Args)]
struct Revoke {
    #[command(flatten)]
    database: Database,
    name: String,
}

impl Args {
    pub(super) fn run(self) -> Result<(), CliError> {
        match self.command {
            Command::Create(args) => create(args),
            Command::List(args) => list(&args),
            Command::Revoke(args) => revoke(&args),
        }
    }
}

fn create(args: Create) -> Result<(), CliError> {
    let Create { name, granted, expires, json } = args;
    let (secret, token) = granted.give(async |pool, grant, visibility| {
        let new = NewToken { name, grant: grant.clone(), lasts: expires };
        Ok(acts::create_token(pool, Entry::new("console", "token.create"), &new, visibility).await?)
    })?;
    eprintln!("Token {:?}: {}. It is not shown again.", token.name, what(&token));
    let mut stdout = std::io::stdout().lock();
    if json {
        let mut value = serde_json::to_value(&token).map_err(std::io::Error::from)?;
        value["token"] = secret.expose_secret().into();
        writeln!(stdout, "{value}")?;
    } else {
        writeln!(stdout, "{}", secret.expose_secret())?;
    }
    Ok(stdout.flush()?)
}

fn list(args: &List) -> Result<(), CliError> {
    let found = args.database.with(async |pool| Ok(tokens::list(&pool, args.project.as_ref()).await?))?;
    let found: Vec<Token> = found.into_iter().filter(|token| args.all || token.state == State::InUse).collect();
    let mut stdout = std::io::stdout().lock();
    if args.json {
        return Ok(writeln!(stdout, "{}", json!(found))?);
    }
    let or_dash = |text: Option<String>| text.unwrap_or_else(|| "-".to_owned());
    let rows: Vec<_> = found
        .iter()
        .map(|token| {
            [
                token.name.clone(),
                token.scope.name().to_owned(),
                cell(token.project.as_ref()),
                match token.state {
                    State::InUse => "in use",
                    State::Expired => "expired",
                    State::Revoked => "revoked",
                }
                .to_owned(),
                or_dash(token.expires_at.map(minute)),
                or_dash(token.last_used_at.map(minute)),
                token.created_by.clone(),
            ]
        })
        .collect();
    let heading = ["NAME", "SCOPE", "PROJECT", "STATE", "EXPIRES", "LAST USED", "MADE BY"];
    Ok(table::write(stdout, heading, &rows)?)
}

fn revoke(args: &Revoke) -> Result<(), CliError> {
    let name = &args.name;
    args.database.with(async |pool| {
        let none = || CliError::Misused(format!("no token named {name:?} is in use: see `plimsoll-server token list`"));
        let token = tokens::by_name(&pool, name).await?.ok_or_else(none)?;
        let by = Entry::new("console", "token.revoke");
        if acts::revoke_token(&pool, by, &token).await? { Ok(()) } else { Err(none()) }
    })?;
    eprintln!("Token {name:?} is revoked.");
    Ok(())
}

fn what(token: &Token) -> String {
    let place = place(token.project.as_ref());
    let until = token.expires_at.map_or("does not expire".to_owned(), |at| format!("until {}", minute(at)));
    format!("{} for {place}, {until}", token.scope.name())
}

fn minute(at: jiff::Timestamp) -> String {
    at.strftime("%Y-%m-%d %H:%M UTC").to_string()
}

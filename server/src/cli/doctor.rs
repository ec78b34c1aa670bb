//! `plimsoll-server doctor`.

use std::io::Write as _;

use plimsoll_server::config;
use plimsoll_server::doctor::{self, Patient};
use plimsoll_server::{serve, store};
use serde_json::json;

use super::CliError;
use super::database::Database;
use super::serve::GitHub;

/// Ends with 1 when something failed. Starts nothing and changes nothing.
#[derive(Debug, clap::Args)]
pub(super) struct Args {
    #[command(flatten)]
    database: Database,
    /// The address at which people reach the pages.
    #[arg(long, value_name = "URL", env = "PLIMSOLL_PUBLIC_URL")]
    public_url: Option<String>,
    /// Read as the server reads it.
    #[command(flatten)]
    github: GitHub,
    /// Print the checks as JSON.
    #[arg(long)]
    json: bool,
}

impl Args {
    pub(super) fn run(self) -> Result<(), CliError> {
        let data_dir = self.database.data_dir()?;
        let url = match self.database.url() {
            Some(url) => Ok(url),
            None => match serve::running_database(&data_dir) {
                Ok(Some(url)) => Ok(url),
                Ok(None) => Err(format!("no server runs on {}", data_dir.display())),
                Err(error) => Err(error.to_string()),
            },
        };
        let github = config::GitHub::from(self.github);
        let (site, identity) = (github.site()?, github.identity()?);
        let github_api = github.app()?.map(|app| app.api_url);
        let checks = tokio::runtime::Runtime::new()?.block_on(async {
            let patient = Patient {
                github_app: serve::github_app(identity.as_ref(), &site, &data_dir)?,
                data_dir: Some(data_dir),
                public_url: self.public_url,
                github_api,
                embedded: self.database.url().is_none(),
            };
            let pool = match url {
                Ok(url) => store::database::open(&url, 1).await.map_err(|error| error.to_string()),
                Err(why) => Err(why),
            };
            Ok::<_, CliError>(doctor::examine(pool.as_ref().map_err(Clone::clone), &patient).await)
        })?;
        let sound = doctor::is_sound(&checks);
        let mut out = std::io::stdout().lock();
        if self.json {
            writeln!(out, "{}", json!({ "sound": sound, "checks": checks }))?;
        } else {
            for check in &checks {
                writeln!(out, "{:<8} {}: {}", check.level.name(), check.name, check.found)?;
                if let Some(advice) = &check.advice {
                    writeln!(out, "         {advice}")?;
                }
            }
        }
        if sound { Ok(()) } else { Err(CliError::Unsound) }
    }
}

//! `plimsoll-server doctor`.

use std::io::Write as _;

use plimsoll_server::doctor::{self, Patient};
use plimsoll_server::{serve, store};
use serde_json::json;

use super::CliError;
use super::database::Database;

/// Ends with 1 when something failed. Starts nothing and changes nothing.
#[derive(Debug, clap::Args)]
pub(super) struct Args {
    #[command(flatten)]
    database: Database,
    /// The address at which people reach the pages.
    #[arg(long, value_name = "URL", env = "PLIMSOLL_PUBLIC_URL")]
    public_url: Option<String>,
    /// Whether sign-in by GitHub is set up: read as the server reads it.
    #[arg(long, env = "PLIMSOLL_GITHUB_CLIENT_ID", hide = true)]
    github_client_id: Option<String>,
    #[arg(long, env = "PLIMSOLL_GITHUB_API_URL", hide = true, default_value = "https://api.github.com")]
    github_api_url: String,
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
        let patient = Patient {
            data_dir: Some(data_dir),
            public_url: self.public_url,
            github_api: self.github_client_id.filter(|id| !id.is_empty()).map(|_| self.github_api_url),
            embedded: self.database.url().is_none(),
        };
        let checks = tokio::runtime::Runtime::new()?.block_on(async {
            let pool = match url {
                Ok(url) => store::database::open(&url, 1).await.map_err(|error| error.to_string()),
                Err(why) => Err(why),
            };
            doctor::examine(pool.as_ref().map_err(Clone::clone), &patient).await
        });
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

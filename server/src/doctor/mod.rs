//! Looks a server over: what it stands on, and what is stuck. Each finding says what to do.

mod app;
mod database;
mod github;
mod host;

use std::path::PathBuf;

use serde::Serialize;

use crate::github::Client;
use crate::store::Pool;

/// What is known of the server that is looked over.
#[derive(Debug, Clone, Default)]
pub struct Patient {
    pub data_dir: Option<PathBuf>,
    pub public_url: Option<String>,
    /// GitHub's API, where people may sign in by it.
    pub github_api: Option<String>,
    /// GitHub, as the App that the server acts as.
    pub github_app: Option<Client>,
    /// Whether Postgres keeps its data in the data directory.
    pub embedded: bool,
}

#[derive(Debug, Clone, PartialEq, Eq, Serialize, utoipa::ToSchema)]
pub struct Check {
    pub name: &'static str,
    pub level: Level,
    pub found: String,
    /// What to do about it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub advice: Option<String>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize, utoipa::ToSchema)]
#[serde(rename_all = "snake_case")]
pub enum Level {
    Ok,
    Warning,
    Failed,
}

impl Level {
    pub fn name(self) -> &'static str {
        match self {
            Self::Ok => "ok",
            Self::Warning => "warning",
            Self::Failed => "failed",
        }
    }
}

/// All checks. `pool` is the database, or why there is none.
pub async fn examine(pool: Result<&Pool, String>, patient: &Patient) -> Vec<Check> {
    let reached = pool.as_ref().ok().copied();
    let mut checks = match pool {
        Ok(pool) => database::checks(pool).await,
        Err(why) => vec![database::away(why)],
    };
    checks.extend(host::checks(patient));
    checks.push(github::check(patient.github_api.as_deref(), github::WITHIN).await);
    checks.extend(app::checks(reached, patient.github_app.as_ref()).await);
    checks
}

/// Whether nothing failed.
pub fn is_sound(checks: &[Check]) -> bool {
    checks.iter().all(|check| check.level < Level::Failed)
}

impl Check {
    fn ok(name: &'static str, found: impl Into<String>) -> Self {
        Self { name, level: Level::Ok, found: found.into(), advice: None }
    }

    fn warning(name: &'static str, found: impl Into<String>, advice: impl Into<String>) -> Self {
        Self { name, level: Level::Warning, found: found.into(), advice: Some(advice.into()) }
    }

    fn failed(name: &'static str, found: impl Into<String>, advice: impl Into<String>) -> Self {
        Self { name, level: Level::Failed, found: found.into(), advice: Some(advice.into()) }
    }
}

//! The way to the database, for as long as it takes: hosts come up in any order, and a server that waits needs nobody to
//! start it again. What waiting does not mend ends the start at once.

use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use secrecy::SecretString;

use super::ServeError;
use crate::access;
use crate::store::{self, Pool};

/// A database with the schema of this program, and the token that is known to it.
pub(super) struct Opened {
    pub(super) pool: Pool,
    pub(super) token: SecretString,
    pub(super) token_file: PathBuf,
}

/// Database connections of one server.
const CONNECTIONS: u32 = 16;
/// Between two attempts at first; it doubles.
const FIRST_PAUSE: Duration = Duration::from_millis(250);
const LONGEST_PAUSE: Duration = Duration::from_secs(2);
/// While it waits for one and the same reason, the log says so this often.
const SAID_EVERY: Duration = Duration::from_secs(60);

/// Waits without end for a database that is away; fails when it, or the URL, says that this will not do.
pub(super) async fn open(url: &SecretString, data_dir: &Path) -> Result<Opened, ServeError> {
    let place = store::database::place(url)?;
    let began = Instant::now();
    let mut pause = FIRST_PAUSE;
    let mut said: Option<(String, Instant)> = None;
    loop {
        let away = match attempt(url, data_dir).await {
            Ok(opened) => {
                if said.is_some() {
                    tracing::info!(database = place, waited_s = began.elapsed().as_secs(), "the database is there");
                }
                return Ok(opened);
            }
            Err(error) if error.is_away() => error.to_string(),
            Err(error) => return Err(error),
        };
        if !said.as_ref().is_some_and(|(why, at)| *why == away && at.elapsed() < SAID_EVERY) {
            let waited_s = began.elapsed().as_secs();
            tracing::warn!(
                database = place,
                why = away,
                waited_s,
                "waiting for the database, which is tried on and on"
            );
            said = Some((away, Instant::now()));
        }
        tokio::time::sleep(pause).await;
        pause = (pause * 2).min(LONGEST_PAUSE);
    }
}

async fn attempt(url: &SecretString, data_dir: &Path) -> Result<Opened, ServeError> {
    store::database::knock(url).await?;
    let pool = store::database::open(url, CONNECTIONS).await?;
    store::migrate::run(&pool).await?;
    let (token, token_file) = access::ensure(&pool, data_dir).await?;
    Ok(Opened { pool, token, token_file })
}

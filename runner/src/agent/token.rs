//! The server with the agent's token, which lies in a file that is nobody else's, or in the environment.

use std::fs::File;
use std::io::Read as _;
use std::os::unix::fs::MetadataExt as _;
use std::path::Path;

use super::config::Config;
use crate::exit::Failure;
use crate::plan::Environment;
use crate::upload::{Server, ServerError};

/// The server that `runner.toml` names.
pub fn server(config: &Config, environment: Environment) -> Result<Server, Failure> {
    let token = match &config.token_file {
        Some(path) => read(path)?,
        None => environment("PLIMSOLL_TOKEN").filter(|token| !token.is_empty()).ok_or_else(|| {
            Failure::usage("there is no token")
                .hint("write one with the scope `agent` into a file that `token_file` in runner.toml names")
        })?,
    };
    Server::new(&config.server, Some(token))
}

/// What the server said no to, with what to do about it for who wrote `runner.toml`.
pub(super) fn failure(config: &Config, server: &Server, error: ServerError) -> Failure {
    const NEW: &str = "`plimsoll-server token create --scope agent` makes a token that may take jobs";
    let hint = match (&error, &config.token_file) {
        (ServerError::Refused { status: 401 | 403, .. }, Some(path)) => {
            Some(format!("write another token into token_file {}; {NEW}", path.display()))
        }
        (ServerError::Refused { status: 401 | 403, .. }, None) => {
            Some(format!("set PLIMSOLL_TOKEN to another token, or name a file with one as `token_file`; {NEW}"))
        }
        (ServerError::Refused { status: 300..=399 | 404 | 405, .. }, _) => {
            Some("is `server` in runner.toml the address of a Plimsoll server?".to_owned())
        }
        _ => None,
    };
    let failure = error.failure(server);
    match hint {
        Some(hint) => failure.hint(hint),
        None => failure,
    }
}

fn read(path: &Path) -> Result<String, Failure> {
    const LONGEST: u64 = 4 << 10;
    let broken = |why: &str| Failure::usage(format!("token_file {}: {why}", path.display()));
    let file = File::open(path).map_err(|error| broken(&error.to_string()))?;
    let data = file.metadata().map_err(|error| broken(&error.to_string()))?;
    if !data.is_file() {
        return Err(broken("it is no file"));
    }
    if data.mode() & 0o027 != 0 {
        return Err(broken("others than its owner and group may read or write it")
            .hint(format!("chmod 600 {}", path.display())));
    }
    let mut text = String::new();
    file.take(LONGEST).read_to_string(&mut text).map_err(|error| broken(&error.to_string()))?;
    let token = text.trim();
    if token.is_empty() { Err(broken("it is empty")) } else { Ok(token.to_owned()) }
}

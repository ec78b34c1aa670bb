//! The server's own upload token, in a file that only its owner reads.

use std::fs::{self, OpenOptions};
use std::io::{self, Write as _};
use std::os::unix::fs::OpenOptionsExt as _;
use std::path::{Path, PathBuf};

use secrecy::{ExposeSecret, SecretString};

use super::hash;
use crate::store::{self, Pool, StoreError};

#[derive(Debug, thiserror::Error)]
pub enum TokenFileError {
    #[error("the token file {path}: {source}")]
    File { path: PathBuf, source: io::Error },
    #[error("the token file {0} holds no token: remove it, and the next start writes a new one")]
    Empty(PathBuf),
    #[error("no random numbers: {0}")]
    Random(getrandom::Error),
    #[error(transparent)]
    Store(#[from] StoreError),
}

/// Makes sure that the token in `<data_dir>/token` may upload, and returns it with its path. The first start writes the
/// file; whoever removes it gets a new token with the next start, and the old one stops to work.
pub async fn ensure(pool: &Pool, data_dir: &Path) -> Result<(SecretString, PathBuf), TokenFileError> {
    let path = data_dir.join("token");
    let at = |source| TokenFileError::File { path: path.clone(), source };
    let token = match fs::read_to_string(&path) {
        Ok(text) => text.trim().to_owned(),
        Err(e) if e.kind() == io::ErrorKind::NotFound => {
            let token = random().map_err(TokenFileError::Random)?;
            write(&path, &token).map_err(at)?;
            token
        }
        Err(e) => return Err(at(e)),
    };
    if token.len() < super::MIN_TOKEN {
        return Err(TokenFileError::Empty(path));
    }
    let token = SecretString::from(token);
    store::tokens::put(pool, &format!("file {}", path.display()), &hash(token.expose_secret())).await?;
    Ok((token, path))
}

fn random() -> Result<String, getrandom::Error> {
    let mut bytes = [0; 32];
    getrandom::fill(&mut bytes)?;
    Ok(bytes.iter().map(|byte| format!("{byte:02x}")).collect())
}

fn write(path: &Path, token: &str) -> io::Result<()> {
    let mut file = OpenOptions::new().write(true).create_new(true).mode(0o600).open(path)?;
    writeln!(file, "{token}")?;
    file.sync_all()
}

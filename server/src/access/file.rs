//! The server's own token, which may do everything, in a file that only its owner reads.

use std::fs::{self, OpenOptions};
use std::io::{self, Write as _};
use std::os::unix::fs::OpenOptionsExt as _;
use std::path::{Path, PathBuf};

use secrecy::{ExposeSecret, SecretString};

use super::token::{MIN_TOKEN, hash, random};
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

/// Makes sure that the token in `<data_dir>/token` is known, and returns it with its path. The first start writes the
/// file; whoever removes it, or revokes the token, gets a new one with the next start, and the old one stops to work. In
/// the database its name is `<data_dir>/id`: several servers may share the database, each with a data directory of its
/// own.
pub async fn ensure(pool: &Pool, data_dir: &Path) -> Result<(SecretString, PathBuf), TokenFileError> {
    let path = data_dir.join("token");
    let name = format!("server {}", id(data_dir)?);
    let token = read_or_write(&path)?;
    if is_put(pool, &name, &token).await? {
        return Ok((token, path));
    }
    tracing::info!(path = %path.display(), "the server's own token was revoked: it gets a new one");
    fs::remove_file(&path).map_err(|source| TokenFileError::File { path: path.clone(), source })?;
    let token = read_or_write(&path)?;
    is_put(pool, &name, &token).await?;
    Ok((token, path))
}

/// Stores the token's hash; false when the token was revoked.
async fn is_put(pool: &Pool, name: &str, token: &SecretString) -> Result<bool, StoreError> {
    let hash = hash(token.expose_secret());
    store::tokens::put_admin(pool, name, &hash).await?;
    Ok(store::tokens::in_use(pool, &hash).await?.is_some())
}

fn read_or_write(path: &Path) -> Result<SecretString, TokenFileError> {
    let at = |source| TokenFileError::File { path: path.to_owned(), source };
    let token = match fs::read_to_string(path) {
        Ok(text) => text.trim().to_owned(),
        Err(e) if e.kind() == io::ErrorKind::NotFound => {
            let token = random().map_err(TokenFileError::Random)?;
            write(path, &token).map_err(at)?;
            token
        }
        Err(e) => return Err(at(e)),
    };
    if token.len() < MIN_TOKEN { Err(TokenFileError::Empty(path.to_owned())) } else { Ok(SecretString::from(token)) }
}

/// The data directory's own name; no secret.
fn id(data_dir: &Path) -> Result<String, TokenFileError> {
    let path = data_dir.join("id");
    match fs::read_to_string(&path) {
        Ok(text) if !text.trim().is_empty() => return Ok(text.trim().to_owned()),
        Err(source) if source.kind() != io::ErrorKind::NotFound => return Err(TokenFileError::File { path, source }),
        // Absent, or written and never brought to the disk.
        Ok(_) | Err(_) => {}
    }
    let id = random().map_err(TokenFileError::Random)?;
    let _ = fs::remove_file(&path);
    write(&path, &id).map_err(|source| TokenFileError::File { path, source })?;
    Ok(id)
}

fn write(path: &Path, token: &str) -> io::Result<()> {
    let mut file = OpenOptions::new().write(true).create_new(true).mode(0o600).open(path)?;
    writeln!(file, "{token}")?;
    file.sync_all()
}

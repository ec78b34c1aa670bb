//! How the demo starts its server and gets in.

use std::net::SocketAddr;
use std::path::{Path, PathBuf};

/// The arguments of the server part. It keeps its database and its token in a folder of its own.
pub(crate) fn server_args(folder: &Path, listen: SocketAddr) -> Vec<String> {
    let data_dir = data_dir(folder).display().to_string();
    vec![format!("--listen={listen}"), format!("--data-dir={data_dir}")]
}

/// The token that the server has written by the time it serves.
pub(crate) fn token(folder: &Path) -> Result<String, String> {
    let path = data_dir(folder).join("token");
    match std::fs::read_to_string(&path) {
        Ok(token) => Ok(token.trim().to_owned()),
        Err(error) => Err(format!("the server's token {}: {error}", path.display())),
    }
}

fn data_dir(folder: &Path) -> PathBuf {
    folder.join("server")
}

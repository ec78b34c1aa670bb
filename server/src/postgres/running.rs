//! The way to a cluster that another process runs, for commands beside the server.

use std::fs;
use std::path::Path;

use secrecy::SecretString;

use super::{USER, process};

/// The address of a database in the cluster of this directory, if it runs. Who may read its password may use it.
pub fn running(dir: &Path, database: &str) -> Option<SecretString> {
    let pid_file = fs::read_to_string(dir.join("data/postmaster.pid")).ok()?;
    let lines: Vec<&str> = pid_file.lines().map(str::trim).collect();
    // Process id, data directory, start, port, …, state.
    let (pid, port) = (lines.first()?.parse().ok()?, lines.get(3)?.parse::<u16>().ok()?);
    process::command_line(pid)?;
    let password = fs::read_to_string(dir.join("password")).ok()?;
    Some(format!("postgres://{USER}:{}@127.0.0.1:{port}/{database}", password.trim()).into())
}

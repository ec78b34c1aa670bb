//! Where Postgres is installed.

use std::env;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use super::PostgresError;

/// A folder that holds `initdb` and `postgres`.
#[derive(Debug, Clone)]
pub(super) struct Binaries {
    dir: PathBuf,
    /// The major version, such as `15`.
    pub(super) version: String,
}

impl Binaries {
    /// `$PG_BIN`; else the newest of the places where distributions put it, or the one that made the database
    /// (`wanted`, a major version); else what PATH has.
    pub(super) fn find(wanted: Option<&str>) -> Result<Self, PostgresError> {
        if let Some(dir) = env::var_os("PG_BIN").filter(|dir| !dir.is_empty()) {
            let dir = PathBuf::from(dir);
            return Self::at(&dir).ok_or(PostgresError::BadPgBin(dir));
        }
        let mut found: Vec<Self> = places().iter().filter_map(|dir| Self::at(dir)).collect();
        found.sort_by_key(|binaries| binaries.version.parse::<u32>().unwrap_or(0));
        let fits = wanted.and_then(|wanted| found.iter().position(|binaries| binaries.version == wanted));
        let chosen = match fits {
            Some(at) => Some(found.swap_remove(at)),
            None => found.pop(),
        };
        let in_path = || env::split_paths(&env::var_os("PATH")?).find_map(|dir| Self::at(&dir));
        chosen.or_else(in_path).ok_or(PostgresError::NoBinaries)
    }

    pub(super) fn program(&self, name: &str) -> PathBuf {
        self.dir.join(name)
    }

    fn at(dir: &Path) -> Option<Self> {
        let postgres = dir.join("postgres");
        if !dir.join("initdb").is_file() || !postgres.is_file() {
            return None;
        }
        let output = Command::new(postgres).arg("--version").output().ok()?;
        let version = major(&String::from_utf8_lossy(&output.stdout))?;
        Some(Self { dir: dir.to_owned(), version })
    }
}

/// Debian's, Fedora's and Homebrew's folders.
fn places() -> Vec<PathBuf> {
    let mut places = Vec::new();
    let patterns = [
        ("/usr/lib/postgresql", "", "bin"),
        ("/usr", "pgsql-", "bin"),
        ("/opt/homebrew/opt", "postgresql", "bin"),
        ("/usr/local/opt", "postgresql", "bin"),
    ];
    for (parent, prefix, rest) in patterns {
        let entries = fs::read_dir(parent).into_iter().flatten().flatten();
        let fits = entries.filter(|entry| entry.file_name().to_string_lossy().starts_with(prefix));
        places.extend(fits.map(|entry| entry.path().join(rest)));
    }
    places.push("/usr/bin".into());
    places
}

/// The major version in `postgres (PostgreSQL) 15.14 (Debian 15.14-0+deb12u1)`.
fn major(text: &str) -> Option<String> {
    let version = text.split_whitespace().find(|word| word.starts_with(|c: char| c.is_ascii_digit()))?;
    Some(version.chars().take_while(char::is_ascii_digit).collect())
}

#[cfg(test)]
mod tests {
    use super::major;

    #[test]
    fn the_version_is_read_from_every_distribution() {
        for (text, version) in [
            ("postgres (PostgreSQL) 15.14 (Debian 15.14-0+deb12u1)", Some("15")),
            ("postgres (PostgreSQL) 17.2", Some("17")),
            ("postgres (PostgreSQL) 18beta1", Some("18")),
            ("", None),
        ] {
            assert_eq!(major(text).as_deref(), version, "{text}");
        }
    }
}

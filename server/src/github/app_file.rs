//! The App that the setup page registered, in the data directory: `github-app.json` and `github-app.pem`, which only
//! their owner reads.

use std::fs::{self, OpenOptions};
use std::io::{self, Write as _};
use std::os::unix::fs::OpenOptionsExt as _;
use std::path::{Path, PathBuf};
use std::sync::{Mutex, PoisonError};

use secrecy::{ExposeSecret as _, SecretString};
use serde::{Deserialize, Serialize};

use super::Identity;

/// What GitHub gives for a new App.
#[derive(Debug, Clone)]
pub struct AppFile {
    pub id: i64,
    pub slug: String,
    pub client_id: String,
    pub client_secret: SecretString,
    pub webhook_secret: SecretString,
    /// The private key.
    pub pem: SecretString,
}

#[derive(Debug, thiserror::Error)]
pub enum AppFileError {
    #[error("{path}: {source}")]
    File { path: PathBuf, source: io::Error },
    #[error("{path} is not what the setup page wrote ({why}): put it back, or remove it and register the App anew")]
    Unfit { path: PathBuf, why: String },
    #[error("{0} is there: an App is registered already")]
    Taken(PathBuf),
}

/// All but the key.
#[derive(Serialize, Deserialize)]
struct Stored {
    id: i64,
    slug: String,
    client_id: String,
    client_secret: String,
    webhook_secret: String,
}

impl AppFile {
    /// `None` where none is registered.
    pub fn read(data_dir: &Path) -> Result<Option<Self>, AppFileError> {
        let (json, pem) = paths(data_dir);
        let text = match fs::read_to_string(&json) {
            Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(None),
            read => read.map_err(at(&json))?,
        };
        let unfit = |error: serde_json::Error| AppFileError::Unfit { path: json.clone(), why: error.to_string() };
        let stored: Stored = serde_json::from_str(&text).map_err(unfit)?;
        let key = fs::read_to_string(&pem).map_err(at(&pem))?;
        Ok(Some(Self {
            id: stored.id,
            slug: stored.slug,
            client_id: stored.client_id,
            client_secret: stored.client_secret.into(),
            webhook_secret: stored.webhook_secret.into(),
            pem: key.into(),
        }))
    }

    pub fn exists(data_dir: &Path) -> bool {
        paths(data_dir).0.exists()
    }

    /// Refused where an App is registered already. Both files are there whole, or it counts as not registered.
    pub fn write(&self, data_dir: &Path) -> Result<(), AppFileError> {
        static ONE: Mutex<()> = Mutex::new(());
        let _one = ONE.lock().unwrap_or_else(PoisonError::into_inner);
        let (json, pem) = paths(data_dir);
        if json.exists() {
            return Err(AppFileError::Taken(json));
        }
        let stored = Stored {
            id: self.id,
            slug: self.slug.clone(),
            client_id: self.client_id.clone(),
            client_secret: self.client_secret.expose_secret().to_owned(),
            webhook_secret: self.webhook_secret.expose_secret().to_owned(),
        };
        let text = serde_json::to_string_pretty(&stored).expect("a struct of texts serializes");
        put(&pem, self.pem.expose_secret()).map_err(at(&pem))?;
        // Last: with it the App is registered.
        put(&json, &text).map_err(at(&json))
    }

    pub fn identity(&self, api_url: &str) -> Identity {
        Identity {
            app_id: self.id,
            private_key: self.pem.clone(),
            webhook_secret: self.webhook_secret.clone(),
            api_url: api_url.to_owned(),
            within: Identity::WITHIN,
        }
    }
}

fn paths(data_dir: &Path) -> (PathBuf, PathBuf) {
    (data_dir.join("github-app.json"), data_dir.join("github-app.pem"))
}

/// Whole or not at all.
fn put(path: &Path, text: &str) -> io::Result<()> {
    let mut new = path.to_owned();
    new.as_mut_os_string().push(".new");
    match fs::remove_file(&new) {
        Err(error) if error.kind() != io::ErrorKind::NotFound => return Err(error),
        _ => {}
    }
    let mut file = OpenOptions::new().write(true).create_new(true).mode(0o600).open(&new)?;
    file.write_all(text.as_bytes())?;
    file.sync_all()?;
    fs::rename(&new, path)
}

fn at(path: &Path) -> impl FnOnce(io::Error) -> AppFileError {
    let path = path.to_owned();
    |source| AppFileError::File { path, source }
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::MetadataExt as _;

    use super::*;

    fn app() -> AppFile {
        AppFile {
            id: 7,
            slug: "plimsoll-of-octo".to_owned(),
            client_id: "Iv1.1".to_owned(),
            client_secret: "client secret".into(),
            webhook_secret: "webhook secret".into(),
            pem: "a key".into(),
        }
    }

    #[test]
    fn it_comes_back_and_is_written_once() {
        let folder = tempfile::tempdir().unwrap();
        assert!(AppFile::read(folder.path()).unwrap().is_none() && !AppFile::exists(folder.path()));
        app().write(folder.path()).unwrap();
        let read = AppFile::read(folder.path()).unwrap().unwrap();
        assert_eq!((read.id, read.slug.as_str(), read.client_id.as_str()), (7, "plimsoll-of-octo", "Iv1.1"));
        assert_eq!(read.pem.expose_secret(), "a key");
        assert_eq!(read.webhook_secret.expose_secret(), "webhook secret");
        let again = AppFile { id: 8, ..app() }.write(folder.path()).unwrap_err();
        assert!(matches!(again, AppFileError::Taken(_)), "{again}");
        assert_eq!(AppFile::read(folder.path()).unwrap().unwrap().id, 7);
    }

    #[test]
    fn only_the_owner_reads_it_and_nothing_shows_it() {
        let folder = tempfile::tempdir().unwrap();
        app().write(folder.path()).unwrap();
        for path in <[PathBuf; 2]>::from(paths(folder.path())) {
            assert_eq!(fs::metadata(&path).unwrap().mode() & 0o777, 0o600, "{}", path.display());
        }
        let shown = format!("{:?} {:?}", app(), app().identity("https://api.github.example"));
        assert!(!shown.contains("secret\"") && !shown.contains("a key"), "{shown}");
    }

    #[test]
    fn what_is_broken_says_where() {
        let folder = tempfile::tempdir().unwrap();
        let (json, pem) = paths(folder.path());
        fs::write(&json, "{").unwrap();
        let broken = AppFile::read(folder.path()).unwrap_err().to_string();
        assert!(broken.contains(&*json.to_string_lossy()), "{broken}");
        fs::remove_file(&json).unwrap();
        app().write(folder.path()).unwrap();
        fs::remove_file(&pem).unwrap();
        let broken = AppFile::read(folder.path()).unwrap_err().to_string();
        assert!(broken.contains(&*pem.to_string_lossy()), "{broken}");
    }
}

//! What is said about the GitHub App that the server acts as; an empty value is an unset one.

use std::path::PathBuf;

use secrecy::{ExposeSecret as _, SecretString};

use crate::github::Identity;

#[derive(Debug, Clone, Default)]
pub struct GitHubApp {
    pub id: Option<String>,
    pub private_key_file: Option<PathBuf>,
    pub webhook_secret: Option<SecretString>,
    pub webhook_secret_file: Option<PathBuf>,
}

#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum GitHubAppError {
    #[error(
        "a GitHub App needs all three: PLIMSOLL_GITHUB_APP_ID, PLIMSOLL_GITHUB_PRIVATE_KEY_FILE, and \
         PLIMSOLL_GITHUB_WEBHOOK_SECRET or PLIMSOLL_GITHUB_WEBHOOK_SECRET_FILE; {0} is missing"
    )]
    Half(&'static str),
    #[error("PLIMSOLL_GITHUB_WEBHOOK_SECRET and PLIMSOLL_GITHUB_WEBHOOK_SECRET_FILE are both set: set one of them")]
    TwoSecrets,
    #[error("PLIMSOLL_GITHUB_APP_ID is {0:?}, which is not the number that GitHub shows as the App's id")]
    Id(String),
    #[error("{name}: {path}: {why}")]
    File { name: &'static str, path: PathBuf, why: String },
}

impl GitHubApp {
    /// The App, if one is configured. Part of one is refused.
    pub(crate) fn identity(self, api_url: &str) -> Result<Option<Identity>, GitHubAppError> {
        let id = self.id.filter(|id| !id.is_empty());
        let key_file = self.private_key_file.filter(|path| !path.as_os_str().is_empty());
        let given = self.webhook_secret.filter(|secret| !secret.expose_secret().is_empty());
        let secret_file = self.webhook_secret_file.filter(|path| !path.as_os_str().is_empty());
        if id.is_none() && key_file.is_none() && given.is_none() && secret_file.is_none() {
            return Ok(None);
        }
        let webhook_secret = match (given, secret_file) {
            (Some(_), Some(_)) => return Err(GitHubAppError::TwoSecrets),
            (Some(secret), None) => secret,
            (None, Some(path)) => content("PLIMSOLL_GITHUB_WEBHOOK_SECRET_FILE", path)?,
            (None, None) => return Err(GitHubAppError::Half("the webhook secret")),
        };
        let id = id.ok_or(GitHubAppError::Half("the id"))?;
        let key_file = key_file.ok_or(GitHubAppError::Half("the private key"))?;
        let number = id.trim().parse::<i64>().ok().filter(|number| *number > 0);
        Ok(Some(Identity {
            app_id: number.ok_or(GitHubAppError::Id(id))?,
            private_key: content("PLIMSOLL_GITHUB_PRIVATE_KEY_FILE", key_file)?,
            webhook_secret,
            api_url: api_url.to_owned(),
            within: Identity::WITHIN,
        }))
    }
}

fn content(name: &'static str, path: PathBuf) -> Result<SecretString, GitHubAppError> {
    match std::fs::read_to_string(&path) {
        Ok(text) if text.trim().is_empty() => Err(GitHubAppError::File { name, path, why: "it is empty".to_owned() }),
        Ok(text) => Ok(SecretString::from(text.trim())),
        Err(error) => Err(GitHubAppError::File { name, path, why: error.to_string() }),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const API: &str = "https://api.github.example";

    #[test]
    fn part_of_an_app_is_refused_and_the_rest_is_named() {
        let folder = tempfile::tempdir().unwrap();
        let key = folder.path().join("key.pem");
        std::fs::write(&key, "a key\n").unwrap();
        let whole = GitHubApp {
            id: Some("12".to_owned()),
            private_key_file: Some(key.clone()),
            webhook_secret: Some("hush".into()),
            webhook_secret_file: None,
        };
        let app = whole.clone().identity(API).unwrap().unwrap();
        assert_eq!((app.app_id, app.private_key.expose_secret(), app.api_url.as_str()), (12, "a key", API));
        for (part, missing) in [
            (GitHubApp { id: Some(String::new()), ..whole.clone() }, "the id is missing"),
            (GitHubApp { private_key_file: Some(PathBuf::new()), ..whole.clone() }, "the private key is missing"),
            (GitHubApp { webhook_secret: Some("".into()), ..whole.clone() }, "the webhook secret is missing"),
            (GitHubApp { webhook_secret_file: Some(key), ..whole.clone() }, "are both set"),
            (GitHubApp { id: Some("plimsoll".to_owned()), ..whole.clone() }, "\"plimsoll\", which is not the number"),
            (GitHubApp { private_key_file: Some(folder.path().join("none")), ..whole }, "none: "),
        ] {
            let refused = part.identity(API).unwrap_err().to_string();
            assert!(refused.contains(missing) && refused.contains("PLIMSOLL_GITHUB_"), "{missing}: {refused}");
        }
        assert!(GitHubApp::default().identity(API).unwrap().is_none());
    }

    #[test]
    fn the_webhook_secret_may_lie_in_a_file() {
        let folder = tempfile::tempdir().unwrap();
        let (key, secret) = (folder.path().join("key"), folder.path().join("secret"));
        let app = GitHubApp {
            id: Some("12".to_owned()),
            private_key_file: Some(key.clone()),
            webhook_secret: None,
            webhook_secret_file: Some(secret.clone()),
        };
        std::fs::write(&key, "a key").unwrap();
        std::fs::write(&secret, " from a file\n").unwrap();
        let read = app.clone().identity(API).unwrap().unwrap();
        assert_eq!(read.webhook_secret.expose_secret(), "from a file");
        std::fs::write(&secret, "\n").unwrap();
        let refused = app.identity(API).unwrap_err().to_string();
        assert!(refused.starts_with("PLIMSOLL_GITHUB_WEBHOOK_SECRET_FILE: "), "{refused}");
    }
}

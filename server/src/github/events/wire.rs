//! Pieces that payloads share, as GitHub writes them. Whatever may be null or missing is an option.

use plimsoll_domain::ids::CommitSha;
use serde::{Deserialize, Deserializer};

#[derive(Debug, Deserialize)]
pub(super) struct Repository {
    id: i64,
    full_name: String,
    default_branch: Option<String>,
    private: Option<bool>,
}

/// Of an installation only the id is in every payload.
#[derive(Debug, Deserialize)]
pub(super) struct Id {
    pub(super) id: i64,
}

#[derive(Debug, Deserialize)]
pub(super) struct User {
    pub(super) login: String,
    #[serde(rename = "type")]
    kind: Option<String>,
}

/// What every payload of a repository has, around what is its own.
#[derive(Debug, Deserialize)]
pub(super) struct Around {
    action: Option<String>,
    repository: Repository,
    installation: Option<Id>,
    sender: Option<User>,
}

impl Around {
    pub(super) fn action(&self) -> &str {
        self.action.as_deref().unwrap_or_default()
    }

    pub(super) fn sender(&self) -> Option<super::Sender> {
        self.sender.as_ref().map(User::sender)
    }

    pub(super) fn into_repository(self) -> super::Repository {
        self.repository.of(self.installation.map(|installation| installation.id))
    }
}

impl Repository {
    pub(super) fn of(self, installation: Option<i64>) -> super::Repository {
        let owner = self.full_name.split('/').next().unwrap_or_default().to_owned();
        super::Repository {
            id: self.id,
            owner,
            full_name: self.full_name,
            default_branch: self.default_branch,
            // Where it is not said, nobody is shown it.
            private: self.private.unwrap_or(true),
            installation,
        }
    }
}

impl User {
    pub(super) fn sender(&self) -> super::Sender {
        // Logins of people have no brackets.
        let is_bot = self.kind.as_deref() == Some("Bot") || self.login.ends_with("[bot]");
        super::Sender { login: self.login.clone(), is_bot }
    }
}

/// 40 zeros (64 of SHA-256) stand for no commit.
pub(super) fn commit_or_none<'de, D: Deserializer<'de>>(wire: D) -> Result<Option<CommitSha>, D::Error> {
    let text = Option::<String>::deserialize(wire)?;
    let text = text.filter(|text| text.chars().any(|digit| digit != '0'));
    text.map(|text| text.parse().map_err(serde::de::Error::custom)).transpose()
}

pub(super) fn null_or<'de, T: Deserialize<'de> + Default, D: Deserializer<'de>>(wire: D) -> Result<T, D::Error> {
    Ok(Option::<T>::deserialize(wire)?.unwrap_or_default())
}

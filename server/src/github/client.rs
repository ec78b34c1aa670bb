//! GitHub's API, as an App. Nothing is repeated here but what GitHub did not take because of a token: whoever asked
//! knows whether to look first or to ask again. Each wait has its bound.

mod call;
mod checks;
mod comments;
mod reads;
mod tokens;

use std::fmt;
use std::sync::Arc;
use std::time::Duration;

use futures_util::FutureExt as _;
use jsonwebtoken::EncodingKey;
use octocrab::Octocrab;
use octocrab::models::AppId;
use secrecy::{ExposeSecret as _, SecretString};

use super::answers::{About, Installation, Repositories, Repository};
use super::error::cause;
use super::{Error, Place, Result};
use call::{Answer, Call};
use tokens::{Token, Tokens};

pub use checks::CheckWrite;

/// A GitHub App that is ours: what the server needs to act as it.
#[derive(Debug, Clone)]
pub struct Identity {
    pub app_id: i64,
    /// RSA, as PEM: PKCS#1, as GitHub gives it, or PKCS#8.
    pub private_key: SecretString,
    /// What deliveries are signed with.
    pub webhook_secret: SecretString,
    /// Without a final slash: `https://api.github.com`.
    pub api_url: String,
    /// Each request has this long.
    pub within: Duration,
}

impl Identity {
    pub const WITHIN: Duration = Duration::from_secs(10);
}

#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum UnfitIdentity {
    #[error("the App's id {0} is not a positive number")]
    Id(i64),
    #[error("the App's private key is not an RSA key in PEM form ({0})")]
    Key(String),
    #[error("GitHub's API cannot be asked at {url}: {why}")]
    Url { url: String, why: String },
}

/// Cheap to clone; one for each server.
#[derive(Clone)]
pub struct Client(Arc<Inner>);

struct Inner {
    identity: Identity,
    /// As the App itself.
    app: Octocrab,
    tokens: Tokens,
}

impl fmt::Debug for Client {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("Client").field(&self.0.identity).finish()
    }
}

/// Connections are made within this.
const CONNECT_WITHIN: Duration = Duration::from_secs(5);

impl Client {
    /// Only inside a runtime, and for that one.
    pub fn new(identity: Identity) -> Result<Self, UnfitIdentity> {
        let bad_key = |error: jsonwebtoken::errors::Error| UnfitIdentity::Key(error.to_string());
        let id = u64::try_from(identity.app_id).ok().filter(|id| *id > 0);
        let id = AppId(id.ok_or(UnfitIdentity::Id(identity.app_id))?);
        let key = EncodingKey::from_rsa_pem(identity.private_key.expose_secret().as_bytes()).map_err(bad_key)?;
        // Some keys are found to be none only when they sign.
        octocrab::auth::create_jwt(id, &key).map_err(bad_key)?;
        let app = crab(&identity, id, key)
            .map_err(|error| UnfitIdentity::Url { url: identity.api_url.clone(), why: cause(&error) })?;
        Ok(Self(Arc::new(Inner { identity, app, tokens: Tokens::default() })))
    }

    /// Whose checks and comments are ours.
    pub fn app_id(&self) -> i64 {
        self.0.identity.app_id
    }

    pub fn webhook_secret(&self) -> &SecretString {
        &self.0.identity.webhook_secret
    }

    pub fn api_url(&self) -> &str {
        &self.0.identity.api_url
    }

    pub fn at<'a>(&'a self, place: &'a Place) -> Repo<'a> {
        Repo { client: self, place }
    }

    /// What GitHub knows of the App: its permissions, and the events it is told.
    pub async fn about(&self) -> Result<About> {
        self.as_app(&Call::get("/app")).await?.json()
    }

    pub async fn installations(&self) -> Result<Vec<Installation>> {
        let ask =
            |page: call::Page| async move { self.as_app(&Call::get(page.of("/app/installations"))).await }.boxed();
        complete(call::pages::<Vec<Installation>, _>(MAX_PAGES, ask).await?, "installations")
    }

    /// Those that an installation reaches.
    pub async fn repositories(&self, installation: i64) -> Result<Vec<Repository>> {
        let ask = |page: call::Page| {
            async move {
                let call = Call::get(page.of("/installation/repositories"));
                self.installed(installation, &call).await?.accepted(&call)
            }
            .boxed()
        };
        complete(call::pages::<Repositories, _>(MAX_PAGES, ask).await?, "repositories")
    }

    async fn as_app(&self, call: &Call<'_>) -> Result<Answer> {
        call::send(&self.0.app, call, self.0.identity.within).await?.accepted(call)
    }

    /// By the installation's token, which is renewed once if GitHub does not take it.
    async fn installed(&self, installation: i64, call: &Call<'_>) -> Result<Answer> {
        let within = self.0.identity.within;
        let token = self.token(installation, None).await?;
        let answer = call::send(token.crab(), call, within).await?;
        if !answer.is_unauthorized() {
            return Ok(answer);
        }
        let token = self.token(installation, Some(&token)).await?;
        call::send(token.crab(), call, within).await
    }

    /// One that is good for a while, and is not the one that GitHub refused. Whoever waits for another's request waits
    /// no longer than for one of their own.
    async fn token(&self, installation: i64, refused: Option<&Token>) -> Result<Token> {
        let Inner { app, identity, tokens } = &*self.0;
        let get = tokens.get(installation, refused, async || Token::ask(app, installation, identity.within).await);
        call::within(identity.within, get).await
    }
}

/// A repository, asked as the installation that reaches it.
#[derive(Debug, Clone, Copy)]
pub struct Repo<'a> {
    client: &'a Client,
    place: &'a Place,
}

impl Repo<'_> {
    async fn ask(&self, call: &Call<'_>) -> Result<Answer> {
        self.client.installed(self.place.installation, call).await?.accepted(call)
    }

    /// `None`: it is not there. (An installation that is gone is an error here too.)
    async fn look(&self, call: &Call<'_>) -> Result<Option<Answer>> {
        let answer = self.client.installed(self.place.installation, call).await?;
        if answer.is_missing() { Ok(None) } else { answer.accepted(call).map(Some) }
    }
}

/// Of the longest lists; a hundred things each.
const MAX_PAGES: usize = 100;

/// For lists of which a part is of no use.
fn complete<T>((list, whole): (Vec<T>, bool), what: &str) -> Result<Vec<T>> {
    match whole {
        true => Ok(list),
        false => Err(Error::Refused { status: 200, message: format!("more {what} than are read: {}", list.len()) }),
    }
}

fn crab(identity: &Identity, id: AppId, key: EncodingKey) -> octocrab::Result<Octocrab> {
    // Does nothing where the program has chosen one.
    let _ = rustls::crypto::ring::default_provider().install_default();
    Octocrab::builder()
        .app(id, key)
        .base_uri(identity.api_url.as_str())?
        .set_connect_timeout(Some(CONNECT_WITHIN.min(identity.within)))
        .build()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn identity(key: &str) -> Identity {
        Identity {
            app_id: 1,
            private_key: key.into(),
            webhook_secret: "hush".into(),
            api_url: "https://api.github.example".to_owned(),
            within: Identity::WITHIN,
        }
    }

    #[tokio::test]
    async fn what_is_no_identity_is_refused() {
        let empty = "-----BEGIN RSA PRIVATE KEY-----\nMAA=\n-----END RSA PRIVATE KEY-----\n";
        for key in ["", "a key", empty] {
            let refused = Client::new(identity(key)).unwrap_err();
            assert!(matches!(refused, UnfitIdentity::Key(_)), "{key}: {refused}");
        }
        let refused = Client::new(Identity { app_id: 0, ..identity("") }).unwrap_err();
        assert_eq!(refused, UnfitIdentity::Id(0));
    }

    /// Background tasks are spawned, and hold what they wait for.
    #[test]
    fn every_question_can_be_asked_in_a_task() {
        fn sent<T: Send>(_: impl FnOnce() -> T) {}
        fn futures(client: &Client, place: &Place) {
            sent(|| client.installations());
            sent(|| client.repositories(1));
            sent(|| async { client.at(place).branch("main").await });
            sent(|| async { client.at(place).comments(1).await });
            sent(|| async { client.at(place).tag_commit("v1").await });
            sent(|| async { client.at(place).delete_comment(1).await });
        }
        let _ = futures;
    }
}

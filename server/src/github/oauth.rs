//! Sign-in by GitHub: the web flow of an OAuth app, with state and PKCE (RFC 7636, S256). GitHub's token is used once,
//! to ask for the login, and forgotten.

use std::time::Duration;

use base64::Engine as _;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use reqwest::{RequestBuilder, header};
use secrecy::{ExposeSecret as _, SecretString};
use serde::Deserialize;
use serde::de::DeserializeOwned;
use sha2::{Digest as _, Sha256};
use url::form_urlencoded::Serializer;

use super::http;

/// An OAuth app that is registered with GitHub.
#[derive(Debug, Clone)]
pub struct App {
    pub client_id: String,
    pub client_secret: SecretString,
    /// Without a final slash: `https://github.com`.
    pub url: String,
    /// Without a final slash: `https://api.github.com`.
    pub api_url: String,
    /// Each of the two requests to GitHub has this long.
    pub within: Duration,
}

#[derive(Debug, thiserror::Error)]
pub enum SignInError {
    #[error("GitHub does not take this sign-in any more ({0})")]
    Refused(String),
    #[error("GitHub does not answer")]
    Unreachable(String),
}

/// Answers of GitHub are far smaller.
const MAX_ANSWER: usize = 64 << 10;
/// Of a reason that GitHub gives.
const MAX_REASON: usize = 200;

impl App {
    pub const WITHIN: Duration = Duration::from_secs(10);

    /// Where the browser goes to ask for consent. `verifier` stays with the browser until it comes back.
    pub fn authorize_url(&self, state: &str, verifier: &str, back_to: Option<&str>) -> String {
        let challenge = URL_SAFE_NO_PAD.encode(Sha256::digest(verifier));
        let mut query = Serializer::new(String::new());
        query.append_pair("client_id", &self.client_id).append_pair("state", state);
        query.append_pair("code_challenge", &challenge).append_pair("code_challenge_method", "S256");
        if let Some(back_to) = back_to {
            query.append_pair("redirect_uri", back_to);
        }
        format!("{}/login/oauth/authorize?{}", self.url, query.finish())
    }

    /// The login of whoever GitHub gave this code to.
    pub async fn login(&self, code: &str, verifier: &str, back_to: Option<&str>) -> Result<String, SignInError> {
        let client = http(self.within).map_err(unreachable)?;
        let request = client
            .post(format!("{}/login/oauth/access_token", self.url))
            .header(header::ACCEPT, "application/json")
            .header(header::CONTENT_TYPE, "application/x-www-form-urlencoded")
            .body(self.exchange(code, verifier, back_to));
        let token = match ask(request).await? {
            Exchanged::Token { access_token } => access_token,
            Exchanged::Refused { error } => return Err(SignInError::Refused(error.chars().take(MAX_REASON).collect())),
        };
        let request = client
            .get(format!("{}/user", self.api_url))
            .header(header::ACCEPT, "application/vnd.github+json")
            .bearer_auth(token);
        let User { login } = ask(request).await?;
        Ok(login)
    }

    fn exchange(&self, code: &str, verifier: &str, back_to: Option<&str>) -> String {
        let mut form = Serializer::new(String::new());
        form.append_pair("client_id", &self.client_id);
        form.append_pair("client_secret", self.client_secret.expose_secret());
        form.append_pair("code", code).append_pair("code_verifier", verifier);
        if let Some(back_to) = back_to {
            form.append_pair("redirect_uri", back_to);
        }
        form.finish()
    }
}

/// GitHub answers 200 also when it refuses.
#[derive(Deserialize)]
#[serde(untagged)]
enum Exchanged {
    Token { access_token: String },
    Refused { error: String },
}

#[derive(Deserialize)]
struct User {
    login: String,
}

/// A JSON answer of bounded size.
pub(super) async fn ask<T: DeserializeOwned>(request: RequestBuilder) -> Result<T, SignInError> {
    let mut answer = request.send().await.map_err(unreachable)?;
    if !answer.status().is_success() {
        return Err(SignInError::Unreachable(format!("it answered {}", answer.status())));
    }
    let mut body = Vec::new();
    while let Some(chunk) = answer.chunk().await.map_err(unreachable)? {
        if body.len() + chunk.len() > MAX_ANSWER {
            return Err(SignInError::Unreachable("its answer is too large".to_owned()));
        }
        body.extend_from_slice(&chunk);
    }
    // The body may hold a token, which serde's messages would repeat.
    serde_json::from_slice(&body).map_err(|_| SignInError::Unreachable("its answer has another form".to_owned()))
}

fn unreachable(error: reqwest::Error) -> SignInError {
    SignInError::Unreachable(error.without_url().to_string())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_browser_is_sent_with_a_challenge_and_never_with_a_secret() {
        let app = App {
            client_id: "an app & more".to_owned(),
            client_secret: "the secret".into(),
            url: "https://github.example".to_owned(),
            api_url: String::new(),
            within: App::WITHIN,
        };
        // The example of RFC 7636, appendix B.
        let url = app.authorize_url("s", "dBjftJeZ4CVP-mB92K27uhbUJU1p1r_wW1gFWFOEjXk", Some("https://p.example/back"));
        assert_eq!(
            url,
            "https://github.example/login/oauth/authorize?client_id=an+app+%26+more&state=s\
             &code_challenge=E9Melhoa2OwvFrEMTJguCHaoeK1t8URWbuGJSstw-cM&code_challenge_method=S256\
             &redirect_uri=https%3A%2F%2Fp.example%2Fback"
        );
    }
}

//! GitHub as far as sign-in goes, as a real HTTP server: it checks the app, the code, the verifier, and gives each code
//! one token.

use std::collections::HashMap;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use axum::extract::State;
use axum::http::{HeaderMap, StatusCode};
use axum::response::{IntoResponse, Response};
use axum::routing::{get, post};
use axum::{Form, Json, Router};
use base64::Engine as _;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use plimsoll_server::github::App;
use plimsoll_server::state::Settings;
use serde_json::{Value, json};
use sha2::{Digest as _, Sha256};
use url::Url;

/// How it answers when it is asked for a token.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Mood {
    Well,
    Broken,
    /// Never within the time of [`FakeGitHub::settings`].
    Slow,
    /// More than anybody should read.
    Endless,
}

#[derive(Clone)]
pub(crate) struct FakeGitHub {
    url: String,
    inner: Arc<Mutex<Inner>>,
}

struct Inner {
    mood: Mood,
    login: String,
    /// Codes that were given out, with their challenge; taken once.
    codes: HashMap<String, String>,
    tokens: Vec<String>,
}

const ID: &str = "the-app";
const SECRET: &str = "the-secret";

impl FakeGitHub {
    /// Whoever comes to it is signed in there with this login.
    #[expect(clippy::disallowed_methods, reason = "a router of the test's own")]
    pub(crate) async fn start(login: &str) -> Self {
        let _ = rustls::crypto::ring::default_provider().install_default();
        let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await.expect("a port");
        let url = format!("http://{}", listener.local_addr().expect("an address"));
        let inner = Inner { mood: Mood::Well, login: login.to_owned(), codes: HashMap::new(), tokens: Vec::new() };
        let fake = Self { url, inner: Arc::new(Mutex::new(inner)) };
        let app = Router::new()
            .route("/login/oauth/access_token", post(exchange))
            .route("/api/user", get(user))
            .with_state(fake.clone());
        tokio::spawn(async move { axum::serve(listener, app).await });
        fake
    }

    pub(crate) fn settings(&self, public_url: Option<&str>) -> Settings {
        let app = App {
            client_id: ID.to_owned(),
            client_secret: SECRET.into(),
            url: self.url.clone(),
            api_url: format!("{}/api", self.url),
            within: Duration::from_millis(if self.inner().mood == Mood::Slow { 50 } else { 10_000 }),
        };
        Settings { github: Some(app), public_url: public_url.map(ToOwned::to_owned), ..Settings::default() }
    }

    pub(crate) fn be(&self, mood: Mood) {
        self.inner().mood = mood;
    }

    /// Somebody agrees on GitHub's page at this address: the query with which the browser comes back.
    pub(crate) fn agree(&self, authorize: &str) -> String {
        let url = Url::parse(authorize).expect("an address");
        let query: HashMap<String, String> = url.query_pairs().into_owned().collect();
        assert!(authorize.starts_with(&format!("{}/login/oauth/authorize?", self.url)), "{authorize}");
        assert_eq!((query["client_id"].as_str(), query["code_challenge_method"].as_str()), (ID, "S256"));
        let mut inner = self.inner();
        let code = format!("code-{}", inner.codes.len() + inner.tokens.len());
        inner.codes.insert(code.clone(), query["code_challenge"].clone());
        format!("code={code}&state={}", query["state"])
    }

    fn inner(&self) -> std::sync::MutexGuard<'_, Inner> {
        self.inner.lock().expect("no test panics with it")
    }
}

async fn exchange(State(fake): State<FakeGitHub>, Form(form): Form<HashMap<String, String>>) -> Response {
    let mood = fake.inner().mood;
    match mood {
        Mood::Well => {}
        Mood::Broken => return StatusCode::INTERNAL_SERVER_ERROR.into_response(),
        Mood::Slow => std::future::pending().await,
        Mood::Endless => return "x".repeat(1 << 20).into_response(),
    }
    let refused = |error: &str| Json(json!({ "error": error, "error_description": "…" })).into_response();
    let text = |name: &str| form.get(name).map(String::as_str).unwrap_or_default();
    if (text("client_id"), text("client_secret")) != (ID, SECRET) {
        return refused("incorrect_client_credentials");
    }
    let mut inner = fake.inner();
    let challenge = inner.codes.remove(text("code"));
    if challenge != Some(URL_SAFE_NO_PAD.encode(Sha256::digest(text("code_verifier")))) {
        return refused("bad_verification_code");
    }
    let token = format!("token-{}", inner.tokens.len());
    inner.tokens.push(token.clone());
    Json(json!({ "access_token": token, "scope": "", "token_type": "bearer" })).into_response()
}

async fn user(State(fake): State<FakeGitHub>, headers: HeaderMap) -> Result<Json<Value>, StatusCode> {
    let given = headers.get("authorization").and_then(|value| value.to_str().ok()).unwrap_or_default();
    let inner = fake.inner();
    let known = given.strip_prefix("Bearer ").is_some_and(|given| inner.tokens.iter().any(|token| token == given));
    // GitHub refuses programs that do not name themselves.
    if !known || !headers.contains_key("user-agent") {
        return Err(StatusCode::UNAUTHORIZED);
    }
    Ok(Json(json!({ "login": inner.login, "id": 1, "email": "somebody@example.com" })))
}

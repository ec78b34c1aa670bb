//! Registering the App: by whoever reads the console, once, and only by the browser that was sent.

use std::os::unix::fs::MetadataExt as _;
use std::sync::Arc;

use axum::body::{Body, to_bytes};
use axum::http::{HeaderMap, Request, StatusCode};
use plimsoll_server::github::{AppFile, Setup};
use plimsoll_server::state::Settings;
use secrecy::{ExposeSecret as _, SecretString};

use super::fake::{FakeGitHub, SLUG};
use crate::app::App;

#[derive(Debug)]
struct Seen {
    status: StatusCode,
    headers: HeaderMap,
    text: String,
}

async fn open(server: &App, request: Request<Body>) -> Seen {
    let (parts, body) = server.open(request).await.into_parts();
    let bytes = to_bytes(body, 1 << 20).await.unwrap();
    Seen { status: parts.status, headers: parts.headers, text: String::from_utf8(bytes.to_vec()).unwrap() }
}

async fn get(server: &App, path: &str) -> Seen {
    open(server, Request::get(path).header("accept", "text/html").body(Body::empty()).unwrap()).await
}

struct Fresh {
    github: FakeGitHub,
    server: App,
    code: SecretString,
    folder: tempfile::TempDir,
}

impl Fresh {
    /// A server without an App.
    async fn new() -> Self {
        let github = FakeGitHub::start().await;
        let folder = tempfile::tempdir().unwrap();
        let (setup, code) = Setup::new(folder.path()).unwrap();
        let settings = Settings {
            setup: Some(Arc::new(setup)),
            github_site: github.site(),
            public_url: Some("https://plimsoll.example".to_owned()),
            ..Settings::default()
        };
        let server = App::with(settings).await;
        Self { github, server, code, folder }
    }

    async fn post(&self, code: &str, organization: &str) -> Seen {
        let form = format!("code={code}&organization={organization}");
        let request = Request::post("/github/setup").header("content-type", "application/x-www-form-urlencoded");
        let request = request.header("accept", "text/html").header("sec-fetch-site", "same-origin");
        open(&self.server, request.body(Body::from(form)).unwrap()).await
    }

    /// The browser comes back from GitHub.
    async fn back(&self, code: &str, state: &str) -> Seen {
        get(&self.server, &format!("/github/setup/callback?code={code}&state={state}")).await
    }

    /// Somebody made the App; what GitHub sends back with the browser.
    fn made(&self) -> String {
        let code = "a-code".to_owned();
        self.github.model().manifest_codes.push(code.clone());
        code
    }

    /// What the browser takes along.
    async fn state(&self) -> String {
        let sent = self.post(self.code.expose_secret(), "octo").await;
        assert_eq!(sent.status, 200, "{sent:?}");
        let after = sent.text.split("settings/apps/new?state=").nth(1).expect("a form to GitHub");
        after.split('"').next().unwrap().to_owned()
    }
}

#[tokio::test]
async fn an_app_is_registered_and_acted_as_at_once() {
    let fresh = Fresh::new().await;
    let shown = get(&fresh.server, "/github/setup").await;
    assert_eq!(shown.status, 200, "{shown:?}");
    let policy = |seen: &Seen| seen.headers["content-security-policy"].to_str().unwrap().to_owned();
    assert!(policy(&shown).contains("form-action 'self';"), "{shown:?}");

    let sent = fresh.post(fresh.code.expose_secret(), "octo").await;
    assert!(policy(&sent).contains(&format!("form-action 'self' {};", fresh.github.site().url)), "{sent:?}");
    assert!(sent.text.contains("/organizations/octo/settings/apps/new?state="), "{}", sent.text);
    assert!(sent.text.contains("https://plimsoll.example/github/webhook"), "{}", sent.text);

    let state = fresh.state().await;
    let code = fresh.made();
    let done = fresh.back(&code, &state).await;
    assert_eq!(done.status, 200, "{done:?}");
    assert!(done.text.contains(&format!("/{SLUG}/installations/new")), "{}", done.text);
    let app = AppFile::read(fresh.folder.path()).unwrap().expect("an App");
    assert_eq!(app.slug, SLUG);
    for file in ["github-app.json", "github-app.pem"] {
        let mode = std::fs::metadata(fresh.folder.path().join(file)).unwrap().mode();
        assert_eq!(mode & 0o777, 0o600, "{file}");
    }
    let client = fresh.server.state.app().expect("it acts as the App");
    assert_eq!(client.about().await.unwrap().slug, SLUG);

    // It is over.
    assert_eq!(get(&fresh.server, "/github/setup").await.status, 409);
    assert_eq!(fresh.post(fresh.code.expose_secret(), "").await.status, 409);
    assert_eq!(fresh.back(&code, &state).await.status, 409);
}

#[tokio::test]
async fn neither_a_wrong_code_nor_a_strange_state_does_anything() {
    let fresh = Fresh::new().await;
    for wrong in ["", "00000-00000-00000-00000"] {
        let refused = fresh.post(wrong, "").await;
        assert_eq!(refused.status, 403, "{refused:?}");
        assert!(!refused.text.contains("settings/apps/new"));
    }
    let code = fresh.made();
    assert_eq!(fresh.back(&code, "").await.status, 400, "nobody was sent");
    let state = fresh.state().await;
    assert_eq!(fresh.back(&code, "another").await.status, 400);
    let failed = fresh.back("unknown", &state).await;
    assert_eq!(failed.status, 502, "{failed:?}");
    assert_eq!(fresh.back(&code, &state).await.status, 400, "a state works once");
    assert!(!AppFile::exists(fresh.folder.path()));
    assert!(fresh.server.state.app().is_none());
}

#[tokio::test]
async fn without_a_public_address_or_with_an_app_there_is_no_setup() {
    let github = FakeGitHub::start().await;
    let server = App::with(github.settings()).await;
    assert_eq!(get(&server, "/github/setup").await.status, 409);
    let folder = tempfile::tempdir().unwrap();
    let (setup, _) = Setup::new(folder.path()).unwrap();
    let server = App::with(Settings { setup: Some(Arc::new(setup)), ..Settings::default() }).await;
    let shown = get(&server, "/github/setup").await;
    assert!(shown.status == 409 && shown.text.contains("--public-url"), "{shown:?}");
    assert_eq!(get(&App::new().await, "/github/setup").await.status, 409);
}

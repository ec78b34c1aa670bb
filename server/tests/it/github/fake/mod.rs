//! GitHub as far as an App needs it, as a real HTTP server on a model in memory. It refuses what GitHub refuses, it can
//! be made to fail, and it keeps every request. Nothing happens by itself: events are made by [`payloads`] and sent by
//! whoever tests.

mod auth;
mod checks;
mod comments;
mod faults;
mod graph;
mod model;
pub(crate) mod payloads;
mod reads;
mod route;
mod serve;
mod shape;

use std::sync::{Arc, Mutex, MutexGuard};
use std::time::Duration;

use plimsoll_server::github::{Client, Identity, Place, Site};
use plimsoll_server::state::Settings;

pub(crate) use auth::{KEY, KEY_PKCS1, OTHER_KEY};
pub(crate) use faults::Fault;
pub(crate) use model::{APP, CheckRun, Model, SLUG};
pub(crate) use serve::Recorded;

/// What deliveries are signed with.
pub(crate) const WEBHOOK_SECRET: &str = "the secret of the fake's webhooks";

/// Cheap to clone: all are the same GitHub.
#[derive(Clone)]
pub(crate) struct FakeGitHub {
    url: String,
    inner: Arc<Mutex<Inner>>,
}

pub(crate) struct Inner {
    model: Model,
    faults: faults::Faults,
    requests: Vec<Recorded>,
}

impl FakeGitHub {
    /// With an App that is not installed anywhere, and no repositories.
    pub(crate) async fn start() -> Self {
        let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await.expect("a port");
        let url = format!("http://{}", listener.local_addr().expect("an address"));
        let inner = Inner { model: Model::default(), faults: faults::Faults::default(), requests: Vec::new() };
        let fake = Self { url, inner: Arc::new(Mutex::new(inner)) };
        let router = serve::router(fake.clone());
        tokio::spawn(async move { axum::serve(listener, router).await });
        fake
    }

    /// Where its API is: under a path, as in an installation of one's own.
    pub(crate) fn api_url(&self) -> String {
        format!("{}{}", self.url, serve::BASE)
    }

    pub(crate) fn site(&self) -> Site {
        Site { url: self.url.clone(), api_url: self.api_url() }
    }

    pub(crate) fn identity(&self) -> Identity {
        Identity {
            app_id: APP,
            private_key: KEY.into(),
            webhook_secret: WEBHOOK_SECRET.into(),
            api_url: self.api_url(),
            within: Duration::from_secs(10),
        }
    }

    pub(crate) fn client(&self) -> Client {
        Client::new(self.identity()).expect("an identity that fits")
    }

    /// For a server that acts as the App.
    pub(crate) fn settings(&self) -> Settings {
        Settings { github_app: Some(self.client()), github_site: self.site(), ..Settings::default() }
    }

    /// What there is, to look at and to change. Not to be held over an await.
    pub(crate) fn model(&self) -> impl std::ops::DerefMut<Target = Model> {
        ModelGuard(self.inner())
    }

    /// The repository with this name, installed and with one commit, as `(its id, where it is)`.
    pub(crate) fn repository(&self, full_name: &str) -> (i64, Place) {
        let mut model = self.model();
        let id = model.add_repository(full_name);
        let installation = model.installation_of(id).expect("it was installed just now");
        (id, Place { installation, full_name: full_name.to_owned() })
    }

    /// The next `times` requests that fit meet with this. `on` is a method and a part of the path, such as
    /// `POST /check-runs`; either may be left out.
    pub(crate) fn fail(&self, on: &str, fault: Fault, times: usize) {
        self.inner().faults.add(on, fault, times);
    }

    pub(crate) fn heal(&self) {
        self.inner().faults.clear();
    }

    /// Every request so far, those for tokens too.
    pub(crate) fn requests(&self) -> Vec<Recorded> {
        self.inner().requests.clone()
    }

    /// What it was told since this was asked last, in order: `POST check-runs plimsoll/ranker queued → 201`.
    pub(crate) fn take_writes(&self) -> Vec<String> {
        let mut inner = self.inner();
        let unread = inner.requests.iter_mut().filter(|request| request.is_write() && !request.read);
        unread.map(|request| request.take()).collect()
    }

    /// Waits, not for long, until it has had so many requests that fit.
    pub(crate) async fn heard(&self, on: &str, times: usize) {
        let heard = async {
            while self.requests().iter().filter(|request| request.fits(on)).count() < times {
                tokio::time::sleep(Duration::from_millis(2)).await;
            }
        };
        tokio::time::timeout(Duration::from_secs(20), heard).await.unwrap_or_else(|_| panic!("it never heard {on}"));
    }

    /// What no test should leave behind: writes that nobody looked at, questions that it does not know.
    pub(crate) fn end(&self) {
        let writes = self.take_writes();
        assert!(writes.is_empty(), "writes that nobody looked at: {writes:#?}");
        let unknown: Vec<String> =
            self.requests().into_iter().filter(|one| one.unknown).map(|one| one.line()).collect();
        assert!(unknown.is_empty(), "the fake does not know: {unknown:#?}");
    }

    fn inner(&self) -> MutexGuard<'_, Inner> {
        self.inner.lock().expect("no test panics with it")
    }
}

struct ModelGuard<'a>(MutexGuard<'a, Inner>);

impl std::ops::Deref for ModelGuard<'_> {
    type Target = Model;

    fn deref(&self) -> &Model {
        &self.0.model
    }
}

impl std::ops::DerefMut for ModelGuard<'_> {
    fn deref_mut(&mut self) -> &mut Model {
        &mut self.0.model
    }
}

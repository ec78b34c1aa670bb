//! What every handler shares.

use std::path::PathBuf;
use std::sync::{Arc, OnceLock};
use std::time::Duration;

use tokio::sync::{OnceCell, OwnedSemaphorePermit, Semaphore, watch};

use crate::access::{Allowance, Cidr, Issuer, Limits, SigningKey, Tokens};
use crate::doctor::Patient;
use crate::github;
use crate::metrics::Metrics;
use crate::outgoing::Outgoing;
use crate::store::Pool;
use crate::store::projects::Visibility;
use crate::tasks::hub::Hub;
use crate::tasks::{Error, Result};

/// Cheap to clone; what must last is in Postgres.
#[derive(Debug, Clone)]
pub struct AppState(Arc<Inner>);

#[derive(Debug)]
struct Inner {
    pool: Pool,
    settings: Settings,
    outgoing: Outgoing,
    limits: Limits,
    oidc_issuer: Issuer,
    draining: watch::Sender<bool>,
    uploads: Arc<Semaphore>,
    reads: Arc<Semaphore>,
    deliveries: Arc<Semaphore>,
    inbox_room: github::Room,
    computations: Arc<Semaphore>,
    chart_key: OnceCell<SigningKey>,
    hub: Hub,
    metrics: Metrics,
    /// May come while the server runs.
    app: OnceLock<github::Client>,
}

/// What configuration says, for handlers and tasks.
#[derive(Debug, Clone, Default)]
pub struct Settings {
    pub tokens: Tokens,
    /// The address at which people reach the pages, without a final slash.
    pub public_url: Option<String>,
    /// Whether webhooks may lead to addresses that are not public.
    pub allow_private_webhooks: bool,
    /// For sign-in by GitHub.
    pub github: Option<github::App>,
    /// The App that the server acts as.
    pub github_app: Option<github::Client>,
    /// Where GitHub is.
    pub github_site: github::Site,
    /// Who says what a workflow is; `None`: GitHub.
    pub oidc_issuer: Option<String>,
    /// How an App is registered, where there is none.
    pub setup: Option<Arc<github::Setup>>,
    /// Who may read a project that is new.
    pub new_projects: Visibility,
    /// Proxies whose `X-Forwarded-For` is believed.
    pub trusted_proxies: Vec<Cidr>,
    pub allowance: Allowance,
    /// Age at which reports lose their windows; `None` keeps them.
    pub retention: Option<Duration>,
    /// Whether `/metrics` needs no token.
    pub open_metrics: bool,
    /// For the doctor.
    pub data_dir: Option<PathBuf>,
    /// Whether the database is in it.
    pub embedded: bool,
}

/// Uploads held in memory at the same time, from their body of up to 64 MiB until they are stored.
const MAX_UPLOADS: usize = 8;
/// Answers made out of whole reports at the same time, from before they are loaded.
const MAX_READS: usize = 16;
/// Large deliveries of GitHub's held in memory at the same time, each of up to 25 MiB and not yet known to be GitHub's.
const MAX_DELIVERIES: usize = 4;
const DELIVERY_WITHIN: Duration = Duration::from_secs(5);
/// Whoever waits longer for their turn is told to try again.
const TURN_WITHIN: Duration = Duration::from_secs(10);

impl AppState {
    pub fn new(pool: Pool, settings: Settings) -> Self {
        let cores = std::thread::available_parallelism().map_or(1, usize::from);
        let draining = watch::Sender::new(false);
        Self(Arc::new(Inner {
            hub: Hub::new(&pool, draining.subscribe()),
            pool,
            outgoing: Outgoing::new(settings.allow_private_webhooks),
            limits: Limits::new(&settings.allowance),
            oidc_issuer: Issuer::new(settings.oidc_issuer.as_deref().unwrap_or(Issuer::GITHUB)),
            app: settings.github_app.clone().map(OnceLock::from).unwrap_or_default(),
            settings,
            draining,
            uploads: Arc::new(Semaphore::new(MAX_UPLOADS)),
            reads: Arc::new(Semaphore::new(MAX_READS)),
            deliveries: Arc::new(Semaphore::new(MAX_DELIVERIES)),
            inbox_room: github::Room::default(),
            computations: Arc::new(Semaphore::new(cores)),
            chart_key: OnceCell::new(),
            metrics: Metrics::default(),
        }))
    }

    pub fn pool(&self) -> &Pool {
        &self.0.pool
    }

    pub fn metrics(&self) -> &Metrics {
        &self.0.metrics
    }

    pub(crate) fn open_metrics(&self) -> bool {
        self.0.settings.open_metrics
    }

    pub(crate) fn patient(&self) -> Patient {
        let settings = &self.0.settings;
        Patient {
            data_dir: settings.data_dir.clone(),
            public_url: settings.public_url.clone(),
            github_api: settings.github.as_ref().map(|app| app.api_url.clone()),
            github_app: self.app().cloned(),
            embedded: settings.embedded,
        }
    }

    pub(crate) fn retention(&self) -> Option<Duration> {
        self.0.settings.retention
    }

    pub fn public_url(&self) -> Option<&str> {
        self.0.settings.public_url.as_deref()
    }

    /// People reach this server by https.
    pub(crate) fn over_tls(&self) -> bool {
        self.public_url().is_some_and(|url| url.starts_with("https://"))
    }

    pub(crate) fn outgoing(&self) -> &Outgoing {
        &self.0.outgoing
    }

    pub(crate) fn github(&self) -> Option<&github::App> {
        self.0.settings.github.as_ref()
    }

    /// GitHub, as the App that the server acts as.
    pub fn app(&self) -> Option<&github::Client> {
        self.0.app.get()
    }

    /// From now on the server acts as this App. False when it acts as one already.
    pub fn set_app(&self, app: github::Client) -> bool {
        self.0.app.set(app).is_ok()
    }

    /// How an App is registered, where there was none at the start.
    pub fn setup(&self) -> Option<&github::Setup> {
        self.0.settings.setup.as_deref()
    }

    /// Where GitHub is.
    pub fn github_site(&self) -> &github::Site {
        &self.0.settings.github_site
    }

    /// Who says what a workflow is.
    pub(crate) fn oidc_issuer(&self) -> &Issuer {
        &self.0.oidc_issuer
    }

    /// Who may read a project that is new.
    pub fn new_projects(&self) -> Visibility {
        self.0.settings.new_projects
    }

    pub fn limits(&self) -> &Limits {
        &self.0.limits
    }

    pub(crate) fn trusted_proxies(&self) -> &[Cidr] {
        &self.0.settings.trusted_proxies
    }

    pub(crate) fn tokens(&self) -> &Tokens {
        &self.0.settings.tokens
    }

    /// Turns true when the server stops: what waits on purpose (long polls, streams) ends then.
    pub fn draining(&self) -> watch::Receiver<bool> {
        self.0.draining.subscribe()
    }

    pub fn drain(&self) {
        self.0.draining.send_replace(true);
    }

    /// Wakes who waits for a run's events or for a job.
    pub fn hub(&self) -> &Hub {
        &self.0.hub
    }

    /// Signs the addresses of charts; it is in the database, so that each replica knows what another has signed.
    pub(crate) async fn chart_key(&self) -> Result<&SigningKey> {
        self.0.chart_key.get_or_try_init(|| SigningKey::load(self.pool(), "charts")).await
    }

    /// To be held while an upload is in memory; unavailable when none gets free in time.
    pub(crate) async fn turn_to_upload(&self) -> Result<OwnedSemaphorePermit> {
        turn(&self.0.uploads, TURN_WITHIN, "too many uploads at a time").await
    }

    /// To be held while stored reports are in memory, packed or not; unavailable when none gets free in time.
    pub(crate) async fn turn_to_read(&self) -> Result<OwnedSemaphorePermit> {
        turn(&self.0.reads, TURN_WITHIN, "too many reports are read at a time").await
    }

    /// To be held while a large delivery is in memory; unavailable when none gets free in time.
    pub(crate) async fn turn_for_delivery(&self) -> Result<OwnedSemaphorePermit> {
        turn(&self.0.deliveries, DELIVERY_WITHIN, "too many large deliveries at a time").await
    }

    /// Whether more deliveries of GitHub's may wait.
    pub(crate) fn inbox_room(&self) -> &github::Room {
        &self.0.inbox_room
    }

    /// Runs something that needs a processor for long (parsing, judging, drawing a large report) beside the
    /// asynchronous tasks, at most one per core at a time. It runs to its end even when nobody waits for it any more.
    pub async fn compute<T: Send + 'static>(&self, work: impl FnOnce() -> T + Send + 'static) -> Result<T> {
        let permit = Arc::clone(&self.0.computations).acquire_owned().await.map_err(Error::internal)?;
        let work = move || {
            let _permit = permit;
            work()
        };
        tokio::task::spawn_blocking(work).await.map_err(Error::internal)
    }
}

async fn turn(turns: &Arc<Semaphore>, within: Duration, busy: &str) -> Result<OwnedSemaphorePermit> {
    let turn = tokio::time::timeout(within, Arc::clone(turns).acquire_owned()).await;
    let busy = |_| Error::Unavailable(busy.to_owned());
    turn.map_err(busy)?.map_err(Error::internal)
}

#[cfg(test)]
impl AppState {
    /// How many uploads could begin now.
    pub(crate) fn free_for_uploads(&self) -> usize {
        self.0.uploads.available_permits()
    }
}

#[cfg(test)]
mod tests {
    use futures_util::future::poll_immediate;
    use plimsoll_domain::ids::RunId;

    use super::*;
    use crate::tasks::verdict;

    #[tokio::test]
    async fn reports_are_not_loaded_before_there_is_room_for_them() {
        // Whoever asks this one for something has the answer at once.
        let closed = sqlx::postgres::PgPoolOptions::new().connect_lazy("postgres://127.0.0.1:1/none").unwrap();
        closed.close().await;
        let state = AppState::new(closed, Settings::default());
        let mut turns = Vec::new();
        for _ in 0..MAX_READS {
            turns.push(state.turn_to_read().await.unwrap());
        }
        let none = RunId(uuid::Uuid::nil());
        let mut compared = Box::pin(verdict::compare(&state, none, none));
        assert!(poll_immediate(&mut compared).await.is_none());
        let refused = turn(&state.0.reads, Duration::ZERO, "too many").await.unwrap_err();
        assert!(matches!(refused, Error::Unavailable(_)), "{refused:?}");
        assert_eq!(refused.to_string(), "too many; try again");
        turns.pop();
        let answer = poll_immediate(&mut compared).await.expect("it waits for a turn only");
        assert!(answer.is_err(), "the database was asked");
        drop(state.turn_to_read().await.unwrap());
    }
}

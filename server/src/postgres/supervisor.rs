//! Keeps a postmaster running: one that ends without being told to is started again, on the same port, for as long as
//! it takes.

use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::thread::{self, JoinHandle};
use std::time::{Duration, Instant};

use super::PostgresError;
use super::account::Account;
use super::binaries::Binaries;
use super::directory::Directory;
use super::process::{Failed, Postmaster};

/// All that a start needs.
#[derive(Debug)]
pub(super) struct Recipe {
    pub(super) binaries: Binaries,
    pub(super) account: Account,
    /// Ours, by its lock, for as long as this is.
    pub(super) directory: Directory,
    pub(super) port: u16,
    pub(super) durable: bool,
}

/// A postmaster that is watched. Dropping it stops both.
#[derive(Debug)]
pub(super) struct Supervisor {
    watched: Arc<Watched>,
    thread: Mutex<Option<JoinHandle<()>>>,
}

#[derive(Debug)]
struct Watched {
    state: Mutex<State>,
    changed: Condvar,
}

#[derive(Debug)]
struct State {
    postmaster: Arc<Postmaster>,
    stopping: bool,
}

/// Before the first new start: backends of the old postmaster, which notice its end, need a moment to go.
const FIRST_PAUSE: Duration = Duration::from_millis(100);
/// Each failure doubles the pause up to this.
const LONGEST_PAUSE: Duration = Duration::from_secs(5);
/// One that ran for as long was sound: the pause is the first one again.
const SOUND_AFTER: Duration = Duration::from_secs(30);

impl Recipe {
    /// Starts it, unless `given_up` meanwhile.
    pub(super) fn start(&self, given_up: &dyn Fn() -> bool) -> Result<Postmaster, Failed> {
        self.directory.end_orphan().map_err(Failed::Other)?;
        Postmaster::start(&self.binaries, &self.account, &self.directory, self.port, self.durable, given_up)
    }
}

impl Supervisor {
    pub(super) fn watch(postmaster: Postmaster, recipe: Arc<Recipe>) -> Result<Self, PostgresError> {
        let state = State { postmaster: Arc::new(postmaster), stopping: false };
        let watched = Arc::new(Watched { state: Mutex::new(state), changed: Condvar::new() });
        let run = {
            let watched = Arc::clone(&watched);
            move || watched.run(&recipe)
        };
        let thread = thread::Builder::new().name("postgres-watch".to_owned()).spawn(run);
        let thread = thread.map_err(|e| PostgresError::Command { what: "a thread", why: e.to_string() })?;
        Ok(Self { watched, thread: Mutex::new(Some(thread)) })
    }

    /// `None` while there is none.
    pub(super) fn pid(&self) -> Option<u32> {
        self.watched.lock().postmaster.pid()
    }

    /// Ends the postmaster, in at most about twice `patience`, and starts no other.
    pub(super) fn stop(&self, patience: Duration) {
        let postmaster = {
            let mut state = self.watched.lock();
            state.stopping = true;
            self.watched.changed.notify_all();
            Arc::clone(&state.postmaster)
        };
        postmaster.stop(patience);
        let thread = self.thread.lock().unwrap_or_else(PoisonError::into_inner).take();
        if let Some(thread) = thread {
            let _ = thread.join();
        }
    }
}

impl Drop for Supervisor {
    fn drop(&mut self) {
        self.stop(Duration::from_secs(5));
    }
}

impl Watched {
    fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn run(&self, recipe: &Recipe) {
        let mut pause = FIRST_PAUSE;
        loop {
            let postmaster = Arc::clone(&self.lock().postmaster);
            let since = Instant::now();
            postmaster.wait();
            drop(postmaster);
            if since.elapsed() > SOUND_AFTER {
                pause = FIRST_PAUSE;
            }
            let gone = Instant::now();
            let Some(again) = self.start_again(recipe, &mut pause) else { return };
            let pid = again.pid();
            let mut state = self.lock();
            state.postmaster = Arc::new(again);
            if state.stopping {
                let late = Arc::clone(&state.postmaster);
                drop(state);
                return late.stop(Duration::from_secs(5));
            }
            drop(state);
            tracing::info!(pid, port = recipe.port, away_ms = gone.elapsed().as_millis() as u64, "Postgres runs again");
        }
    }

    /// `None` when it is to stop.
    fn start_again(&self, recipe: &Recipe, pause: &mut Duration) -> Option<Postmaster> {
        loop {
            let waited = self.changed.wait_timeout_while(self.lock(), *pause, |state| !state.stopping);
            if waited.unwrap_or_else(PoisonError::into_inner).0.stopping {
                return None;
            }
            *pause = (*pause * 2).min(LONGEST_PAUSE);
            let why = match recipe.start(&|| self.lock().stopping) {
                Ok(postmaster) => return Some(postmaster),
                Err(Failed::PortTaken) => format!("port {} is taken by another process", recipe.port),
                Err(Failed::Other(error)) => error.to_string(),
            };
            tracing::warn!(why, retry_in_ms = pause.as_millis() as u64, "Postgres cannot be started again yet");
        }
    }
}

//! Tokens of installations: asked for once, however many wait for it, and again a while before the end.

use std::collections::HashMap;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};

use hyper::Method;
use jiff::Timestamp;
use octocrab::Octocrab;

use super::call::{self, Call};
use super::{Error, Result};
use crate::github::answers;

#[derive(Debug, Default)]
pub(super) struct Tokens(Mutex<HashMap<i64, Arc<Slot>>>);

/// Held while the token is asked for.
type Slot = tokio::sync::Mutex<Option<Token>>;

/// One that an installation has, in a client that uses it.
#[derive(Debug, Clone)]
pub(super) struct Token {
    crab: Octocrab,
    until: Instant,
    /// Tells it from others.
    number: u64,
}

/// More installations than any server has; past it the tokens are asked for anew.
const MOST: usize = 10_000;
/// GitHub's tokens last this long; a clock that goes wrong makes no longer ones.
const LONGEST: Duration = Duration::from_secs(3_600);

impl Tokens {
    pub(super) async fn get(
        &self,
        installation: i64,
        refused: Option<&Token>,
        ask: impl AsyncFnOnce() -> Result<Token>,
    ) -> Result<Token> {
        let slot = self.slot(installation);
        let mut slot = slot.lock().await;
        let good = |token: &&Token| {
            token.until > Instant::now() && refused.is_none_or(|refused| refused.number != token.number)
        };
        if let Some(token) = slot.as_ref().filter(good) {
            return Ok(token.clone());
        }
        // Should this fail, nobody goes on with the one that was refused.
        *slot = None;
        Ok(slot.insert(ask().await?).clone())
    }

    fn slot(&self, installation: i64) -> Arc<Slot> {
        let mut slots = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        if slots.len() >= MOST && !slots.contains_key(&installation) {
            slots.clear();
        }
        Arc::clone(slots.entry(installation).or_default())
    }
}

impl Token {
    /// A new one, asked for as the App.
    pub(super) async fn ask(app: &Octocrab, installation: i64, within: Duration) -> Result<Self> {
        static NUMBER: AtomicU64 = AtomicU64::new(0);
        let asked = Instant::now();
        let call = Call::new(Method::POST, format!("/app/installations/{installation}/access_tokens"));
        let token: answers::Token = call::send(app, &call, within).await?.accepted(&call)?.json()?;
        let left = token.expires_at.duration_since(Timestamp::now());
        let left = Duration::try_from(left).unwrap_or(Duration::ZERO).min(LONGEST);
        let crab = app.user_access_token(token.token).map_err(|error| Error::unreachable(&error))?;
        // A tenth before its end.
        Ok(Self { crab, until: asked + left.mul_f64(0.9), number: NUMBER.fetch_add(1, Ordering::Relaxed) })
    }

    pub(super) fn crab(&self) -> &Octocrab {
        &self.crab
    }
}

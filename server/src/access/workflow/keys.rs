//! The keys of whoever gives workflows their identity: asked for when one is missing, kept, and never asked for often,
//! whatever keys strangers name.

use std::collections::HashMap;
use std::time::{Duration, Instant};

use jsonwebtoken::DecodingKey;
use jsonwebtoken::jwk::{AlgorithmParameters, JwkSet};
use tokio::sync::Mutex;

use crate::github;

/// GitHub, or an installation of one's own.
#[derive(Debug)]
pub struct Issuer {
    url: String,
    kept: Mutex<Kept>,
}

#[derive(Default)]
struct Kept {
    keys: HashMap<String, DecodingKey>,
    /// When these came.
    at: Option<Instant>,
    /// When they were asked for last, with or without an answer.
    asked: Option<Instant>,
}

impl std::fmt::Debug for Kept {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Kept").field("keys", &self.keys.len()).finish_non_exhaustive()
    }
}

#[derive(Debug)]
pub(super) enum KeyError {
    Unknown,
    Unreachable(String),
}

/// A key that was withdrawn is believed for so long at most.
const KEPT: Duration = Duration::from_secs(60 * 60);
/// Between two requests, whatever is asked for.
const BETWEEN: Duration = Duration::from_secs(30);
const WITHIN: Duration = Duration::from_secs(5);
const LONGEST: usize = 256 << 10;
const MOST_KEYS: usize = 32;

impl Issuer {
    pub const GITHUB: &str = "https://token.actions.githubusercontent.com";

    pub fn new(url: &str) -> Self {
        Self { url: url.trim_end_matches('/').to_owned(), kept: Mutex::default() }
    }

    pub fn url(&self) -> &str {
        &self.url
    }

    /// Whoever comes meanwhile waits for the one request, which is bounded.
    pub(super) async fn key(&self, kid: &str) -> Result<DecodingKey, KeyError> {
        let mut kept = self.kept.lock().await;
        let fresh = kept.at.is_some_and(|at| at.elapsed() < KEPT);
        if let Some(key) = kept.keys.get(kid).filter(|_| fresh) {
            return Ok(key.clone());
        }
        if kept.asked.is_some_and(|asked| asked.elapsed() < BETWEEN) {
            return Err(if fresh { KeyError::Unknown } else { KeyError::Unreachable("asked a moment ago".to_owned()) });
        }
        kept.asked = Some(Instant::now());
        let keys = fetch(&format!("{}/.well-known/jwks", self.url)).await.map_err(KeyError::Unreachable)?;
        (kept.keys, kept.at) = (keys, Some(Instant::now()));
        kept.keys.get(kid).cloned().ok_or(KeyError::Unknown)
    }
}

/// RSA keys by their names; others sign nothing here.
async fn fetch(url: &str) -> Result<HashMap<String, DecodingKey>, String> {
    let client = github::http(WITHIN).map_err(|error| error.to_string())?;
    let mut answer = client.get(url).send().await.map_err(|error| error.without_url().to_string())?;
    if !answer.status().is_success() {
        return Err(format!("status {}", answer.status()));
    }
    let mut body = Vec::new();
    while let Some(chunk) = answer.chunk().await.map_err(|error| error.without_url().to_string())? {
        if body.len() + chunk.len() > LONGEST {
            return Err("the answer is too large".to_owned());
        }
        body.extend_from_slice(&chunk);
    }
    let set: JwkSet = serde_json::from_slice(&body).map_err(|_| "the answer has another form".to_owned())?;
    let named = set.keys.into_iter().filter(|jwk| matches!(jwk.algorithm, AlgorithmParameters::RSA(_)));
    let named = named.filter_map(|jwk| Some((jwk.common.key_id.clone()?, DecodingKey::from_jwk(&jwk).ok()?)));
    Ok(named.take(MOST_KEYS).collect())
}

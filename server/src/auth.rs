//! Bearer tokens: 256 random bits, known to the server by their SHA-256 only.
//!
//! Writing needs one; reading is open, which is why the server listens on loopback unless told otherwise.

mod file;

use axum::extract::FromRequestParts;
use axum::http::header;
use axum::http::request::Parts;
use secrecy::{ExposeSecret, SecretString};
use sha2::{Digest as _, Sha256};
use subtle::ConstantTimeEq as _;

use crate::error::AppError;
use crate::state::AppState;
use crate::store;

pub use file::{TokenFileError, ensure};

/// A shorter token could be guessed, and is refused at start.
pub const MIN_TOKEN: usize = 16;

/// Tokens given by configuration, beside those in the database.
#[derive(Clone, Default)]
pub struct Tokens(Vec<[u8; 32]>);

impl Tokens {
    pub fn new(tokens: &[SecretString]) -> Self {
        Self(tokens.iter().map(|token| hash(token.expose_secret())).collect())
    }
}

impl std::fmt::Debug for Tokens {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "Tokens({})", self.0.len())
    }
}

/// Proof that the request carries a token that may upload; an extractor that answers 401 without.
#[derive(Debug)]
pub struct Uploader(());

impl FromRequestParts<AppState> for Uploader {
    type Rejection = AppError;

    async fn from_request_parts(parts: &mut Parts, state: &AppState) -> Result<Self, AppError> {
        let given = parts.headers.get(header::AUTHORIZATION).and_then(|value| value.to_str().ok()).and_then(bearer);
        let given = given.ok_or_else(|| {
            AppError::unauthorized(
                "this needs a token: send `Authorization: Bearer TOKEN` (PLIMSOLL_TOKEN for plimsoll)",
            )
        })?;
        let given = hash(given);
        let known = store::tokens::upload_hashes(state.pool()).await?;
        let configured = state.tokens().0.iter().map(|hash| &hash[..]);
        // Each hash is compared in full, and all of them are.
        let fits = known
            .iter()
            .map(Vec::as_slice)
            .chain(configured)
            .fold(0, |fits, hash| fits | hash.ct_eq(&given).unwrap_u8());
        if fits == 1 { Ok(Self(())) } else { Err(AppError::unauthorized("this token is not known here")) }
    }
}

pub(crate) fn hash(token: &str) -> [u8; 32] {
    Sha256::digest(token.as_bytes()).into()
}

fn bearer(value: &str) -> Option<&str> {
    let (scheme, token) = value.split_once(' ')?;
    scheme.eq_ignore_ascii_case("bearer").then(|| token.trim()).filter(|token| !token.is_empty())
}

//! Bearer tokens: 256 random bits, known to the server by their SHA-256 only.
//!
//! Writing needs one; reading is open, which is why the server listens on loopback unless told otherwise.

mod file;

use axum::extract::FromRequestParts;
use axum::http::request::Parts;
use axum::http::{StatusCode, header};
use secrecy::{ExposeSecret, SecretString};
use sha2::{Digest as _, Sha256};
use subtle::ConstantTimeEq as _;

use crate::error::AppError;
use crate::state::AppState;
use crate::store;

pub use file::{TokenFileError, ensure};

/// A shorter token could be guessed, and is refused at start.
pub const MIN_TOKEN: usize = 16;

/// Tokens given by configuration, beside those in the database: they upload, and set no policy.
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

/// Proof that the request carries a token that may set policies; 401 without a token, 403 with one that only uploads.
#[derive(Debug)]
pub struct Administrator(());

impl FromRequestParts<AppState> for Uploader {
    type Rejection = AppError;

    async fn from_request_parts(parts: &mut Parts, state: &AppState) -> Result<Self, AppError> {
        is_admin(parts, state).await.map(|_| Self(()))
    }
}

impl FromRequestParts<AppState> for Administrator {
    type Rejection = AppError;

    async fn from_request_parts(parts: &mut Parts, state: &AppState) -> Result<Self, AppError> {
        if is_admin(parts, state).await? {
            return Ok(Self(()));
        }
        let detail = "this token may upload, but not set a policy: use the server's own, from its data directory";
        Err(AppError::new(StatusCode::FORBIDDEN, detail))
    }
}

/// Whether the request's token may do more than upload; an error when there is none, or none that is known.
async fn is_admin(parts: &Parts, state: &AppState) -> Result<bool, AppError> {
    let given = parts.headers.get(header::AUTHORIZATION).and_then(|value| value.to_str().ok()).and_then(bearer);
    let given = given.ok_or_else(|| {
        AppError::unauthorized("this needs a token: send `Authorization: Bearer TOKEN` (PLIMSOLL_TOKEN for plimsoll)")
    })?;
    let given = hash(given);
    let stored = store::tokens::all(state.pool()).await?;
    let stored = stored.iter().map(|token| (&token.sha256[..], token.admin));
    let configured = state.tokens().0.iter().map(|hash| (&hash[..], false));
    // Each hash is compared in full, and all of them are.
    let (known, admin) = stored.chain(configured).fold((0, 0), |(known, admin), (hash, may)| {
        let fits = hash.ct_eq(&given).unwrap_u8();
        (known | fits, admin | (fits & u8::from(may)))
    });
    if known == 1 { Ok(admin == 1) } else { Err(AppError::unauthorized("this token is not known here")) }
}

pub(crate) fn hash(token: &str) -> [u8; 32] {
    Sha256::digest(token.as_bytes()).into()
}

fn bearer(value: &str) -> Option<&str> {
    let (scheme, token) = value.split_once(' ')?;
    scheme.eq_ignore_ascii_case("bearer").then(|| token.trim()).filter(|token| !token.is_empty())
}

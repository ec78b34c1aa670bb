//! Browsers that are signed in: a cookie of 256 random bits, of which the server keeps the SHA-256.

use std::time::Duration;

use axum::http::HeaderMap;
use axum_extra::extract::CookieJar;
use axum_extra::extract::cookie::{Cookie, SameSite};

use super::token::{hash, random};
use crate::error::{AppError, Result};
use crate::state::AppState;
use crate::store;

pub use crate::store::sessions::{Owner, SignedIn};

/// Then one signs in again; the browser forgets the cookie when it is closed.
const LASTS: Duration = Duration::from_secs(12 * 60 * 60);

/// Begins a session and returns the cookie to set. What the session may do follows the token or the member's rows.
pub async fn begin(state: &AppState, by: SignedIn) -> Result<Cookie<'static>> {
    let value = random().map_err(AppError::internal)?;
    store::sessions::insert(state.pool(), &hash(&value), &by, LASTS).await?;
    Ok(cookie(state, value))
}

/// Ends the session of these headers, if there is one, and returns the cookie that removes it from the browser.
pub async fn end(state: &AppState, headers: &HeaderMap) -> Result<Cookie<'static>> {
    if let Some(value) = given(state, headers) {
        store::sessions::delete(state.pool(), &hash(&value)).await?;
    }
    let mut cookie = cookie(state, String::new());
    cookie.make_removal();
    Ok(cookie)
}

/// Whose session the headers carry, if it lasts.
pub(super) async fn owner(state: &AppState, headers: &HeaderMap) -> Result<Option<Owner>> {
    match given(state, headers) {
        Some(value) => Ok(store::sessions::owner(state.pool(), &hash(&value)).await?),
        None => Ok(None),
    }
}

fn given(state: &AppState, headers: &HeaderMap) -> Option<String> {
    let jar = CookieJar::from_headers(headers);
    jar.get(name(state)).map(|cookie| cookie.value().to_owned()).filter(|value| !value.is_empty())
}

/// A browser takes a `__Host-` cookie only over TLS and for this very host: no page beside it can plant one.
fn name(state: &AppState) -> &'static str {
    if over_tls(state) { "__Host-plimsoll" } else { "plimsoll" }
}

fn over_tls(state: &AppState) -> bool {
    state.public_url().is_some_and(|url| url.starts_with("https://"))
}

fn cookie(state: &AppState, value: String) -> Cookie<'static> {
    Cookie::build((name(state), value))
        .http_only(true)
        .same_site(SameSite::Lax)
        .secure(over_tls(state))
        .path("/")
        .build()
}

//! Browsers that are signed in: a cookie of 256 random bits, of which the server keeps the SHA-256.

use std::time::Duration;

use axum::http::{HeaderMap, StatusCode};
use axum_extra::extract::CookieJar;
use axum_extra::extract::cookie::{Cookie, SameSite};

use super::caller::Caller;
use super::token::{hash, random};
use crate::error::{AppError, Result};
use crate::state::AppState;
use crate::store;
use crate::store::audit::Entry;

pub use crate::store::sessions::{Owner, SignedIn};

/// Then one signs in again; the browser forgets the cookie when it is closed.
const LASTS: Duration = Duration::from_secs(12 * 60 * 60);

/// Begins a session and returns the cookie to set. What the session may do follows the token or the member's rows.
pub async fn begin(state: &AppState, caller: &Caller, by: SignedIn) -> Result<Cookie<'static>> {
    let value = random().map_err(AppError::internal)?;
    let mut transaction = store::begin(state.pool()).await?;
    let actor = match &by {
        SignedIn::Token(id) => {
            let token = store::tokens::in_use_by_id(&mut *transaction, *id).await?;
            let ended = || AppError::unauthorized("this token has expired or was revoked");
            format!("token {}", token.ok_or_else(ended)?.name)
        }
        SignedIn::Member(login) => format!("github {}", login.to_lowercase()),
    };
    store::sessions::insert(&mut *transaction, &hash(&value), &by, LASTS).await?;
    store::audit::write(&mut *transaction, &Entry { actor, ..caller.entry("session.begin") }).await?;
    store::commit(transaction).await?;
    Ok(cookie(state, value))
}

/// Notes a sign-in that failed; `with` says by what it was tried, and is no secret. An error when there were too many
/// from this address.
pub async fn failed(state: &AppState, caller: &Caller, with: &str) -> Result<()> {
    let refusal = state.limits().failure(caller.address, AppError::unauthorized("this sign-in failed"));
    if refusal.status() == StatusCode::TOO_MANY_REQUESTS {
        return Err(refusal);
    }
    Ok(store::audit::write(state.pool(), &caller.entry("session.refuse").subject(with)).await?)
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

/// Whether the headers carry a session, lasting or not.
pub(super) fn is_given(state: &AppState, headers: &HeaderMap) -> bool {
    given(state, headers).is_some()
}

fn given(state: &AppState, headers: &HeaderMap) -> Option<String> {
    let jar = CookieJar::from_headers(headers);
    jar.get(name(state)).map(|cookie| cookie.value().to_owned()).filter(|value| !value.is_empty())
}

/// A browser takes a `__Host-` cookie only over TLS and for this very host: no page beside it can plant one.
fn name(state: &AppState) -> &'static str {
    if state.over_tls() { "__Host-plimsoll" } else { "plimsoll" }
}

fn cookie(state: &AppState, value: String) -> Cookie<'static> {
    Cookie::build((name(state), value))
        .http_only(true)
        .same_site(SameSite::Lax)
        .secure(state.over_tls())
        .path("/")
        .build()
}

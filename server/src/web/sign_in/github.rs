//! The browser's way to GitHub and back. What must come back with it (state, verifier, where to go afterwards) is kept
//! in a cookie of its own that lasts ten minutes and works once, so any replica can finish what another began.

use axum::extract::{Query, State};
use axum::http::{HeaderMap, HeaderValue, StatusCode, header};
use axum::response::{IntoResponse, Redirect, Response};
use axum_extra::extract::CookieJar;
use axum_extra::extract::cookie::{Cookie, SameSite};
use serde::Deserialize;
use subtle::ConstantTimeEq as _;

use super::{Wanted, enter, own_path, show};
use crate::access::session::{self, SignedIn};
use crate::access::{Caller, random};
use crate::error::{AppError, Result};
use crate::github::{App, SignInError};
use crate::state::AppState;
use crate::store;
use crate::web::view::{Frame, query_value};

/// What GitHub adds to the address.
#[derive(Deserialize)]
pub(in crate::web) struct Back {
    state: Option<String>,
    code: Option<String>,
    error: Option<String>,
}

/// What the browser keeps meanwhile.
struct Trip {
    state: String,
    verifier: String,
    next: String,
}

const LASTS_S: u32 = 600;

pub(in crate::web) async fn begin(State(state): State<AppState>, Query(wanted): Query<Wanted>) -> Result<Response> {
    let app = app(&state)?;
    let trip = Trip {
        state: random().map_err(AppError::internal)?,
        verifier: random().map_err(AppError::internal)?,
        next: own_path(wanted.next.as_deref()),
    };
    let there = app.authorize_url(&trip.state, &trip.verifier, back_to(&state).as_deref());
    Ok((CookieJar::new().add(trip.cookie(&state)), Redirect::to(&there)).into_response())
}

pub(in crate::web) async fn callback(
    State(state): State<AppState>,
    caller: Caller,
    frame: Frame,
    headers: HeaderMap,
    Query(back): Query<Back>,
) -> Result<Response> {
    let trip = Trip::of(&state, &headers);
    let next = trip.as_ref().map_or_else(|| "/".to_owned(), |trip| trip.next.clone());
    let mut response = match come_back(&state, trip, back).await {
        Ok(login) => enter(&state, &caller, &headers, SignedIn::Member(login), &next).await?,
        Err(Failure { status, problem }) => {
            session::failed(&state, &caller, "GitHub").await?;
            (status, show(&state, frame, &next, Some(problem))).into_response()
        }
    };
    // Whatever came of it, this trip is over.
    if let Ok(over) = HeaderValue::from_str(&ended(&state).to_string()) {
        response.headers_mut().append(header::SET_COOKIE, over);
    }
    Ok(response)
}

/// Why nobody is signed in, in words for them.
struct Failure {
    status: StatusCode,
    problem: String,
}

/// The login of a member.
async fn come_back(state: &AppState, trip: Option<Trip>, back: Back) -> Result<String, Failure> {
    let not = |status, problem: String| Failure { status, problem };
    let app = app(state).map_err(|error| not(error.status(), error.problem().detail.clone()))?;
    let same = |trip: &Trip| {
        back.state.as_deref().is_some_and(|state| bool::from(state.as_bytes().ct_eq(trip.state.as_bytes())))
    };
    let Some(trip) = trip.filter(same) else {
        let problem = "This sign-in was not begun in this browser, or more than ten minutes ago. Please begin again.";
        return Err(not(StatusCode::BAD_REQUEST, problem.to_owned()));
    };
    let code = match (back.code, back.error.as_deref()) {
        (Some(code), None) => code,
        (_, Some("access_denied")) => {
            return Err(not(StatusCode::FORBIDDEN, "You did not let GitHub tell who you are.".to_owned()));
        }
        _ => return Err(not(StatusCode::BAD_REQUEST, "GitHub sent no code. Please begin again.".to_owned())),
    };
    let login = app.login(&code, &trip.verifier, back_to(state).as_deref()).await.map_err(|error| match &error {
        SignInError::Refused(_) => not(StatusCode::BAD_REQUEST, format!("{error}. Please begin again.")),
        SignInError::Unreachable(why) => {
            tracing::warn!(why, "sign-in by GitHub failed");
            not(StatusCode::BAD_GATEWAY, format!("{error}. Try again in a moment, or sign in by a token."))
        }
    })?;
    let grants = store::members::grants(state.pool(), &login).await.map_err(|error| {
        let error = AppError::from(error);
        tracing::error!(?error, "members could not be read");
        not(error.status(), error.problem().detail.clone())
    })?;
    if grants.is_empty() {
        let problem = format!(
            "GitHub says that you are @{login}, who is no member here. Ask an administrator of this server to add you."
        );
        return Err(not(StatusCode::FORBIDDEN, problem));
    }
    Ok(login)
}

impl Trip {
    fn of(state: &AppState, headers: &HeaderMap) -> Option<Self> {
        let jar = CookieJar::from_headers(headers);
        let mut parts = jar.get(name(state))?.value().splitn(3, '.');
        let (state, verifier, next) = (parts.next()?, parts.next()?, parts.next()?);
        let next = url::form_urlencoded::parse(format!("next={next}").as_bytes()).next()?.1.into_owned();
        Some(Self { state: state.to_owned(), verifier: verifier.to_owned(), next: own_path(Some(&next)) })
    }

    fn cookie(&self, state: &AppState) -> Cookie<'static> {
        let mut cookie = cookie(state, format!("{}.{}.{}", self.state, self.verifier, query_value(&self.next)));
        // The crate's type for lengths of time is not at hand, but it reads them.
        cookie.set_max_age(Cookie::parse(format!("age=; Max-Age={LASTS_S}")).ok().and_then(|parsed| parsed.max_age()));
        cookie
    }
}

fn ended(state: &AppState) -> Cookie<'static> {
    let mut cookie = cookie(state, String::new());
    cookie.make_removal();
    cookie
}

fn cookie(state: &AppState, value: String) -> Cookie<'static> {
    // Lax: the browser comes back from another site.
    let cookie = Cookie::build((name(state), value)).http_only(true).same_site(SameSite::Lax).path("/");
    cookie.secure(state.over_tls()).build()
}

/// A browser takes a `__Host-` cookie only over TLS and for this very host.
fn name(state: &AppState) -> &'static str {
    if state.over_tls() { "__Host-plimsoll-github" } else { "plimsoll-github" }
}

/// Without a public address GitHub takes the one that the app is registered with.
fn back_to(state: &AppState) -> Option<String> {
    state.public_url().map(|url| format!("{url}/sign-in/github/callback"))
}

fn app(state: &AppState) -> Result<&App> {
    state.github().ok_or_else(|| AppError::not_found("sign-in by GitHub on this server"))
}

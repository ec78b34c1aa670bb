//! What stands before every handler: finds out who calls, and whether they may.

use std::collections::HashMap;

use axum::RequestExt as _;
use axum::extract::{Path, Request, State};
use axum::http::{Extensions, HeaderMap, Method, StatusCode, header};
use axum::middleware::Next;
use axum::response::{IntoResponse as _, Response};
use plimsoll_domain::ids::{ProjectSlug, RunId};

use super::address;
use super::caller::{Caller, Grant, Scope, WHOLE_SERVER, Who};
use super::routes::Need;
use super::session::{self, Owner};
use super::token::hash;
use super::workflow;
use crate::error::{AppError, Result};
use crate::state::AppState;
use crate::store;
use crate::store::tokens::InUse;

/// A client may name its request; more of the name is not kept.
const MAX_REQUEST_ID: usize = 100;

/// What watches over the server asks often, and from behind the same proxy as everybody.
const UNLIMITED: [&str; 2] = ["/healthz", "/readyz"];

pub(super) async fn check(
    State((state, need)): State<(AppState, Need)>,
    mut request: Request,
    next: Next,
) -> Result<Response> {
    let caller = match need {
        Need::Open | Need::Signed => unknown(&state, request.extensions(), request.headers()),
        _ => caller(&state, request.extensions(), request.headers()).await?,
    };
    let mut response = match admit(&state, &caller, need, &mut request).await {
        Ok(()) => {
            request.extensions_mut().insert(caller.clone());
            next.run(request).await
        }
        Err(refusal) => refusal.into_response(),
    };
    // The page of a failure shows who is signed in.
    response.extensions_mut().insert(caller);
    Ok(response)
}

async fn admit(state: &AppState, caller: &Caller, need: Need, request: &mut Request) -> Result<()> {
    // Who signs the body needs no cookie, and is not slowed down.
    if need != Need::Signed {
        if !UNLIMITED.contains(&request.uri().path()) {
            state.limits().request(caller)?;
        }
        same_site(state, caller, request)?;
    }
    let names = request.extract_parts::<Path<HashMap<String, String>>>().await;
    let names = names.map(|Path(names)| names).map_err(|rejection| AppError::bad_request(rejection.body_text()))?;
    let span = tracing::Span::current();
    span.record("caller", caller.name());
    if let Some(run) = names.get("run").and_then(|run| run.parse::<RunId>().ok()) {
        span.record("run", tracing::field::display(run));
    }
    allow(state, caller, need, &names).await
}

/// By the bearer token, else by the cookie, else nobody. A token that is given and not known is refused, also where none
/// is needed; a cookie that has ended is as good as none, so that one can sign in again.
pub(crate) async fn caller(state: &AppState, extensions: &Extensions, headers: &HeaderMap) -> Result<Caller> {
    let base = unknown(state, extensions, headers);
    let address = base.address;
    if headers.contains_key(header::AUTHORIZATION) || session::is_given(state, headers) {
        state.limits().arrival(address)?;
    }
    let found = look_up(state, headers, base).await?;
    found.ok_or_else(|| state.limits().failure(address, strange()))
}

/// Whoever sent these headers, as they are now, if they may still do what needs the scope for a run's project.
pub(crate) async fn may_still(
    state: &AppState,
    was: &Caller,
    headers: &HeaderMap,
    scope: Scope,
    run: RunId,
) -> Result<Caller> {
    let base = Caller { who: Who::Anonymous, grants: Vec::new(), by_cookie: false, ..was.clone() };
    let caller = look_up(state, headers, base).await?.ok_or_else(strange)?;
    on_run(state, &caller, scope, run).await?;
    Ok(caller)
}

/// Of whom only is known where they are.
fn unknown(state: &AppState, extensions: &Extensions, headers: &HeaderMap) -> Caller {
    let address = address::of(extensions, headers, state.trusted_proxies());
    Caller { address, request_id: request_id(headers), ..Caller::anonymous() }
}

/// `None` for a token that is not known.
async fn look_up(state: &AppState, headers: &HeaderMap, base: Caller) -> Result<Option<Caller>> {
    let Some(given) = headers.get(header::AUTHORIZATION) else {
        return Ok(Some(by_cookie(state, headers, base).await?));
    };
    if headers.get_all(header::AUTHORIZATION).iter().count() > 1 {
        return Err(AppError::bad_request("send one `Authorization` header"));
    }
    let given = given.to_str().ok().and_then(bearer);
    let shown = given.ok_or_else(|| AppError::unauthorized("send `Authorization: Bearer TOKEN`"))?;
    let given = hash(shown);
    if let Some(token) = store::tokens::in_use(state.pool(), &given).await? {
        return Ok(Some(by_token(state, token, base).await?));
    }
    if state.tokens().has(&given) {
        let grants = vec![Grant { scope: Scope::Upload, project: None }];
        let who = Who::Token { id: None, name: "PLIMSOLL_TOKENS".to_owned() };
        return Ok(Some(Caller { who, grants, ..base }));
    }
    if workflow::is_one(shown) {
        let address = base.address;
        let found = workflow::caller(state, shown, base).await;
        return found.map(Some).map_err(|error| match error.status() {
            StatusCode::UNAUTHORIZED => state.limits().failure(address, error),
            _ => error,
        });
    }
    Ok(None)
}

fn strange() -> AppError {
    AppError::unauthorized("this token is not known here, has expired or was revoked")
}

/// What the request is called, by its client or by this server.
pub(crate) fn request_id(headers: &HeaderMap) -> Option<String> {
    let id = headers.get("x-request-id").and_then(|id| id.to_str().ok())?;
    Some(id.chars().take(MAX_REQUEST_ID).collect())
}

async fn by_token(state: &AppState, token: InUse, base: Caller) -> Result<Caller> {
    if token.unnoted {
        store::tokens::note_use(state.pool(), token.id).await?;
    }
    let who = Who::Token { id: Some(token.id), name: token.name };
    Ok(Caller { who, grants: vec![token.grant], ..base })
}

async fn by_cookie(state: &AppState, headers: &HeaderMap, base: Caller) -> Result<Caller> {
    let base = match session::owner(state, headers).await? {
        None => return Ok(base),
        Some(Owner::Token(token)) => by_token(state, token, base).await?,
        Some(Owner::Member { login, grants }) => Caller { who: Who::Member { login }, grants, ..base },
    };
    Ok(Caller { by_cookie: true, ..base })
}

/// A browser sends a cookie along with whatever page made the request: one that changes something must be our own.
/// `Sec-Fetch-Site` says so, and in older browsers `Origin`.
fn same_site(state: &AppState, caller: &Caller, request: &Request) -> Result<()> {
    let safe = matches!(*request.method(), Method::GET | Method::HEAD | Method::OPTIONS);
    let by_token = caller.who != Who::Anonymous && !caller.by_cookie;
    if safe || by_token || is_own(state, request.headers()) {
        return Ok(());
    }
    Err(AppError::new(StatusCode::FORBIDDEN, "this request did not come from a page of this server"))
}

fn is_own(state: &AppState, headers: &HeaderMap) -> bool {
    let text = |name: header::HeaderName| headers.get(name).and_then(|value| value.to_str().ok());
    if let Some(site) = headers.get("sec-fetch-site") {
        return site == "same-origin";
    }
    let Some(origin) = text(header::ORIGIN) else {
        // No browser that sends neither keeps cookies; a program without a token has nothing to lose.
        return !headers.contains_key(header::COOKIE) && !headers.contains_key(header::ORIGIN);
    };
    let Some((_, authority)) = origin.split_once("://") else { return false };
    match state.public_url().and_then(|url| url.parse::<url::Url>().ok()) {
        // Under the public name only over the public scheme: a page on plain HTTP may be anybody's.
        Some(public) if public.authority() == authority => public.origin().ascii_serialization() == origin,
        _ => text(header::HOST) == Some(authority),
    }
}

async fn allow(state: &AppState, caller: &Caller, need: Need, names: &HashMap<String, String>) -> Result<()> {
    let name = |key: &str| names.get(key).map(String::as_str).unwrap_or_default();
    match need {
        Need::Open | Need::Signed | Need::Known | Need::Filtered => Ok(()),
        Need::Server(scope) if caller.may_everywhere(scope) => Ok(()),
        Need::Server(scope) => Err(caller.refusal(scope, WHOLE_SERVER).into()),
        Need::Named(scope) if caller.may_somewhere(scope) => Ok(()),
        // Which one, only the body says, which is not read for somebody who may do it nowhere.
        Need::Named(scope) => Err(caller.refusal(scope, "the project").into()),
        Need::Project(scope) => {
            let project: ProjectSlug = name("project").parse().map_err(|_| no_project(name("project")))?;
            on_project(state, caller, scope, &project).await
        }
        Need::Run(scope) => {
            let run: RunId = name("run").parse().map_err(|e| AppError::bad_request(format!("{e}")))?;
            on_run_of(state, caller, scope, run, names.get("project").map(String::as_str)).await
        }
    }
}

/// Whether the caller has the scope for the project of a run; whether a run exists is as private as its project.
pub async fn on_run(state: &AppState, caller: &Caller, scope: Scope, run: RunId) -> Result<()> {
    on_run_of(state, caller, scope, run, None).await
}

/// The same where the path names the run's project too: under another's name there is no such run, whether that project
/// exists or not.
async fn on_run_of(state: &AppState, caller: &Caller, scope: Scope, run: RunId, under: Option<&str>) -> Result<()> {
    let none = || AppError::not_found(format!("run {run}"));
    let project = store::projects::of_run(state.pool(), run).await?;
    match project.filter(|project| under.is_none_or(|name| name == project.as_str())) {
        Some(project) => on_project(state, caller, scope, &project)
            .await
            .map_err(|error| if error.status() == StatusCode::NOT_FOUND { none() } else { error }),
        None if caller.who == Who::Anonymous && scope > Scope::Read => Err(caller.refusal(scope, "its project").into()),
        None => Err(none()),
    }
}

/// What a caller may not read looks to them as if it did not exist.
pub async fn on_project(state: &AppState, caller: &Caller, scope: Scope, project: &ProjectSlug) -> Result<()> {
    if caller.may(scope, project) {
        return Ok(());
    }
    let public = store::projects::is_public(state.pool(), project).await?.unwrap_or(false);
    match (public || caller.may(Scope::Read, project), scope) {
        (true, Scope::Read) => Ok(()),
        (false, Scope::Read) => Err(no_project(project.as_str())),
        (false, _) if caller.who != Who::Anonymous => Err(no_project(project.as_str())),
        _ => Err(caller.refusal(scope, &format!("project {project}")).into()),
    }
}

fn no_project(name: &str) -> AppError {
    let name: String = name.chars().take(80).collect();
    AppError::not_found(format!("project {name}, or you may not read it"))
}

fn bearer(value: &str) -> Option<&str> {
    let (scheme, token) = value.split_once(' ')?;
    scheme.eq_ignore_ascii_case("bearer").then(|| token.trim()).filter(|token| !token.is_empty())
}

//! Sign-in by a token or by GitHub, and sign-out. A session is a cookie; `access` keeps it.

pub(super) mod github;

use askama::Template;
use axum::Form;
use axum::extract::{Query, State};
use axum::http::{HeaderMap, StatusCode};
use axum::response::{IntoResponse, Redirect, Response};
use axum_extra::extract::CookieJar;
use serde::Deserialize;
use url::Url;

use super::view::{Frame, Here, Look, Page, query_value, render};
use crate::access::session::{self, SignedIn};
use crate::access::{Caller, hash};
use crate::error::Result;
use crate::state::AppState;
use crate::store;

#[derive(Template)]
#[template(path = "sign_in.html")]
struct SignInPage {
    page: Page,
    /// Where to go afterwards.
    next: String,
    /// Leads to GitHub, where that is configured.
    github: Option<String>,
    problem: Option<String>,
}

#[derive(Debug, Deserialize)]
pub(super) struct Wanted {
    next: Option<String>,
}

#[derive(Deserialize)]
pub(super) struct Given {
    token: String,
    next: Option<String>,
}

pub(super) async fn page(State(state): State<AppState>, frame: Frame, Query(wanted): Query<Wanted>) -> Response {
    show(&state, frame, &own_path(wanted.next.as_deref()), None)
}

pub(super) async fn by_token(
    State(state): State<AppState>,
    caller: Caller,
    frame: Frame,
    headers: HeaderMap,
    Form(given): Form<Given>,
) -> Result<Response> {
    let next = own_path(given.next.as_deref());
    let token = hash(given.token.trim());
    match store::tokens::in_use(state.pool(), &token).await? {
        Some(token) => enter(&state, &caller, &headers, SignedIn::Token(token.id), &next).await,
        None => {
            session::failed(&state, &caller, "a token").await?;
            let problem = "This token is not known here, has expired or was revoked. Tokens of the server’s \
                           configuration only upload, and do not sign in.";
            Ok((StatusCode::UNAUTHORIZED, show(&state, frame, &next, Some(problem.to_owned()))).into_response())
        }
    }
}

pub(super) async fn sign_out(State(state): State<AppState>, headers: HeaderMap) -> Result<Response> {
    let cookie = session::end(&state, &headers).await?;
    Ok((CookieJar::new().add(cookie), Redirect::to("/")).into_response())
}

/// Begins a session in place of the one that the browser may have.
async fn enter(state: &AppState, caller: &Caller, headers: &HeaderMap, by: SignedIn, next: &str) -> Result<Response> {
    session::end(state, headers).await?;
    let cookie = session::begin(state, caller, by).await?;
    Ok((CookieJar::new().add(cookie), Redirect::to(next)).into_response())
}

fn show(state: &AppState, frame: Frame, next: &str, problem: Option<String>) -> Response {
    let github = state.github().map(|_| format!("/sign-in/github?next={}", query_value(next)));
    let page = Page::new("Sign in", Look::Plain, frame, Here::SignIn);
    render(&SignInPage { page, next: next.to_owned(), github, problem })
}

/// A path of this server, whatever somebody wrote into a link: never another site's address.
fn own_path(next: Option<&str>) -> String {
    const MAX: usize = 2_000;
    let resolved = next.filter(|next| next.len() <= MAX && next.starts_with('/')).and_then(|next| {
        let here = Url::parse("http://here.invalid/").ok()?;
        let there = here.join(next).ok()?;
        let query = there.query().map(|query| format!("?{query}")).unwrap_or_default();
        let path = format!("{}{query}", there.path());
        // `//` at the start of a path would name a host.
        (there.origin() == here.origin() && !path.starts_with("//")).then_some(path)
    });
    resolved.filter(|path| !path.starts_with("/sign-")).unwrap_or_else(|| "/".to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn one_goes_back_to_this_server_only() {
        assert_eq!(own_path(Some("/a/history?testbed=A10%20x#b")), "/a/history?testbed=A10%20x");
        assert_eq!(own_path(Some("/ä")), "/%C3%A4");
        for elsewhere in [
            "//evil.example/",
            "/\\evil.example/",
            "/\t/evil.example/",
            "https://evil.example/",
            "javascript:alert(1)",
            "evil",
            "",
            "/..//evil.example",
            "/.//evil.example",
            "/sign-out",
            &format!("/{}", "a".repeat(2_000)),
        ] {
            assert_eq!(own_path(Some(elsewhere)), "/", "{elsewhere:?}");
        }
        assert_eq!(own_path(Some("/a\r\nSet-Cookie: x=1")), "/aSet-Cookie:%20x=1");
        assert_eq!(own_path(None), "/");
    }
}

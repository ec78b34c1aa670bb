//! Registers the GitHub App that the server acts as. Whoever reads the server's console may: the page asks for the code
//! that stands there, sends the browser to GitHub with the App's manifest, and takes the App when it comes back.

use askama::Template;
use axum::Form;
use axum::extract::{Query, State};
use axum::http::{HeaderValue, StatusCode, header};
use axum::response::{IntoResponse as _, Response};
use serde::Deserialize;

use super::headers;
use super::view::{Frame, Here, Look, Page, render};
use crate::access::Caller;
use crate::error::{AppError, Result};
use crate::github::manifest::{self, PERMISSIONS};
use crate::github::{Client, Setup};
use crate::state::AppState;
use crate::store::audit::{self, Entry};

#[derive(Template)]
#[template(path = "github_setup.html")]
struct SetupPage {
    page: Page,
    permissions: [(&'static str, &'static str, &'static str); 6],
    problem: Option<String>,
    step: Step,
}

impl SetupPage {
    /// What the App may do.
    fn lists(&self) -> bool {
        matches!(self.step, Step::Ask | Step::Go { .. })
    }
}

enum Step {
    /// For the code.
    Ask,
    /// On to GitHub.
    Go {
        action: String,
        manifest: String,
    },
    Done {
        install: String,
    },
    /// Not here, not now.
    Closed,
}

#[derive(Deserialize)]
pub(super) struct Given {
    code: String,
    organization: Option<String>,
}

#[derive(Deserialize)]
pub(super) struct Back {
    code: Option<String>,
    state: Option<String>,
}

pub(super) async fn page(State(state): State<AppState>, frame: Frame) -> Response {
    match open(&state) {
        Ok(_) => show(frame, StatusCode::OK, Step::Ask, None),
        Err(why) => show(frame, StatusCode::CONFLICT, Step::Closed, Some(why)),
    }
}

pub(super) async fn begin(
    State(state): State<AppState>,
    caller: Caller,
    frame: Frame,
    Form(given): Form<Given>,
) -> Result<Response> {
    let (setup, public_url) = match open(&state) {
        Ok(open) => open,
        Err(why) => return Ok(show(frame, StatusCode::CONFLICT, Step::Closed, Some(why))),
    };
    let Some(trip) = setup.begin(&given.code).map_err(AppError::internal)? else {
        tracing::warn!(address = ?caller.address, "a wrong code for the setup of the GitHub App");
        let refused = AppError::new(StatusCode::FORBIDDEN, "this is not the code on the server's console");
        let refused = state.limits().failure(caller.address, refused);
        if refused.status() != StatusCode::FORBIDDEN {
            return Err(refused);
        }
        let problem = "This is not the code that stands on the server’s console.".to_owned();
        return Ok(show(frame, StatusCode::FORBIDDEN, Step::Ask, Some(problem)));
    };
    let site = state.github_site();
    let organization = given.organization.as_deref().map(str::trim).filter(|name| !name.is_empty());
    let action = manifest::register_url(site, organization, &trip);
    let manifest = manifest::manifest(public_url).to_string();
    let mut response = show(frame, StatusCode::OK, Step::Go { action, manifest }, None);
    // Only here may a form lead to GitHub.
    let policy = headers::with_form_to(&site.url).and_then(|policy| HeaderValue::from_str(&policy).ok());
    let policy = policy.ok_or_else(|| AppError::internal("GitHub's address is none"))?;
    response.headers_mut().insert(header::CONTENT_SECURITY_POLICY, policy);
    Ok(response)
}

pub(super) async fn callback(
    State(state): State<AppState>,
    caller: Caller,
    frame: Frame,
    Query(back): Query<Back>,
) -> Result<Response> {
    let (setup, _) = match open(&state) {
        Ok(open) => open,
        Err(why) => return Ok(show(frame, StatusCode::CONFLICT, Step::Closed, Some(why))),
    };
    let same = back.state.as_deref().is_some_and(|trip| setup.come_back(trip));
    let (true, Some(code)) = (same, back.code) else {
        let refused = AppError::new(StatusCode::BAD_REQUEST, "this setup was not begun here");
        let refused = state.limits().failure(caller.address, refused);
        if refused.status() != StatusCode::BAD_REQUEST {
            return Err(refused);
        }
        let problem = "This setup was not begun here, was finished before, or took more than an hour. Begin again.";
        return Ok(show(frame, StatusCode::BAD_REQUEST, Step::Ask, Some(problem.to_owned())));
    };
    match take(&state, setup, &caller, &code).await {
        Ok(slug) => {
            let install = manifest::install_url(state.github_site(), &slug);
            Ok(show(frame, StatusCode::OK, Step::Done { install }, None))
        }
        Err(why) => {
            tracing::warn!(why, "the GitHub App could not be taken");
            let problem = format!(
                "The App could not be taken: {why}. If GitHub lists it under the account’s developer settings already, \
                 delete it there; then begin again."
            );
            Ok(show(frame, StatusCode::BAD_GATEWAY, Step::Ask, Some(problem)))
        }
    }
}

/// The setup, and where GitHub finds this server; else why it is closed.
fn open(state: &AppState) -> Result<(&Setup, &str), String> {
    if state.app().is_some() {
        return Err("This server acts as a GitHub App already.".to_owned());
    }
    let setup = state.setup().filter(|setup| setup.is_open()).ok_or(
        "The code has expired, or another server on this data directory has registered an App: restart this server.",
    )?;
    let public_url = state.public_url().ok_or(
        "GitHub must know where it finds this server: restart it with --public-url, an address that GitHub can reach.",
    )?;
    Ok((setup, public_url))
}

/// Exchanges the code, writes the App down and acts as it from now on; its name in addresses.
async fn take(state: &AppState, setup: &Setup, caller: &Caller, code: &str) -> Result<String, String> {
    let site = state.github_site();
    let app = manifest::convert(site, code).await?;
    let client = Client::new(app.identity(&site.api_url)).map_err(|error| error.to_string())?;
    app.write(setup.data_dir()).map_err(|error| error.to_string())?;
    state.set_app(client);
    tracing::info!(app_id = app.id, slug = app.slug, "acts as a GitHub App from now on");
    let entry = Entry { address: caller.address, ..Entry::new("console", "github.app").subject(&app.slug) };
    if let Err(error) = audit::write(state.pool(), &entry).await {
        tracing::error!(%error, "the audit log lacks the registration of the GitHub App");
    }
    Ok(app.slug)
}

fn show(frame: Frame, status: StatusCode, step: Step, problem: Option<String>) -> Response {
    let page = Page::new("Set up the GitHub App", Look::Plain, frame, Here::Settings);
    let mut response = (status, render(&SetupPage { page, permissions: PERMISSIONS, problem, step })).into_response();
    response.headers_mut().insert(header::CACHE_CONTROL, HeaderValue::from_static("no-store"));
    response
}

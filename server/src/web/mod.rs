//! The pages. They read like a person asks: the answer first, then the reason, the evidence, and the raw data.
//!
//! Handlers load, views compute what a template shows from domain values, templates lay it out. Nothing here computes
//! a statistic or writes SQL, and no page needs a script: the one there is keeps the page of a run up to date.

mod assets;
pub mod chart_image;
mod compare;
mod failure;
mod frame;
mod github_setup;
pub(crate) mod headers;
mod history;
mod markup;
mod methodology;
mod projects;
mod run;
mod runners;
mod runs;
mod settings;
mod sign_in;
mod snapshot;
mod view;

use axum::Router;
use axum::middleware::from_fn;
use tower_http::catch_panic::CatchPanicLayer;

use self::settings::{audit, project, server};
use crate::access::{Need, Routes, Scope};
use crate::error;
use crate::state::AppState;

pub fn routes(state: &AppState) -> Routes {
    let (admin, read) = (Need::Server(Scope::Admin), Need::Project(Scope::Read));
    let own = Need::Project(Scope::Admin);
    Routes::new(state)
        .get("/", Need::Filtered, projects::page)
        .get("/sign-in", Need::Known, sign_in::page)
        .post("/sign-in", Need::Known, sign_in::by_token)
        .get("/sign-in/github", Need::Known, sign_in::github::begin)
        .get("/sign-in/github/callback", Need::Known, sign_in::github::callback)
        .post("/sign-out", Need::Known, sign_in::sign_out)
        .get("/github/setup", Need::Known, github_setup::page)
        .post("/github/setup", Need::Known, github_setup::begin)
        .get("/github/setup/callback", Need::Known, github_setup::callback)
        .get("/runs", Need::Filtered, runs::page)
        .get("/runs/{run}", Need::Run(Scope::Read), run::redirect)
        .get("/runners", Need::Named(Scope::Read), runners::page)
        .get("/settings/tokens", admin, server::page)
        .post("/settings/tokens", admin, server::create_token)
        .post("/settings/tokens/{token}/revoke", admin, server::revoke_token)
        .post("/settings/members", admin, server::put_member)
        .post("/settings/members/remove", admin, server::remove_member)
        .get("/audit", Need::Named(Scope::Admin), audit::page)
        .get("/methodology", Need::Known, methodology::page)
        .get("/assets/{name}", Need::Open, assets::serve)
        .get("/favicon.ico", Need::Open, assets::favicon)
        .get("/charts/{run}/{chart}", Need::Open, chart_image::serve)
        .get("/{project}", read, history::redirect)
        .get("/{project}/history", read, history::page)
        .get("/{project}/snapshots/{run}", read, snapshot::page)
        .get("/{project}/runs/{run}", Need::Run(Scope::Read), run::page)
        .post("/{project}/runs/{run}/cancel", Need::Run(Scope::Upload), run::cancel)
        .get("/{project}/settings", own, project::page)
        .post("/{project}/settings/visibility", own, project::set_visibility)
        .post("/{project}/settings/policy", own, project::set_policy)
        .post("/{project}/settings/github", own, project::link)
        .post("/{project}/settings/github/unlink", own, project::unlink)
        .post("/{project}/settings/tokens", own, project::create_token)
        .post("/{project}/settings/tokens/{token}/revoke", own, project::revoke_token)
        .post("/{project}/settings/webhooks", own, project::create_webhook)
        .post("/{project}/settings/webhooks/{webhook}/remove", own, project::remove_webhook)
        .get("/{project}/compare", read, compare::redirect)
        .get("/{project}/compare/{pair}", read, compare::page)
}

/// What holds for all pages: a fallback that answers unknown paths with a page (for a browser) or a problem, failures
/// as pages, and the headers.
pub fn framed(router: Router<AppState>) -> Router<AppState> {
    router.fallback(failure::not_found).layer(CatchPanicLayer::custom(error::panicked)).layer(from_fn(failure::pages))
}

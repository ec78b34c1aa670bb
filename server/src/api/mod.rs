//! The JSON API. Its table of routes says what each of them needs.

mod agent;
mod audit;
mod body;
mod github;
mod health;
mod links;
mod live;
pub mod openapi;
mod operation;
mod parts;
mod policy;
mod read;
mod runs;
mod tokens;
mod upload;
mod visibility;
mod webhooks;

use crate::access::{Need, Routes, Scope};
use crate::state::AppState;

pub fn routes(state: &AppState) -> Routes {
    let read = Need::Project(Scope::Read);
    let admin = Need::Project(Scope::Admin);
    let run = Need::Run(Scope::Read);
    let scrapes = if state.open_metrics() { Need::Open } else { Need::Server(Scope::Read) };
    Routes::new(state)
        .get("/healthz", Need::Open, health::alive)
        .get("/readyz", Need::Open, health::ready)
        .get("/metrics", scrapes, operation::metrics)
        .get("/api/v1/doctor", Need::Server(Scope::Admin), operation::doctor)
        .post("/github/webhook", Need::Signed, github::webhook)
        .get("/api/v1/openapi.json", Need::Open, openapi::document)
        .post("/api/v1/snapshots", Need::Named(Scope::Upload), upload::post)
        .put("/api/v1/uploads/{run}", Need::Named(Scope::Upload), parts::begin)
        .patch("/api/v1/uploads/{run}", Need::Named(Scope::Upload), parts::append)
        .post("/api/v1/uploads/{run}/finish", Need::Named(Scope::Upload), parts::finish)
        .get("/api/v1/snapshots/{run}", run, read::snapshot)
        .get("/api/v1/snapshots/{run}/report", run, read::report)
        .get("/api/v1/snapshots/{run}/comparison", run, read::stored_comparison)
        .post("/api/v1/runs", Need::Named(Scope::Upload), runs::create)
        .get("/api/v1/runs", Need::Filtered, runs::list)
        .get("/api/v1/runs/{run}", run, runs::get)
        .get("/api/v1/runs/{run}/events", run, live::events)
        .post("/api/v1/runs/{run}/cancel", Need::Run(Scope::Upload), runs::cancel)
        .get("/api/v1/runners", Need::Named(Scope::Read), runs::runners)
        .get("/api/v1/agent/reach", Need::Named(Scope::Agent), agent::reach)
        .post("/api/v1/agent/claim", Need::Named(Scope::Agent), agent::claim)
        .post("/api/v1/agent/runs/{run}/heartbeat", Need::Run(Scope::Agent), agent::heartbeat)
        .post("/api/v1/agent/runs/{run}/end", Need::Run(Scope::Agent), agent::end)
        .get("/api/v1/comparisons", Need::Filtered, read::comparison)
        .get("/api/v1/projects", Need::Filtered, read::projects)
        .get("/api/v1/projects/{project}", read, read::project)
        .get("/api/v1/projects/{project}/snapshots", read, read::history)
        .get("/api/v1/projects/{project}/pinned-load", read, read::pinned_load)
        .get("/api/v1/projects/{project}/policy", read, policy::get)
        .put("/api/v1/projects/{project}/policy", Need::Project(Scope::Admin), policy::put)
        .get("/api/v1/projects/{project}/webhooks", admin, webhooks::list)
        .post("/api/v1/projects/{project}/webhooks", admin, webhooks::create)
        .delete("/api/v1/projects/{project}/webhooks/{id}", admin, webhooks::remove)
        .get("/api/v1/projects/{project}/github", admin, links::get)
        .put("/api/v1/projects/{project}/github", admin, links::put)
        .delete("/api/v1/projects/{project}/github", admin, links::remove)
        .get("/api/v1/projects/{project}/visibility", read, visibility::get)
        .put("/api/v1/projects/{project}/visibility", admin, visibility::put)
        .get("/api/v1/tokens", Need::Named(Scope::Admin), tokens::list)
        .post("/api/v1/tokens", Need::Named(Scope::Admin), tokens::create)
        .delete("/api/v1/tokens/{id}", Need::Named(Scope::Admin), tokens::revoke)
        .get("/api/v1/audit", Need::Named(Scope::Admin), audit::list)
}

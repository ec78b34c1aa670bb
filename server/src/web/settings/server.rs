//! Settings of the whole server: tokens, and the members who sign in by GitHub.

use askama::Template;
use axum::Form;
use axum::extract::{Path, State};
use axum::response::{IntoResponse as _, Redirect, Response};
use jiff::Timestamp;
use serde::Deserialize;
use uuid::Uuid;

use super::tokens::{self, Row};
use super::{Once, Outcome, filled, grant, members};
use crate::access::{Scope, acts};
use crate::error::{AppError, Result};
use crate::state::AppState;
use crate::store;
use crate::web::view::{Frame, Here, Look, Page, render};

#[derive(Template)]
#[template(path = "settings.html")]
struct Settings {
    page: Page,
    problem: Option<String>,
    once: Option<Once>,
    say: String,
    tokens: Vec<Row>,
    members: Vec<members::Row>,
    members_lead: String,
    projects: Vec<String>,
    scopes: [Scope; 4],
    base: &'static str,
}

#[derive(Debug, Deserialize)]
pub(in crate::web) struct MemberForm {
    login: String,
    scope: Option<String>,
    project: Option<String>,
}

const BASE: &str = "/settings/tokens";

pub(in crate::web) async fn page(State(state): State<AppState>, frame: Frame) -> Result<Response> {
    show(&state, frame, Outcome::default()).await
}

pub(in crate::web) async fn create_token(
    State(state): State<AppState>,
    frame: Frame,
    Form(form): Form<tokens::Form>,
) -> Result<Response> {
    let made = tokens::make(&state, &frame.caller, &form, None).await;
    show(&state, frame, Outcome::of(made)?).await
}

pub(in crate::web) async fn revoke_token(
    State(state): State<AppState>,
    frame: Frame,
    Path(token): Path<String>,
) -> Result<Response> {
    let missing = || AppError::not_found("such token");
    let id: Uuid = token.parse().map_err(|_| missing())?;
    let token = store::tokens::get(state.pool(), id).await?.ok_or_else(missing)?;
    acts::revoke_token(state.pool(), frame.caller.entry("token.revoke"), &token).await?;
    Ok(Redirect::to(BASE).into_response())
}

pub(in crate::web) async fn put_member(
    State(state): State<AppState>,
    frame: Frame,
    Form(form): Form<MemberForm>,
) -> Result<Response> {
    let put = async {
        let grant = grant(form.scope.as_deref().unwrap_or_default(), form.project.as_deref())?;
        let entry = frame.caller.entry("member.set");
        let login = form.login.trim().trim_start_matches('@');
        acts::put_member(state.pool(), entry, login, &grant, state.new_projects()).await?;
        Ok::<_, AppError>(())
    };
    match put.await {
        Ok(()) => Ok(Redirect::to("/settings/tokens#members").into_response()),
        Err(error) => show(&state, frame, Outcome::of(Err(error))?).await,
    }
}

pub(in crate::web) async fn remove_member(
    State(state): State<AppState>,
    frame: Frame,
    Form(form): Form<MemberForm>,
) -> Result<Response> {
    let project = filled(form.project.as_deref()).map(str::parse).transpose();
    let project = project.map_err(|e| AppError::bad_request(format!("project: {e}")))?;
    acts::remove_member(state.pool(), frame.caller.entry("member.remove"), &form.login, project.as_ref()).await?;
    Ok(Redirect::to("/settings/tokens#members").into_response())
}

async fn show(state: &AppState, frame: Frame, outcome: Outcome) -> Result<Response> {
    let now = Timestamp::now();
    let tokens = store::tokens::list(state.pool(), None).await?;
    let members = store::members::list(state.pool(), None).await?;
    let projects = store::projects::list(state.pool(), &frame.caller.readable()).await?;
    let page = render(&Settings {
        page: Page::new("Settings", Look::Plain, frame, Here::Settings),
        problem: outcome.problem.clone(),
        say: tokens::lead(&tokens),
        tokens: tokens.into_iter().map(|token| Row::new(token, BASE, now)).collect(),
        members_lead: members::lead(state, members.len()),
        members: members.into_iter().map(members::Row::from).collect(),
        projects: projects.into_iter().map(|project| project.slug.to_string()).collect(),
        scopes: Scope::ALL,
        base: BASE,
        once: outcome.once,
    });
    Ok(Outcome { once: None, ..outcome }.answer(page))
}

//! Settings of one project: who may read it, the policy of its gate, the repository that it is measured from, its tokens
//! and members, and where its events go.

use askama::Template;
use axum::Form;
use axum::extract::{Path, State};
use axum::response::{IntoResponse as _, Redirect, Response};
use jiff::Timestamp;
use plimsoll_domain::format;
use plimsoll_domain::ids::ProjectSlug;
use serde::Deserialize;
use uuid::Uuid;

use super::tokens::{self, Row};
use super::{Once, Outcome, link, members, policy};
use crate::access::{Scope, acts};
use crate::error::{AppError, Result};
use crate::state::AppState;
use crate::store;
use crate::store::projects::Visibility;
use crate::store::webhooks::Webhook;
use crate::tasks::{self, links, webhooks};
use crate::web::view::{Frame, Here, Look, Page, ago, day, render};

#[derive(Template)]
#[template(path = "project_settings.html")]
struct ProjectSettings {
    page: Page,
    project: ProjectSlug,
    problem: Option<String>,
    once: Option<Once>,
    private: bool,
    policy: policy::Fields,
    link: link::Shown,
    members_lead: String,
    members: Vec<members::Row>,
    /// The caller may change members.
    changes_members: bool,
    tokens_lead: String,
    tokens: Vec<Row>,
    scopes: [Scope; 4],
    base: String,
    /// The form chooses no project.
    others: [String; 0],
    webhooks: Vec<WebhookRow>,
}

struct WebhookRow {
    id: Uuid,
    url: String,
    added: String,
    waiting: String,
    given_up: String,
    delivered: String,
    last_error: Option<String>,
}

#[derive(Debug, Deserialize)]
pub(in crate::web) struct VisibilityForm {
    visibility: Visibility,
}

#[derive(Debug, Deserialize)]
pub(in crate::web) struct WebhookForm {
    url: String,
}

pub(in crate::web) async fn page(
    State(state): State<AppState>,
    frame: Frame,
    Path(project): Path<String>,
) -> Result<Response> {
    let (project, frame) = frame.within(&state, &project).await?;
    show(&state, frame, project, Outcome::default()).await
}

pub(in crate::web) async fn set_visibility(
    State(state): State<AppState>,
    frame: Frame,
    Path(project): Path<String>,
    Form(form): Form<VisibilityForm>,
) -> Result<Response> {
    let (project, frame) = frame.within(&state, &project).await?;
    let entry = frame.caller.entry("project.visibility");
    acts::set_visibility(state.pool(), entry, &project, form.visibility).await?;
    Ok(back(&project, "visibility"))
}

pub(in crate::web) async fn set_policy(
    State(state): State<AppState>,
    frame: Frame,
    Path(project): Path<String>,
    Form(form): Form<policy::Form>,
) -> Result<Response> {
    let (project, frame) = frame.within(&state, &project).await?;
    match form.read() {
        Ok(policy) => {
            tasks::policy::set(&state, &frame.caller, &project, &policy).await?;
            Ok(back(&project, "policy"))
        }
        Err(filled) => {
            let filled = Filled { policy: Some(*filled), ..Filled::default() };
            show_with(&state, frame, project, Outcome::unfit(), filled).await
        }
    }
}

pub(in crate::web) async fn link(
    State(state): State<AppState>,
    frame: Frame,
    Path(project): Path<String>,
    Form(form): Form<link::Form>,
) -> Result<Response> {
    let (project, frame) = frame.within(&state, &project).await?;
    let done = match form.read() {
        Ok(wanted) => links::set(&state, &frame.caller, &project, &wanted).await.map_err(AppError::from),
        Err(unfit) => Err(unfit),
    };
    match done {
        Ok(_) => Ok(back(&project, "github")),
        Err(error) => {
            let filled = Filled { link: Some(form), ..Filled::default() };
            show_with(&state, frame, project, Outcome::of(Err(error))?, filled).await
        }
    }
}

pub(in crate::web) async fn unlink(
    State(state): State<AppState>,
    frame: Frame,
    Path(project): Path<String>,
) -> Result<Response> {
    let (project, frame) = frame.within(&state, &project).await?;
    links::remove(state.pool(), frame.caller.entry(""), &project).await?;
    Ok(back(&project, "github"))
}

pub(in crate::web) async fn create_token(
    State(state): State<AppState>,
    frame: Frame,
    Path(project): Path<String>,
    Form(form): Form<tokens::Form>,
) -> Result<Response> {
    let (project, frame) = frame.within(&state, &project).await?;
    let made = tokens::make(&state, &frame.caller, &form, Some(&project)).await;
    show(&state, frame, project, Outcome::of(made)?).await
}

pub(in crate::web) async fn revoke_token(
    State(state): State<AppState>,
    frame: Frame,
    Path((project, token)): Path<(String, String)>,
) -> Result<Response> {
    let (project, frame) = frame.within(&state, &project).await?;
    let missing = || AppError::not_found(format!("such token of project {project}"));
    let id: Uuid = token.parse().map_err(|_| missing())?;
    let token = store::tokens::get(state.pool(), id).await?.filter(|token| token.project.as_ref() == Some(&project));
    let token = token.ok_or_else(missing)?;
    acts::revoke_token(state.pool(), frame.caller.entry("token.revoke"), &token).await?;
    Ok(back(&project, "tokens"))
}

pub(in crate::web) async fn create_webhook(
    State(state): State<AppState>,
    frame: Frame,
    Path(project): Path<String>,
    Form(form): Form<WebhookForm>,
) -> Result<Response> {
    let (project, frame) = frame.within(&state, &project).await?;
    let made = webhooks::create(&state, &frame.caller, &project, form.url.trim()).await.map(|made| Once {
        heading: format!("Secret of the webhook to {}", made.url),
        secret: made.secret,
        hint: "Copy it now: it is not shown again. What is sent is signed with it.",
    });
    show(&state, frame, project, Outcome::of(made)?).await
}

pub(in crate::web) async fn remove_webhook(
    State(state): State<AppState>,
    frame: Frame,
    Path((project, webhook)): Path<(String, String)>,
) -> Result<Response> {
    let (project, frame) = frame.within(&state, &project).await?;
    let missing = || AppError::not_found(format!("such webhook of project {project}"));
    let id: Uuid = webhook.parse().map_err(|_| missing())?;
    if !webhooks::remove(&state, &frame.caller, &project, id).await? {
        return Err(missing());
    }
    Ok(back(&project, "webhooks"))
}

fn back(project: &ProjectSlug, section: &str) -> Response {
    Redirect::to(&format!("/{project}/settings#{section}")).into_response()
}

async fn show(state: &AppState, frame: Frame, project: ProjectSlug, outcome: Outcome) -> Result<Response> {
    show_with(state, frame, project, outcome, Filled::default()).await
}

/// Forms that did not fit, as they were filled in.
#[derive(Default)]
struct Filled {
    policy: Option<policy::Fields>,
    link: Option<link::Form>,
}

async fn show_with(
    state: &AppState,
    frame: Frame,
    project: ProjectSlug,
    outcome: Outcome,
    filled: Filled,
) -> Result<Response> {
    let now = Timestamp::now();
    let missing = || AppError::not_found(format!("project {project:?}"));
    let policy = store::projects::get(state.pool(), &project).await?.ok_or_else(missing)?.policy;
    let tokens = store::tokens::list(state.pool(), Some(&project)).await?;
    let webhooks = store::webhooks::list(state.pool(), &project).await?;
    let members = store::members::list(state.pool(), Some(&project)).await?;
    let link = link::Shown::of(state, &frame.caller, links::get(state.pool(), &project).await?);
    let base = format!("/{project}/settings/tokens");
    let page = render(&ProjectSettings {
        changes_members: frame.caller.may_everywhere(Scope::Admin),
        private: frame.project.as_ref().is_some_and(|place| place.private),
        page: Page::new(format!("Settings of {project}"), Look::Plain, frame, Here::ProjectSettings),
        problem: outcome.problem.clone(),
        link: match filled.link {
            Some(form) => form.shown(link),
            None => link,
        },
        policy: filled.policy.unwrap_or_else(|| policy::Fields::of(&policy)),
        members_lead: members::lead(state, members.len()),
        members: members.into_iter().map(members::Row::from).collect(),
        tokens_lead: tokens::lead(&tokens),
        tokens: tokens.into_iter().map(|token| Row::new(token, &base, now)).collect(),
        scopes: Scope::ALL,
        others: [],
        webhooks: webhooks.into_iter().map(|webhook| WebhookRow::new(webhook, now)).collect(),
        once: outcome.once,
        project,
        base,
    });
    Ok(Outcome { once: None, ..outcome }.answer(page))
}

impl WebhookRow {
    fn new(webhook: Webhook, now: Timestamp) -> Self {
        Self {
            id: webhook.id,
            url: webhook.url,
            added: format!("{} by {}", day(webhook.created_at), webhook.created_by),
            waiting: format::count(webhook.waiting.unsigned_abs()),
            given_up: format::count(webhook.given_up.unsigned_abs()),
            delivered: webhook.last_delivered_at.map_or_else(|| "nothing yet".to_owned(), |at| ago(at, now)),
            last_error: webhook.last_error,
        }
    }
}

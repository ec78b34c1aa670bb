//! The audit log: what privileged callers did, the newest first.

use askama::Template;
use axum::extract::{Query, State};
use axum::response::Response;
use plimsoll_domain::ids::ProjectSlug;
use serde::Deserialize;
use serde_json::Value;

use super::filled;
use crate::access::Scope;
use crate::error::{AppError, Result};
use crate::state::AppState;
use crate::store;
use crate::store::audit::Recorded;
use crate::web::view::{Frame, Here, Look, Page, minute, render};

#[derive(Debug, Deserialize)]
pub(in crate::web) struct Wanted {
    project: Option<String>,
    before: Option<i64>,
}

#[derive(Template)]
#[template(path = "audit.html")]
struct Audit {
    page: Page,
    say: String,
    /// The projects to choose from, and whether all together may be seen.
    projects: Vec<String>,
    all: bool,
    chosen: Option<String>,
    rows: Vec<Row>,
    older: Option<String>,
}

struct Row {
    at: String,
    actor: String,
    action: String,
    project: Option<String>,
    subject: String,
    detail: String,
    address: String,
    request_id: Option<String>,
}

const PAGE: u32 = 100;

/// All of it for administrators of the server, else that of the projects that one administers.
pub(in crate::web) async fn page(
    State(state): State<AppState>,
    frame: Frame,
    Query(wanted): Query<Wanted>,
) -> Result<Response> {
    let all = frame.caller.may_everywhere(Scope::Admin);
    let projects: Vec<ProjectSlug> = if all {
        store::projects::list(state.pool(), &frame.caller.readable())
            .await?
            .into_iter()
            .map(|project| project.slug)
            .collect()
    } else {
        let admin = frame.caller.grants.iter().filter(|grant| grant.scope >= Scope::Admin);
        admin.filter_map(|grant| grant.project.clone()).collect()
    };
    let chosen: Option<ProjectSlug> = match filled(wanted.project.as_deref()) {
        Some(slug) => Some(slug.parse().map_err(|e| AppError::bad_request(format!("project: {e}")))?),
        None if all => None,
        None => projects.first().cloned(),
    };
    if let Some(project) = &chosen {
        frame.caller.require(Scope::Admin, project)?;
    }
    let recorded = store::audit::list(state.pool(), chosen.as_ref(), wanted.before, PAGE).await?;
    let more = (recorded.len() == PAGE as usize).then(|| recorded.last()).flatten();
    let of = chosen.as_ref().map(|project| format!("project={project}&")).unwrap_or_default();
    Ok(render(&Audit {
        page: Page::new("Audit log", Look::Plain, frame, Here::Settings),
        say: say(&recorded, chosen.as_ref(), wanted.before.is_some()),
        older: more.map(|last| format!("/audit?{of}before={}", last.id)),
        projects: projects.into_iter().map(|project| project.to_string()).collect(),
        all,
        chosen: chosen.map(|project| project.to_string()),
        rows: recorded.into_iter().map(Row::from).collect(),
    }))
}

fn say(recorded: &[Recorded], chosen: Option<&ProjectSlug>, older: bool) -> String {
    let of = chosen.map_or_else(|| "on this server".to_owned(), |project| format!("in {project}"));
    match recorded.first() {
        None => format!("Nothing {}was recorded {of}.", if older { "older " } else { "" }),
        Some(last) if older => format!("What was done {of} up to {}.", minute(last.at)),
        Some(last) => {
            format!(
                "The last privileged act {of} was {} by {}, {}.",
                last.entry.action,
                last.entry.actor,
                minute(last.at)
            )
        }
    }
}

impl From<Recorded> for Row {
    fn from(recorded: Recorded) -> Self {
        let entry = recorded.entry;
        Self {
            at: recorded.at.strftime("%-d %b %Y, %H:%M:%S").to_string(),
            actor: entry.actor,
            action: entry.action,
            project: entry.project.map(|project| project.to_string()),
            subject: entry.subject.unwrap_or_default(),
            detail: told(&entry.detail),
            address: entry.address.map(|address| address.to_string()).unwrap_or_default(),
            request_id: entry.request_id,
        }
    }
}

/// `scope: read, expires_at: 2026-…`; what is null is left out.
fn told(detail: &Value) -> String {
    let Some(fields) = detail.as_object() else { return detail.to_string() };
    let text = |value: &Value| value.as_str().map_or_else(|| value.to_string(), ToOwned::to_owned);
    // By name: in which order an object keeps its fields is not its own affair.
    let mut known: Vec<_> = fields.iter().filter(|(_, value)| !value.is_null()).collect();
    known.sort_by_key(|(name, _)| *name);
    known.into_iter().map(|(name, value)| format!("{name}: {}", text(value))).collect::<Vec<_>>().join(", ")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn details_are_told_in_a_line() {
        let detail = serde_json::json!({ "scope": "read", "expires_at": null, "n": 3, "deep": { "a": [1] } });
        assert_eq!(told(&detail), "deep: {\"a\":[1]}, n: 3, scope: read");
        assert_eq!(told(&serde_json::json!({})), "");
    }
}

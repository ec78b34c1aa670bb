//! Things as GitHub writes them, in answers and in events.

use serde_json::{Value, json};

use super::graph::Change;
use super::model::{APP, CheckRun, Comment, Installation, Model, Pull, Repository, SLUG};

pub(super) fn app(model: &Model) -> Value {
    json!({ "id": APP, "slug": SLUG, "name": "Plimsoll", "permissions": model.permissions,
        "events": ["check_run", "push"], "owner": { "login": "octo", "type": "Organization" } })
}

pub(super) fn installation(id: i64, installation: &Installation) -> Value {
    json!({ "id": id, "app_id": APP, "app_slug": SLUG, "target_type": "Organization",
        "account": { "login": installation.account, "type": "Organization" },
        "suspended_at": installation.suspended.then_some("2026-01-01T00:00:00Z") })
}

pub(super) fn repository(repository: &Repository) -> Value {
    let (owner, name) = repository.full_name.split_once('/').expect("owner/name");
    json!({ "id": repository.id, "name": name, "full_name": repository.full_name, "private": repository.private,
        "owner": { "login": owner, "type": "Organization" }, "default_branch": repository.default_branch,
        "html_url": format!("https://github.example/{}", repository.full_name), "fork": false })
}

pub(super) fn user(login: Option<&str>) -> Value {
    match login {
        Some(login) => {
            let kind = if login.ends_with("[bot]") { "Bot" } else { "User" };
            json!({ "login": login, "id": 1, "type": kind })
        }
        None => Value::Null,
    }
}

pub(super) fn pull(at: &Repository, pull: &Pull) -> Value {
    let head_repository = match pull.head_repository {
        Some(id) if id == at.id => repository(at),
        Some(id) => json!({ "id": id, "name": "fork", "full_name": "stranger/fork", "private": false }),
        None => Value::Null,
    };
    json!({
        "id": pull.number + 1_000, "number": pull.number, "title": pull.title, "draft": pull.draft,
        "state": if pull.open { "open" } else { "closed" }, "merged": pull.merged,
        "user": user(pull.author.as_deref()), "updated_at": pull.updated_at,
        "head": { "sha": pull.head, "ref": pull.head_ref, "repo": head_repository },
        "base": { "sha": at.branches.get(&pull.base_ref), "ref": pull.base_ref, "repo": repository(at) },
    })
}

pub(super) fn file(change: &Change) -> Value {
    let mut file = json!({ "sha": "0".repeat(40), "filename": change.path, "status": change.status, "patch": "@@ @@" });
    if let Some(before) = &change.before {
        file["previous_filename"] = json!(before);
    }
    file
}

pub(super) fn check(check: &CheckRun) -> Value {
    json!({
        "id": check.id, "name": check.name, "head_sha": check.head_sha, "external_id": check.external_id,
        "status": check.status, "conclusion": check.conclusion, "details_url": check.details_url,
        "output": check.output, "app": { "id": check.app_id, "slug": SLUG }, "pull_requests": [],
        "check_suite": { "id": 1 },
    })
}

pub(super) fn comment(comment: &Comment) -> Value {
    json!({
        "id": comment.id, "body": comment.body, "user": user(comment.login.as_deref()),
        "created_at": comment.created_at, "updated_at": comment.created_at,
        "performed_via_github_app": comment.app_id.map(|id| json!({ "id": id, "slug": SLUG })),
    })
}

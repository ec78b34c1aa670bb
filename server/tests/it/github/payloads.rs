//! What GitHub sends, in small: the fields that are used, some beside them, and the odd values that occur.

use serde_json::{Value, json};

pub(crate) const HEAD: &str = "1111111111111111111111111111111111111111";
pub(crate) const BASE: &str = "2222222222222222222222222222222222222222";
pub(crate) const TAG_OBJECT: &str = "3333333333333333333333333333333333333333";
pub(crate) const NONE: &str = "0000000000000000000000000000000000000000";
/// Beyond what a double can hold.
pub(crate) const REPOSITORY: i64 = 9_007_199_254_740_995;
pub(crate) const INSTALLATION: i64 = 77;
pub(crate) const APP: i64 = 4711;

pub(crate) fn repository() -> Value {
    json!({
        "id": REPOSITORY, "node_id": "R_x", "name": "service", "full_name": "octo/service", "private": true,
        "owner": user("octo"), "default_branch": "main", "fork": false, "description": null, "license": null,
    })
}

/// Of installations, which know less of it.
pub(crate) fn brief_repository(id: i64, full_name: &str) -> Value {
    json!({ "id": id, "node_id": "R_y", "name": "x", "full_name": full_name, "private": false })
}

pub(crate) fn user(login: &str) -> Value {
    let kind = if login.ends_with("[bot]") { "Bot" } else { "User" };
    json!({ "login": login, "id": 9, "type": kind, "site_admin": false })
}

/// A payload about the repository, through the App.
pub(crate) fn about(own: Value) -> Value {
    let mut payload = json!({
        "repository": repository(), "sender": user("mona"), "organization": { "login": "octo", "id": 5 },
        "installation": { "id": INSTALLATION, "node_id": "I_x" },
    });
    with(&mut payload, own);
    payload
}

/// Puts keys in, over those that are there.
pub(crate) fn with(payload: &mut Value, own: Value) {
    let (Value::Object(payload), Value::Object(own)) = (payload, own) else { unreachable!("objects") };
    payload.extend(own);
}

pub(crate) fn push(reference: &str, before: &str, after: &str, head_commit: Option<&str>) -> Value {
    let head_commit =
        head_commit.map(|id| json!({ "id": id, "tree_id": BASE, "message": "A change", "distinct": true }));
    about(json!({
        "ref": reference, "before": before, "after": after, "created": before == NONE, "deleted": after == NONE,
        "forced": false, "base_ref": null, "compare": "https://example.com/compare", "commits": [],
        "head_commit": head_commit, "pusher": { "name": "mona", "email": null },
    }))
}

/// `create` and `delete`.
pub(crate) fn reference(name: &str, kind: &str) -> Value {
    about(json!({
        "ref": name, "ref_type": kind, "full_ref": "refs/x", "master_branch": "main", "description": null,
        "pusher_type": "user",
    }))
}

pub(crate) fn release(action: &str, tag: &str, draft: bool) -> Value {
    about(json!({
        "action": action,
        "release": {
            "id": 3, "tag_name": tag, "target_commitish": "main", "name": null, "body": null, "draft": draft,
            "prerelease": false, "author": user("mona"), "assets": [], "published_at": null,
        },
    }))
}

pub(crate) fn pull_request(action: &str, pull: Value) -> Value {
    let mut whole = json!({
        "id": 5, "number": 7, "state": "open", "locked": false, "title": "Faster", "body": null, "user": user("mona"),
        "head": { "label": "octo:faster", "ref": "faster", "sha": HEAD, "user": user("octo"), "repo": repository() },
        "base": { "label": "octo:main", "ref": "main", "sha": BASE, "user": user("octo"), "repo": repository() },
        "draft": false, "merged": false, "mergeable": null, "merge_commit_sha": null, "rebaseable": null,
        "created_at": "2026-03-01T09:00:00Z", "updated_at": "2026-03-01T10:00:00Z", "closed_at": null,
        "author_association": "MEMBER", "auto_merge": null, "labels": [], "commits": 1, "changed_files": 1,
    });
    with(&mut whole, pull);
    about(json!({ "action": action, "number": 7, "pull_request": whole }))
}

pub(crate) fn merge_group(action: &str) -> Value {
    about(json!({
        "action": action, "reason": "merged",
        "merge_group": {
            "head_sha": HEAD, "head_ref": format!("refs/heads/gh-readonly-queue/main/pr-7-{BASE}"),
            "base_sha": BASE, "base_ref": "refs/heads/main",
            // GitHub's own example has another commit here.
            "head_commit": { "id": TAG_OBJECT, "tree_id": BASE, "message": "Merge", "author": {} },
        },
    }))
}

pub(crate) fn check_run(action: &str, external_id: Value, pull_requests: Value) -> Value {
    about(json!({
        "action": action,
        "check_run": {
            "id": REPOSITORY + 2, "name": "plimsoll/demo", "head_sha": HEAD, "external_id": external_id,
            "status": "completed", "conclusion": "failure", "started_at": "2026-03-01T10:00:00Z", "completed_at": null,
            "output": { "title": null, "summary": null, "text": null, "annotations_count": 0 },
            "check_suite": { "id": 6, "head_branch": null, "head_sha": HEAD, "pull_requests": null, "app": { "id": APP } },
            "app": { "id": APP, "slug": "plimsoll", "owner": user("octo") }, "pull_requests": pull_requests,
        },
    }))
}

pub(crate) fn check_suite(action: &str, app: Value) -> Value {
    about(json!({
        "action": action,
        "check_suite": {
            "id": 6, "head_branch": null, "head_sha": HEAD, "before": null, "after": null, "status": null,
            "conclusion": null, "pull_requests": null, "app": app, "head_commit": null,
        },
    }))
}

pub(crate) fn comment(action: &str, author: Value, app: Value, is_pull: bool) -> Value {
    let mut issue = json!({
        "id": 1, "number": 7, "title": "| `x` @team <script> ${{ secrets }}", "user": null, "state": "open",
        "body": null, "labels": [],
    });
    if is_pull {
        with(&mut issue, json!({ "pull_request": { "url": "https://example.com/pulls/7", "merged_at": null } }));
    }
    about(json!({
        "action": action, "issue": issue,
        "comment": {
            "id": REPOSITORY + 4, "user": author, "body": "/plimsoll run", "created_at": "2026-03-01T10:00:00Z",
            "updated_at": "2026-03-01T10:00:00Z", "author_association": "NONE", "performed_via_github_app": app,
        },
    }))
}

/// `repositories` null leaves the key out.
pub(crate) fn installation(action: &str, repositories: Value) -> Value {
    let mut payload = json!({
        "action": action, "sender": user("mona"),
        "installation": {
            "id": INSTALLATION, "account": user("octo"), "repository_selection": "selected", "app_id": APP,
            "suspended_by": null, "suspended_at": null, "permissions": { "checks": "write" }, "events": ["push"],
        },
    });
    if !repositories.is_null() {
        with(&mut payload, json!({ "repositories": repositories }));
    }
    payload
}

pub(crate) fn reach(added: Value, removed: Value) -> Value {
    let mut payload = installation("added", Value::Null);
    with(
        &mut payload,
        json!({ "repository_selection": "selected", "repositories_added": added, "repositories_removed": removed,
                "requester": null }),
    );
    payload
}

pub(crate) fn ping(of_repository: bool) -> Value {
    let mut payload = json!({
        "zen": "Keep it logically awesome.", "hook_id": 1,
        "hook": { "type": "App", "id": 1, "app_id": APP, "active": true, "config": { "content_type": "json" } },
    });
    if of_repository {
        with(&mut payload, json!({ "repository": repository(), "sender": user("mona") }));
    }
    payload
}

//! What is asked about a repository.

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use serde_json::{Value, json};

use super::model::{Model, Repository};
use super::route::{Handled, Incoming, Reply};
use super::shape;

pub(super) fn installations(model: &Model, incoming: &Incoming<'_>) -> Handled {
    let all = model.installations.iter().map(|(id, one)| shape::installation(*id, one));
    Ok(incoming.list(all.collect()))
}

pub(super) fn repositories(model: &Model, installation: i64, incoming: &Incoming<'_>) -> Handled {
    let known = model.installations.get(&installation).ok_or_else(Reply::missing)?;
    let all = known.repositories.iter().map(|id| shape::repository(model.at(*id)));
    Ok(incoming.page(all.collect(), |total, shown| json!({ "total_count": total, "repositories": shown })))
}

pub(super) fn pulls(at: &Repository, incoming: &Incoming<'_>) -> Handled {
    let state = incoming.query.get("state").map_or("open", String::as_str);
    let mut found: Vec<_> = at.pulls.values().filter(|pull| state == "all" || pull.open == (state == "open")).collect();
    found.sort_by_key(|pull| std::cmp::Reverse((pull.updated_at, pull.number)));
    Ok(incoming.list(found.into_iter().map(|pull| shape::pull(at, pull)).collect()))
}

pub(super) fn pull(at: &Repository, number: i64) -> Handled {
    Ok(Reply::of(200, shape::pull(at, at.pulls.get(&number).ok_or_else(Reply::missing)?)))
}

/// GitHub lists no more.
const MOST_FILES: usize = 3_000;

pub(super) fn pull_files(at: &Repository, number: i64, incoming: &Incoming<'_>) -> Handled {
    let pull = at.pulls.get(&number).ok_or_else(Reply::missing)?;
    let base = at.graph.merge_base(&at.branches[&pull.base_ref], &pull.head).ok_or_else(Reply::missing)?;
    let files = at.graph.changes(&base, &pull.head);
    Ok(incoming.list(files.iter().take(MOST_FILES).map(shape::file).collect()))
}

pub(super) fn compare(at: &Repository, both: &str) -> Handled {
    let (base, head) = both.split_once("...").ok_or_else(Reply::missing)?;
    let base = at.resolve(base).ok_or_else(Reply::missing)?;
    let head = at.resolve(head).ok_or_else(Reply::missing)?;
    let merge_base = at.graph.merge_base(&base, &head).ok_or_else(Reply::missing)?;
    let files = at.graph.changes(&merge_base, &head);
    let ahead = at.graph.ahead(&head, &base);
    Ok(Reply::of(
        200,
        json!({
            "merge_base_commit": { "sha": merge_base }, "base_commit": { "sha": base }, "ahead_by": ahead,
            "behind_by": at.graph.ahead(&base, &head), "total_commits": ahead, "commits": [],
            "files": files.iter().take(300).map(shape::file).collect::<Vec<_>>(),
        }),
    ))
}

pub(super) fn tag_ref(at: &Repository, tag: &str) -> Handled {
    let object = at.tags.get(tag).ok_or_else(Reply::missing)?;
    Ok(Reply::of(200, json!({ "ref": format!("refs/tags/{tag}"), "object": at.object(object) })))
}

pub(super) fn tag_object(at: &Repository, sha: &str) -> Handled {
    let target = at.tag_objects.get(sha).ok_or_else(Reply::missing)?;
    Ok(Reply::of(200, json!({ "sha": sha, "object": at.object(target) })))
}

pub(super) fn tags(at: &Repository, incoming: &Incoming<'_>) -> Handled {
    let all = at.tags.keys().rev().filter_map(|name| {
        let commit = at.resolve(name)?;
        Some(json!({ "name": name, "commit": { "sha": commit } }))
    });
    Ok(incoming.list(all.collect()))
}

pub(super) fn branch(at: &Repository, name: &str) -> Handled {
    let head = at.branches.get(name).ok_or_else(Reply::missing)?;
    let required = at.protection.get(name);
    let mut branch = json!({ "name": name, "commit": { "sha": head }, "protected": required.is_some() });
    if let Some(required) = required {
        let names: Vec<&String> = required.iter().map(|(name, _)| name).collect();
        // Without an App it is null here, and -1 in other places.
        let checks: Vec<Value> = required.iter().map(|(name, app)| json!({ "context": name, "app_id": app })).collect();
        branch["protection"] = json!({ "enabled": true, "required_status_checks":
            { "enforcement_level": "non_admins", "contexts": names, "checks": checks } });
    }
    Ok(Reply::of(200, branch))
}

pub(super) fn rules(at: &Repository, branch: &str, incoming: &Incoming<'_>) -> Handled {
    let checks = at.rulesets.get(branch).into_iter().map(|required| {
        let checks = required.iter().map(|(name, app)| match app {
            Some(app) => json!({ "context": name, "integration_id": app }),
            None => json!({ "context": name }),
        });
        json!({ "type": "required_status_checks", "ruleset_id": 1, "parameters":
            { "required_status_checks": checks.collect::<Vec<_>>(), "strict_required_status_checks_policy": false } })
    });
    Ok(incoming.list([json!({ "type": "deletion", "ruleset_id": 1 })].into_iter().chain(checks).collect()))
}

/// Beyond this GitHub leaves the content out.
const MAX_CONTENT: usize = 1 << 20;

pub(super) fn contents(at: &Repository, path: &str, incoming: &Incoming<'_>) -> Handled {
    let reference = incoming.query.get("ref").unwrap_or(&at.default_branch);
    let unknown = || Reply::told(404, &format!("No commit found for the ref {reference}"));
    let tree = at.graph.tree(&at.resolve(reference).ok_or_else(unknown)?);
    if let Some(text) = tree.get(path) {
        let whole = text.len() <= MAX_CONTENT;
        let encoded = STANDARD.encode(if whole { text } else { "" });
        let lines: Vec<&str> =
            encoded.as_bytes().chunks(60).filter_map(|line| std::str::from_utf8(line).ok()).collect();
        return Ok(Reply::of(
            200,
            json!({ "type": "file", "path": path, "size": text.len(), "content": lines.join("\n") + "\n",
                "encoding": if whole { "base64" } else { "none" } }),
        ));
    }
    let inside = format!("{path}/");
    let entries: Vec<Value> = tree
        .keys()
        .filter(|file| path.is_empty() || file.starts_with(&inside))
        .map(|file| json!({ "type": "file", "path": file, "size": tree[file].len() }))
        .collect();
    if entries.is_empty() { Err(Reply::missing()) } else { Ok(Reply::of(200, Value::Array(entries))) }
}

pub(super) fn permission(model: &Model, id: i64, login: &str) -> Handled {
    if model.unknown_logins.contains(login) {
        return Err(Reply::missing());
    }
    let at = model.at(id);
    let public = if at.private { "none" } else { "read" };
    let role = at.roles.get(login).map_or(public, String::as_str);
    let permission = match role {
        "maintain" => "write",
        "triage" => "read",
        other => other,
    };
    Ok(Reply::of(200, json!({ "permission": permission, "role_name": role, "user": shape::user(Some(login)) })))
}

impl Repository {
    /// The commit of a branch, a tag or (the start of) a name.
    pub(super) fn resolve(&self, reference: &str) -> Option<String> {
        let mut sha = self.branches.get(reference).or_else(|| self.tags.get(reference)).cloned();
        while let Some(target) = sha.as_ref().and_then(|sha| self.tag_objects.get(sha)) {
            sha = Some(target.clone());
        }
        sha.or_else(|| self.graph.whole(reference).map(ToOwned::to_owned))
    }

    fn object(&self, sha: &str) -> Value {
        let kind = if self.tag_objects.contains_key(sha) { "tag" } else { "commit" };
        json!({ "sha": sha, "type": kind })
    }
}

//! Deliveries as GitHub makes them of what is in the model: the event's name and its payload.

use hmac::{Hmac, KeyInit as _, Mac as _};
use serde_json::{Value, json};
use sha2::Sha256;

use super::model::{APP, Model};
use super::{WEBHOOK_SECRET, shape};

/// What comes in `X-GitHub-Event`, and the body.
pub(crate) type Delivery = (&'static str, Value);

/// For `X-Hub-Signature-256`.
pub(crate) fn signature(body: &[u8]) -> String {
    let mut mac = Hmac::<Sha256>::new_from_slice(WEBHOOK_SECRET.as_bytes()).expect("any length");
    mac.update(body);
    let digits = mac.finalize().into_bytes().iter().map(|byte| format!("{byte:02x}")).collect::<String>();
    format!("sha256={digits}")
}

const NOTHING: &str = "0000000000000000000000000000000000000000";

impl Model {
    /// A push to a branch, as it stands now.
    pub(crate) fn push_event(&self, repository: i64, branch: &str, before: Option<&str>) -> Delivery {
        let head = &self.repositories[&repository].branches[branch];
        let mut payload = self.around(repository, "octocat");
        payload["ref"] = json!(format!("refs/heads/{branch}"));
        payload["before"] = json!(before.unwrap_or(NOTHING));
        payload["after"] = json!(head);
        payload["created"] = json!(before.is_none());
        payload["deleted"] = json!(false);
        payload["forced"] = json!(false);
        payload["head_commit"] = json!({ "id": head });
        ("push", payload)
    }

    /// A tag is pushed: `after` is the tag object if it is annotated.
    pub(crate) fn tag_event(&self, repository: i64, tag: &str) -> Delivery {
        let at = &self.repositories[&repository];
        let mut payload = self.around(repository, "octocat");
        payload["ref"] = json!(format!("refs/tags/{tag}"));
        payload["before"] = json!(NOTHING);
        payload["after"] = json!(at.tags[tag]);
        payload["created"] = json!(true);
        payload["deleted"] = json!(false);
        payload["forced"] = json!(false);
        payload["head_commit"] = json!({ "id": at.resolve(tag) });
        ("push", payload)
    }

    /// The same tag once more, as `create`.
    pub(crate) fn create_event(&self, repository: i64, tag: &str) -> Delivery {
        let mut payload = self.around(repository, "octocat");
        payload["ref"] = json!(tag);
        payload["ref_type"] = json!("tag");
        payload["master_branch"] = json!(self.repositories[&repository].default_branch);
        ("create", payload)
    }

    /// And as `release`, with this action.
    pub(crate) fn release_event(&self, repository: i64, tag: &str, action: &str, draft: bool) -> Delivery {
        let mut payload = self.around(repository, "octocat");
        payload["action"] = json!(action);
        payload["release"] = json!({ "id": 1, "tag_name": tag, "draft": draft, "prerelease": false,
            "target_commitish": self.repositories[&repository].default_branch });
        ("release", payload)
    }

    pub(crate) fn pull_event(&self, repository: i64, number: i64, action: &str) -> Delivery {
        let at = &self.repositories[&repository];
        let mut payload = self.around(repository, at.pulls[&number].author.as_deref().unwrap_or("ghost"));
        payload["action"] = json!(action);
        payload["number"] = json!(number);
        payload["pull_request"] = shape::pull(at, &at.pulls[&number]);
        ("pull_request", payload)
    }

    /// The merge queue asks (`checks_requested`) or asks no more (`destroyed`).
    pub(crate) fn merge_group_event(&self, repository: i64, number: i64, head: &str, action: &str) -> Delivery {
        let at = &self.repositories[&repository];
        let base = &at.branches[&at.default_branch];
        let mut payload = self.around(repository, "github-merge-queue[bot]");
        payload["action"] = json!(action);
        payload["merge_group"] = json!({
            "head_sha": head, "head_ref": format!("refs/heads/gh-readonly-queue/{}/pr-{number}-{base}", at.default_branch),
            "base_sha": base, "base_ref": format!("refs/heads/{}", at.default_branch), "head_commit": { "id": head },
        });
        ("merge_group", payload)
    }

    /// Somebody presses "Re-run" (`None`), or a button of ours.
    pub(crate) fn check_run_event(&self, repository: i64, check: i64, button: Option<&str>, by: &str) -> Delivery {
        let at = &self.repositories[&repository];
        let mut payload = self.around(repository, by);
        payload["action"] = json!(if button.is_some() { "requested_action" } else { "rerequested" });
        payload["check_run"] = shape::check(&at.checks[&check]);
        if let Some(identifier) = button {
            payload["requested_action"] = json!({ "identifier": identifier });
        }
        ("check_run", payload)
    }

    /// Somebody presses "Re-run all checks".
    pub(crate) fn check_suite_event(&self, repository: i64, head: &str, by: &str) -> Delivery {
        let mut payload = self.around(repository, by);
        payload["action"] = json!("rerequested");
        payload["check_suite"] =
            json!({ "id": 1, "head_sha": head, "head_branch": null, "app": { "id": APP }, "pull_requests": [] });
        ("check_suite", payload)
    }

    pub(crate) fn comment_event(&self, repository: i64, comment: i64) -> Delivery {
        let at = &self.repositories[&repository];
        let comment = &at.comments[&comment];
        let mut payload = self.around(repository, comment.login.as_deref().unwrap_or("ghost"));
        payload["action"] = json!("created");
        payload["issue"] = json!({ "number": comment.pull, "pull_request": { "url": "https://github.example" } });
        payload["comment"] = shape::comment(comment);
        ("issue_comment", payload)
    }

    /// `created`, `deleted`, `suspend` or `unsuspend`.
    pub(crate) fn installation_event(&self, installation: i64, action: &str) -> Delivery {
        let known = &self.installations[&installation];
        let repositories: Vec<Value> = known.repositories.iter().map(|id| self.listed(*id)).collect();
        let payload = json!({ "action": action, "installation": shape::installation(installation, known),
            "repositories": repositories, "sender": shape::user(Some("octocat")) });
        ("installation", payload)
    }

    /// As events about installations list a repository.
    fn listed(&self, repository: i64) -> Value {
        let at = &self.repositories[&repository];
        json!({ "id": at.id, "name": at.full_name.split('/').next_back(), "full_name": at.full_name,
            "private": at.private })
    }

    fn around(&self, repository: i64, sender: &str) -> Value {
        json!({ "repository": shape::repository(&self.repositories[&repository]),
            "installation": { "id": self.installation_of(repository) }, "sender": shape::user(Some(sender)) })
    }
}

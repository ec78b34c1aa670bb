//! From the bytes of a delivery to an event.

use serde::Deserialize;
use serde::de::DeserializeOwned;

use super::{Event, checks, places, pulls, refs, wire};

/// A payload that has not the shape which its event's name promises.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{0}")]
pub struct Unreadable(String);

/// Of what is wrong with a payload.
const MAX_REASON: usize = 200;

/// The event, by its name in `X-GitHub-Event`. Never fails because of what is not used.
pub fn read(event: &str, body: &[u8]) -> Result<Event, Unreadable> {
    match event {
        "push" => refs::push(body),
        "create" => refs::create(body),
        "delete" => refs::delete(body),
        "release" => refs::release(body),
        "pull_request" => pulls::pull_request(body),
        "merge_group" => pulls::merge_group(body),
        "issue_comment" => pulls::issue_comment(body),
        "check_run" => checks::check_run(body),
        "check_suite" => checks::check_suite(body),
        "installation" => places::installation(body),
        "installation_repositories" => places::installation_repositories(body),
        "repository" => places::repository(body),
        "ping" => Ok(Event::Ignored("ping")),
        "status" => Ok(Event::Ignored("a commit status of others")),
        _ => Ok(Event::Ignored("an event that is not used")),
    }
}

/// What deliveries are about: those of one lane are handled one after the other, in the order in which they came.
/// `None` when it is about nothing that is known.
pub fn lane(body: &[u8]) -> Option<String> {
    #[derive(Deserialize)]
    struct About {
        repository: Option<wire::Id>,
        installation: Option<wire::Id>,
    }
    let about: About = serde_json::from_slice(body).ok()?;
    let repository = about.repository.map(|repository| format!("repository {}", repository.id));
    repository.or_else(|| about.installation.map(|installation| format!("installation {}", installation.id)))
}

pub(super) fn json<T: DeserializeOwned>(body: &[u8]) -> Result<T, Unreadable> {
    serde_json::from_slice(body).map_err(|error| Unreadable(reason(&error.to_string())))
}

/// Without what the payload says: serde repeats texts between quotation marks.
fn reason(text: &str) -> String {
    let pieces = text.split('"').step_by(2).collect::<Vec<_>>().join("…");
    pieces.chars().take(MAX_REASON).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_reason_repeats_nothing_of_the_payload() {
        let body = br#"{"ref": "refs/heads/main", "after": "my secret", "repository": {"id": "a \"quoted\" secret"}}"#;
        let reason = read("push", body).unwrap_err().to_string();
        assert!(!reason.contains("secret") && !reason.contains("quoted"), "{reason}");
        assert!(reason.contains("line 1 column"), "{reason}");
        assert!(read("push", b"").unwrap_err().to_string().contains("EOF"));
    }

    #[test]
    fn a_lane_is_the_repository_or_the_installation() {
        let both = br#"{"repository": {"id": 9007199254740995, "x": 1}, "installation": {"id": 7}}"#;
        assert_eq!(lane(both).as_deref(), Some("repository 9007199254740995"));
        assert_eq!(lane(br#"{"installation": {"id": 7}, "repository": null}"#).as_deref(), Some("installation 7"));
        assert_eq!(lane(br#"{"zen": ""}"#), None);
        assert_eq!(lane(b"not JSON"), None);
    }
}

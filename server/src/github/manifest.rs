//! The App as GitHub is asked to register it: what it may do and is told, no more than is used. GitHub answers with a
//! code, and for that with the App's secrets.

use std::time::Duration;

use serde::Deserialize;
use serde_json::{Value, json};

use super::oauth::{SignInError, ask};
use super::place::segment;
use super::{AppFile, Site, http};

/// Each with what it is for.
pub const PERMISSIONS: [(&str, &str, &str); 6] = [
    ("checks", "write", "the check that blocks a merge"),
    ("contents", "read", "commits, tags, what changed, and the plan"),
    ("issues", "read", "to be told of comments"),
    ("merge_queues", "read", "to be told of merge groups"),
    ("metadata", "read", "every App has it; also who may write"),
    ("pull_requests", "write", "pull requests, and the comment on each"),
];

/// Those about installations come without asking.
pub const EVENTS: [&str; 9] = [
    "check_run",
    "check_suite",
    "create",
    "issue_comment",
    "merge_group",
    "pull_request",
    "push",
    "release",
    "repository",
];

/// GitHub takes no longer name.
const MAX_NAME: usize = 34;
const WITHIN: Duration = Duration::from_secs(20);

/// Of a server that people and GitHub reach at this address, without a final slash.
pub fn manifest(public_url: &str) -> Value {
    let host = public_url.parse::<url::Url>().ok().and_then(|url| url.host_str().map(ToOwned::to_owned));
    let name: String = format!("Plimsoll {}", host.unwrap_or_default()).trim().chars().take(MAX_NAME).collect();
    let permissions: serde_json::Map<_, _> =
        PERMISSIONS.iter().map(|(name, level, _)| ((*name).to_owned(), json!(level))).collect();
    json!({
        "name": name,
        "description": "Measures releases and pull requests of model services, and checks that none lowers the mark.",
        "url": public_url,
        "hook_attributes": { "url": format!("{public_url}/github/webhook"), "active": true },
        "redirect_url": format!("{public_url}/github/setup/callback"),
        "callback_urls": [format!("{public_url}/sign-in/github/callback")],
        "public": false,
        "default_permissions": permissions,
        "default_events": EVENTS,
    })
}

/// Where the browser sends it: to an organization, or without one to the account that is signed in there.
pub fn register_url(site: &Site, organization: Option<&str>, state: &str) -> String {
    let owner = organization.map(|name| format!("/organizations/{}", segment(name))).unwrap_or_default();
    format!("{}{owner}/settings/apps/new?state={}", site.url, segment(state))
}

/// The page on which an App is installed.
pub fn install_url(site: &Site, slug: &str) -> String {
    // An installation of one's own has them under another path.
    let apps = if site.url == Site::default().url { "apps" } else { "github-apps" };
    format!("{}/{apps}/{}/installations/new", site.url, segment(slug))
}

/// The App that GitHub made, for the code that it gave. Works once. Else why not.
pub async fn convert(site: &Site, code: &str) -> Result<AppFile, String> {
    let told = |error: SignInError| match error {
        SignInError::Refused(why) | SignInError::Unreachable(why) => why,
    };
    let client = http(WITHIN).map_err(|error| error.to_string())?;
    let url = format!("{}/app-manifests/{}/conversions", site.api_url, segment(code));
    let request = client.post(url).header("accept", "application/vnd.github+json");
    let made: Made = ask(request).await.map_err(told)?;
    let webhook_secret = made.webhook_secret.ok_or("GitHub gave no webhook secret")?;
    Ok(AppFile {
        id: made.id,
        slug: made.slug,
        client_id: made.client_id,
        client_secret: made.client_secret.into(),
        webhook_secret: webhook_secret.into(),
        pem: made.pem.into(),
    })
}

#[derive(Deserialize)]
struct Made {
    id: i64,
    slug: String,
    client_id: String,
    client_secret: String,
    webhook_secret: Option<String>,
    pem: String,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_manifest_asks_for_what_is_used() {
        let asked = manifest("https://plimsoll.octo.example");
        assert_eq!(asked["name"], "Plimsoll plimsoll.octo.example");
        assert_eq!(asked["hook_attributes"]["url"], "https://plimsoll.octo.example/github/webhook");
        assert_eq!(asked["redirect_url"], "https://plimsoll.octo.example/github/setup/callback");
        assert_eq!(asked["public"], false);
        let permissions = json!({ "checks": "write", "contents": "read", "issues": "read", "merge_queues": "read",
            "metadata": "read", "pull_requests": "write" });
        assert_eq!(asked["default_permissions"], permissions);
        assert_eq!(asked["default_events"].as_array().unwrap().len(), EVENTS.len());
        let long = manifest("https://plimsoll.of.a.very.long.name.example");
        assert_eq!(long["name"].as_str().unwrap().chars().count(), MAX_NAME);
    }

    #[test]
    fn names_do_not_leave_their_place() {
        let site = Site::default();
        assert_eq!(register_url(&site, None, "s"), "https://github.com/settings/apps/new?state=s");
        let odd = register_url(&site, Some("a/../b?x"), "s&t");
        assert_eq!(odd, "https://github.com/organizations/a%2F..%2Fb%3Fx/settings/apps/new?state=s%26t");
        assert_eq!(install_url(&site, "plimsoll"), "https://github.com/apps/plimsoll/installations/new");
    }
}

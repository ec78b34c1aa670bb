//! The GitHub App: whether it may do what it must, is told what happens, and whether merges wait for its checks: without
//! that nothing blocks.

use std::time::Duration;

use super::Check;
use crate::github::answers::About;
use crate::github::manifest::{EVENTS, PERMISSIONS};
use crate::github::{Client, Place};
use crate::store::github::links::{self, Link};
use crate::store::github::{condition, repositories};
use crate::store::{Pool, StoreError};

/// For all questions to GitHub together.
const WITHIN: Duration = Duration::from_secs(20);
/// More links are not looked at.
const MOST_LINKS: i64 = 50;
const WAITS_LONG_S: f64 = 600.0;
/// A repository that is worked in is heard of more often.
const SILENT_LONG_S: f64 = 7.0 * 86_400.0;

pub(super) async fn checks(pool: Option<&Pool>, app: Option<&Client>) -> Vec<Check> {
    let Some(app) = app else {
        let found = "not configured: nothing is measured by itself; docs/github-app.md says how";
        return vec![Check::ok("GitHub App", found)];
    };
    let until = tokio::time::Instant::now() + WITHIN;
    let mut checks = vec![itself(tokio::time::timeout_at(until, app.about()).await, app.api_url())];
    let Some(pool) = pool else { return checks };
    match condition::read(pool).await {
        Ok(condition) => checks.extend([heard(&condition), told(&condition)]),
        Err(error) => checks.push(unread(&error)),
    }
    let links = match links::list(pool, MOST_LINKS).await {
        Ok(links) => links,
        Err(error) => return [checks, vec![unread(&error)]].concat(),
    };
    for link in links {
        let found = match tokio::time::timeout_at(until, linked(pool, app, &link)).await {
            Ok(found) => found.unwrap_or_else(|error| unread(&error)),
            Err(_) => Check::warning(
                "merges",
                format!("{}: not looked at, GitHub took too long", link.project),
                "Try again in a moment.",
            ),
        };
        checks.push(found);
    }
    checks
}

type Asked<T> = Result<crate::github::Result<T>, tokio::time::error::Elapsed>;

fn itself(about: Asked<About>, api_url: &str) -> Check {
    let about = match about {
        Ok(Ok(about)) => about,
        Ok(Err(error)) => {
            let advice = "Check the App's id and private key (they belong together), and PLIMSOLL_GITHUB_API_URL.";
            return Check::warning("GitHub App", format!("{api_url}: {error}"), advice);
        }
        Err(_) => {
            let found = format!("{api_url} does not answer within {} s", WITHIN.as_secs());
            return Check::warning("GitHub App", found, "Let this host connect to it, or wait until GitHub is well.");
        }
    };
    let level = |name: &str| about.permissions.get(name).map(String::as_str);
    let has = |name: &str, wanted: &str| level(name).is_some_and(|level| level == wanted || level != "read");
    let lacks: Vec<String> = PERMISSIONS
        .iter()
        .filter(|(name, wanted, _)| !has(name, wanted))
        .map(|(name, wanted, why)| format!("{name}: {wanted} ({why})"))
        .collect();
    let deaf: Vec<&str> = EVENTS.into_iter().filter(|event| !about.events.iter().any(|one| one == event)).collect();
    match (lacks.as_slice(), deaf.as_slice()) {
        ([], []) => Check::ok("GitHub App", format!("{} may do what it must, and is told what happens", about.slug)),
        ([], deaf) => Check::warning(
            "GitHub App",
            format!("{} is not told of {}", about.slug, deaf.join(", ")),
            "On the App's page, Permissions & events, subscribe to them.",
        ),
        (lacks, _) => Check::warning(
            "GitHub App",
            format!("{} lacks {}", about.slug, lacks.join("; ")),
            "Add them on the App's page, Permissions & events, and accept them on each installation's page.",
        ),
    }
}

fn heard(of: &condition::Condition) -> Check {
    let name = "GitHub deliveries";
    let Some(age) = of.last_heard_s else {
        let advice = "On the App's page, Advanced, deliveries say why: GitHub must reach --public-url by https, and the \
                      webhook secrets must be the same.";
        return Check::warning(name, "nothing was ever delivered", advice);
    };
    let found = format!("the last came {:.1} h ago", age / 3_600.0);
    if let Some(oldest) = of.oldest_waiting_s.filter(|age| *age > WAITS_LONG_S) {
        let found = format!("{found}; the oldest that waits came {:.0} min ago", oldest / 60.0);
        return Check::warning(name, found, "A running server handles them: look into its log.");
    }
    if age > SILENT_LONG_S {
        let advice = "If something happened since, look at the App's page, Advanced: GitHub may not reach this server.";
        return Check::warning(name, found, advice);
    }
    Check::ok(name, found)
}

fn told(of: &condition::Condition) -> Check {
    let name = "GitHub writes";
    match &of.last_write_error {
        None => Check::ok(name, "whatever was to be told was told, or is on its way"),
        Some(error) => {
            let found = format!("{} failed in the last day, or fail now; the newest: {error}", of.failing_writes);
            let advice = "A missing permission is added on the App's page and accepted on the installation's.";
            Check::warning(name, found, advice)
        }
    }
}

async fn linked(pool: &Pool, app: &Client, link: &Link) -> Result<Check, StoreError> {
    let name = "merges";
    let Link { project, .. } = link;
    let Some(repository) = repositories::get(pool, link.repository).await? else {
        return Ok(Check::warning(name, format!("{project}: its repository is not known"), "Link it again."));
    };
    let full_name = &repository.full_name;
    if !repository.reachable {
        let found = format!("{project}: the App does not reach {full_name} any more");
        return Ok(Check::warning(name, found, "Install the App on it again, or unlink the project."));
    }
    let branch = &repository.default_branch;
    let place = Place::from(&repository);
    let found = match app.at(&place).branch(branch).await {
        Ok(Some(found)) => found,
        Ok(None) => {
            let found = format!("{project}: {full_name} has no branch {branch}");
            return Ok(Check::warning(name, found, "Push it, or choose another default branch on GitHub."));
        }
        Err(error) => {
            let advice = "See the GitHub App above.";
            return Ok(Check::warning(name, format!("{project}: {full_name}: {error}"), advice));
        }
    };
    if let Some(why) = &link.read_error {
        let found = format!("{project}: the plan of {full_name} could not be read: {why}");
        return Ok(Check::warning(name, found, format!("Repair it on {branch}; the policy from before holds.")));
    }
    let check = format!("plimsoll/{project}");
    Ok(match found.requires(&check, app.app_id()) {
        true => Check::ok(name, format!("{full_name}: {branch} waits for {check}")),
        false => Check::warning(
            name,
            format!("{full_name}: {branch} does not require {check}: nothing blocks a merge"),
            format!(
                "In {full_name}, Settings, Rules, Rulesets (or branch protection), require the status check {check} for \
                 {branch}, with the App as its source."
            ),
        ),
    })
}

fn unread(error: &StoreError) -> Check {
    Check::failed("GitHub App", error.to_string(), "See the database above.")
}

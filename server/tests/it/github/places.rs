//! Where the App is installed, and which repositories it reaches there.

use serde_json::json;

use super::actor::Site;
use super::fake::payloads::Delivery;

/// An event about what an installation reaches.
fn reach(site: &Site, added: &[(i64, &str)], removed: &[(i64, &str)]) -> Delivery {
    let list = |all: &[(i64, &str)]| -> Vec<_> {
        all.iter().map(|(id, name)| json!({ "id": id, "full_name": name, "private": true })).collect()
    };
    let (_, mut payload) = {
        let model = site.github.model();
        let installation = model.installation_of(site.id).unwrap();
        model.installation_event(installation, "x")
    };
    payload["repositories_added"] = json!(list(added));
    payload["repositories_removed"] = json!(list(removed));
    ("installation_repositories", payload)
}

/// A repository event, with the repository as it is now.
fn changed(site: &Site, action: &str) -> Delivery {
    let (_, mut payload) = site.github.model().push_event(site.id, "main", None);
    payload["action"] = json!(action);
    ("repository", payload)
}

#[tokio::test]
async fn a_suspended_or_removed_app_starts_nothing() {
    let site = Site::new().await;
    let installation = site.github.model().installation_of(site.id).unwrap();
    let (number, _) = site.pull("faster", "src/app.py");
    let say = |action| site.github.model().installation_event(installation, action);
    for (action, reachable) in [("suspend", false), ("unsuspend", true), ("deleted", false)] {
        site.tell(say(action)).await;
        assert_eq!(site.known().await.reachable, reachable, "{action}");
        if !reachable {
            let outcome = site.tell(site.pull_event(number, "opened")).await;
            assert_eq!(outcome, "the App does not reach this repository");
            assert!(!site.known().await.reachable, "an event that is late does not bring it back");
        }
    }
    assert_eq!(site.runs().await, [""; 0]);
    site.tell(say("created")).await;
    assert!(site.known().await.reachable);
}

#[tokio::test]
async fn repositories_come_and_go() {
    let site = Site::new().await;
    site.tell(reach(&site, &[(5, "octo/five"), (6, "octo/six")], &[(site.id, "octo/ranker")])).await;
    let reached = async || {
        let all = plimsoll_server::store::github::repositories::list(&site.server.pool, 10).await.unwrap();
        all.into_iter().map(|one| one.full_name).collect::<Vec<_>>()
    };
    assert_eq!(reached().await, ["octo/five", "octo/six"]);
    site.tell(reach(&site, &[(site.id, "octo/ranker")], &[(5, "octo/five")])).await;
    assert_eq!(reached().await, ["octo/ranker", "octo/six"]);
    site.tell(changed(&site, "deleted")).await;
    assert_eq!(reached().await, ["octo/six"]);
}

#[tokio::test]
async fn a_repository_keeps_its_project_under_a_new_name() {
    let site = Site::new().await;
    site.github.model().rename(site.id, "acme/scorer");
    site.github.model().repo(site.id).private = true;
    site.tell(changed(&site, "renamed")).await;
    let known = site.known().await;
    assert_eq!((known.full_name.as_str(), known.private), ("acme/scorer", true));
    let (number, _) = site.pull("faster", "src/app.py");
    site.tell(site.pull_event(number, "opened")).await;
    assert_eq!(site.runs().await.len(), 1);
    site.github.end();
}

#[tokio::test]
async fn another_default_branch_is_the_one_that_is_measured() {
    let site = Site::new().await;
    let push = |branch: &str| {
        let mut model = site.github.model();
        model.push(site.id, branch, &[("src/app.py", Some(branch))]);
        model.push_event(site.id, branch, None)
    };
    let on_trunk = push("trunk");
    assert_eq!(site.tell(on_trunk).await, "not the default branch");
    site.github.model().repo(site.id).default_branch = "trunk".to_owned();
    site.tell(changed(&site, "edited")).await;
    assert_eq!(site.known().await.default_branch, "trunk");
    let on_main = push("main");
    assert_eq!(site.tell(on_main).await, "not the default branch");
    let on_trunk = push("trunk");
    site.tell(on_trunk).await;
    assert_eq!(site.runs().await.len(), 1);
    // Also when nothing but a push tells it.
    site.github.model().repo(site.id).default_branch = "main".to_owned();
    let on_main = push("main");
    site.tell(on_main).await;
    assert_eq!(site.runs().await.len(), 2);
}

#[tokio::test]
async fn a_repository_of_which_only_a_push_is_heard_is_known_from_then_on() {
    let site = Site::new().await;
    let (id, _) = site.github.repository("acme/other");
    let push = site.github.model().push_event(id, "main", None);
    assert_eq!(site.tell(push.clone()).await, "no project is measured from this repository");
    site.link(id, "other", &[], None).await;
    site.tell(push).await;
    assert_eq!(site.runs().await.len(), 1);
    site.github.end();
}

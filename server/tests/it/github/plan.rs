//! Policy and plan come from the default branch, and a repository whose plan names a new project is linked by itself.

use plimsoll_server::store::audit;
use plimsoll_server::store::github::links::{self, Link};
use plimsoll_server::store::projects;
use serde_json::json;

use super::actor::{PROJECT, Site, commit, slug};
use super::fake::Fault;

const PLAN: &str = "plimsoll.toml";

fn plan(project: &str, p99: &str) -> String {
    format!("project = \"{project}\"\n[service]\nurl = \"http://h/\"\n[gate]\np99 = {{ max_increase = \"{p99}\" }}\n")
}

async fn link(site: &Site, project: &str) -> Link {
    links::get(&site.server.pool, &slug(project)).await.unwrap().expect("a link")
}

async fn p99(site: &Site, project: &str) -> f64 {
    projects::get(&site.server.pool, &slug(project)).await.unwrap().expect("a project").policy.p99_increase
}

/// Pushes to a branch and delivers it; the new head.
async fn push(site: &Site, branch: &str, text: &str) -> String {
    let (head, event) = {
        let mut model = site.github.model();
        let head = model.push(site.id, branch, &[(PLAN, Some(text)), ("src/app.py", Some(text))]);
        (head, model.push_event(site.id, branch, None))
    };
    site.tell(event).await;
    head
}

#[tokio::test]
async fn the_default_branch_sets_the_policy() {
    let site = Site::new().await;
    let head = push(&site, "main", &plan(PROJECT, "20%")).await;
    assert_eq!(p99(&site, PROJECT).await, 0.2);
    assert_eq!(link(&site, PROJECT).await.read_commit, Some(commit(&head)));
    push(&site, "faster", &plan(PROJECT, "90%")).await;
    assert_eq!(p99(&site, PROJECT).await, 0.2, "another branch changes nothing");
    push(&site, "main", &plan(PROJECT, "20%")).await;
    // Without a gate it stays as it is.
    push(&site, "main", &format!("project = \"{PROJECT}\"\n")).await;
    assert_eq!(p99(&site, PROJECT).await, 0.2);
    let acts = audit::list(&site.server.pool, Some(&slug(PROJECT)), None, 10).await.unwrap();
    let acts: Vec<_> = acts.iter().map(|act| (act.entry.actor.as_str(), act.entry.action.as_str())).collect();
    assert_eq!(acts, [("github", "policy.set")], "only what changed it");
    assert_eq!(acts.len(), 1);
    site.github.end();
}

#[tokio::test]
async fn a_broken_plan_keeps_the_policy_and_says_so() {
    let site = Site::new().await;
    push(&site, "main", &plan(PROJECT, "20%")).await;
    for (text, says) in [
        ("[gate]\np9 = 1\n", "plimsoll.toml:2:1: unknown key `p9` in [gate]; did you mean `p99`?"),
        ("[gate]\n\"\\u0000\" = 1\n", "unknown key"),
        ("project = \"No Name\"\n", "`project` is wrong"),
    ] {
        push(&site, "main", text).await;
        let error = link(&site, PROJECT).await.read_error.expect("an error");
        assert!(error.contains(says), "{error}");
        assert_eq!(p99(&site, PROJECT).await, 0.2);
    }
    assert_eq!(site.runs().await.len(), 4, "what is measured is the runner's to say");
    let shown = site.server.read(&format!("/api/v1/projects/{PROJECT}/github")).await;
    assert!(shown.json["read_error"].as_str().unwrap().contains("`project` is wrong"), "{shown:?}");
    push(&site, "main", &plan(PROJECT, "30%")).await;
    assert_eq!((link(&site, PROJECT).await.read_error, p99(&site, PROJECT).await), (None, 0.3));
}

#[tokio::test]
async fn a_pull_request_is_judged_by_the_default_branch_before_anything_was_pushed_to_it() {
    let site = Site::new().await;
    site.github.model().push(site.id, "main", &[(PLAN, Some(&plan(PROJECT, "20%")))]);
    let (number, _) = site.pull("faster", "src/app.py");
    site.github.model().push(site.id, "faster", &[(PLAN, Some(&plan(PROJECT, "90%")))]);
    site.tell(site.pull_event(number, "opened")).await;
    assert_eq!(p99(&site, PROJECT).await, 0.2);
    assert_eq!(site.runs().await.len(), 1);
}

#[tokio::test]
async fn linking_reads_the_plan_at_once() {
    let site = Site::new().await;
    site.github.model().push(site.id, "main", &[(PLAN, Some(&plan("scorer", "20%")))]);
    let linked =
        site.server.change("PUT", "/api/v1/projects/scorer/github", json!({"repository": "octo/ranker"})).await;
    assert!(linked.json["read_commit"].is_string() && linked.json.get("read_error").is_none(), "{linked:?}");
    assert_eq!(p99(&site, "scorer").await, 0.2);
}

#[tokio::test]
async fn a_repository_whose_plan_names_a_new_project_is_linked_by_itself() {
    let site = Site::new().await;
    let install = |name: &str, project: &str, branch: &str, private: bool| {
        let (id, place) = site.github.repository(name);
        let mut model = site.github.model();
        model.push(id, branch, &[(PLAN, Some(&plan(project, "20%")))]);
        model.repo(id).default_branch = branch.to_owned();
        model.repo(id).private = private;
        (id, model.installation_event(place.installation, "created"))
    };
    let (scorer, event) = install("acme/scorer", "scorer", "main", false);
    site.tell(event).await;
    assert_eq!(link(&site, "scorer").await.repository, scorer);
    assert_eq!(p99(&site, "scorer").await, 0.2);

    let (secret, event) = install("hush/secret", "secret", "trunk", true);
    site.tell(event).await;
    assert_eq!(link(&site, "secret").await.repository, secret);
    assert_eq!(projects::is_public(&site.server.pool, &slug("secret")).await.unwrap(), Some(false));

    // A name that is taken.
    let (_, event) = install("evil/ranker", PROJECT, "main", false);
    site.tell(event).await;
    assert_eq!(link(&site, PROJECT).await.repository, site.id);
    assert_eq!(p99(&site, PROJECT).await, 0.1);

    // GitHub is away at first.
    let (late, event) = install("late/comer", "late", "main", false);
    site.github.fail("GET /contents/", Fault::Broken, 1);
    site.tell(event).await;
    assert!(links::get(&site.server.pool, &slug("late")).await.unwrap().is_none());
    sqlx::query("update github_inbox set next_at = now()").execute(&site.server.pool).await.unwrap();
    site.work().await;
    assert_eq!(link(&site, "late").await.repository, late);
    site.github.end();
}

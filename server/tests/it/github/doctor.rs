//! The doctor says whether merges wait for the checks, and what the App lacks.

use serde_json::Value;

use super::actor::{PROJECT, Site};
use super::fake::{APP, Fault};
use crate::app::App;

/// Each check of this name, as `level: found`.
async fn found(site: &Site, name: &str) -> Vec<String> {
    let all = site.server.read("/api/v1/doctor").await.json;
    let text = |check: &Value, key: &str| check[key].as_str().unwrap_or_default().to_owned();
    let named = all["checks"].as_array().unwrap().iter().filter(|check| check["name"] == name);
    named.map(|check| format!("{}: {}", text(check, "level"), text(check, "found"))).collect()
}

#[tokio::test]
async fn a_check_that_nobody_requires_is_a_warning() {
    let site = Site::new().await;
    let warned = found(&site, "merges").await;
    assert_eq!(warned, ["warning: octo/ranker: main does not require plimsoll/ranker: nothing blocks a merge"]);
    let required = |app| (format!("plimsoll/{PROJECT}"), app);
    let require = |app| site.github.model().repo(site.id).rulesets.insert("main".to_owned(), vec![required(app)]);
    require(Some(APP + 1));
    assert_eq!(found(&site, "merges").await, warned, "somebody else's check does not count");
    require(Some(APP));
    assert_eq!(found(&site, "merges").await, ["ok: octo/ranker: main waits for plimsoll/ranker"]);
    site.github.fail("GET /branches/", Fault::Broken, 1);
    assert!(found(&site, "merges").await[0].starts_with("warning: ranker: octo/ranker: GitHub does not answer"));
    let installation = site.github.model().installation_of(site.id).unwrap();
    let gone = site.github.model().installation_event(installation, "deleted");
    site.tell(gone).await;
    assert!(found(&site, "merges").await[0].contains("does not reach octo/ranker"));
}

#[tokio::test]
async fn what_the_app_lacks_is_named() {
    let site = Site::new().await;
    assert!(found(&site, "GitHub App").await[0].contains("is not told of"), "the fake's App hears of little");
    site.github.model().permissions.insert("checks".to_owned(), "read".to_owned());
    let lacks = found(&site, "GitHub App").await;
    assert_eq!(lacks, ["warning: plimsoll-test lacks checks: write (the check that blocks a merge)"]);
    assert!(found(&site, "GitHub deliveries").await[0].starts_with("ok: the last came 0.0 h ago"));
    sqlx::query("update github_inbox set received_at = now() - interval '8 days'")
        .execute(&site.server.pool)
        .await
        .unwrap();
    assert!(found(&site, "GitHub deliveries").await[0].starts_with("warning: the last came 192.0 h ago"));
    assert!(found(&site, "GitHub writes").await[0].starts_with("ok: "));
    let without = App::new().await.read("/api/v1/doctor").await.json;
    let app = without["checks"].as_array().unwrap().iter().find(|check| check["name"] == "GitHub App").unwrap();
    assert_eq!(app["level"], "ok", "{app}");
}

#[tokio::test]
async fn a_write_that_github_refuses_is_named() {
    let site = Site::new().await;
    let (number, _) = site.pull("faster", "src/app.py");
    site.tell(site.pull_event(number, "opened")).await;
    sqlx::query("update github_writes set last_error = 'checks: write is missing', failed_at = now()")
        .execute(&site.server.pool)
        .await
        .unwrap();
    assert!(found(&site, "GitHub writes").await[0].ends_with("the newest: checks: write is missing"));
}

//! Which repository a project is measured from, by the API and the command line.

use axum::body::{Body, to_bytes};
use axum::http::Request;
use plimsoll_server::access::session::{self, SignedIn};
use plimsoll_server::access::{Caller, Scope, hash};
use plimsoll_server::store::github::{links, tags};
use plimsoll_server::store::{audit, tokens};
use serde_json::{Value, json};

use super::actor::{Site, commit, slug};

const PATH: &str = "/api/v1/projects/scorer/github";

async fn acts(site: &Site) -> Vec<String> {
    let all = audit::list(&site.server.pool, Some(&slug("scorer")), None, 10).await.unwrap();
    all.into_iter().map(|one| format!("{} {}", one.entry.action, one.entry.subject.unwrap_or_default())).collect()
}

#[tokio::test]
async fn a_project_is_linked_changed_and_unlinked() {
    let site = Site::new().await;
    let head = site.github.model().push(site.id, "main", &[("plimsoll.toml", Some("project = \"scorer\"\n"))]);
    let wanted = json!({"repository": "Octo/Ranker", "paths": ["scorer/"], "labels": {"gpu": "A10"}});
    assert_eq!(site.server.read(PATH).await.status, 404);
    let linked = site.server.change("PUT", PATH, wanted).await;
    assert_eq!(linked.status, 200, "{linked:?}");
    let expected = json!({"repository": "octo/ranker", "plan": "plimsoll.toml", "paths": ["scorer/"],
        "labels": {"gpu": "A10"}, "queue_minutes": 60, "reachable": true, "read_commit": head,
        "created_by": linked.json["created_by"]});
    assert_eq!(linked.json, expected);
    let changed = json!({"repository": "octo/ranker", "tags": "scorer/v*", "queue_minutes": 30});
    let changed = site.server.change("PUT", PATH, changed).await;
    assert_eq!((&changed.json["tags"], &changed.json["paths"]), (&json!("scorer/v*"), &json!([])));
    assert_eq!(site.server.read(PATH).await.json, changed.json);
    assert_eq!(site.server.change("DELETE", PATH, Value::Null).await.status, 204);
    assert_eq!(site.server.change("DELETE", PATH, Value::Null).await.status, 404);
    let all = acts(&site).await;
    assert_eq!(all, ["project.unlink octo/ranker", "project.link octo/ranker", "project.link octo/ranker"]);
    site.github.end();
}

#[tokio::test]
async fn what_does_not_fit_or_is_not_reached_changes_nothing() {
    let site = Site::new().await;
    for (wanted, says) in [
        (json!({"repository": "octo/other"}), "install the App there"),
        (json!({"repository": "octo/ranker", "paths": ["src/["]}), "paths: "),
        (json!({"repository": "octo/ranker", "plan": "/etc/passwd"}), "plan: "),
        (json!({"repository": "octo/ranker", "queue_minutes": 1}), "queue_minutes: "),
    ] {
        let refused = site.server.change("PUT", PATH, wanted).await;
        assert_eq!(refused.status, 422, "{refused:?}");
        assert!(refused.json["detail"].as_str().unwrap().contains(says), "{refused:?}");
    }
    let installation = site.github.model().installation_of(site.id).unwrap();
    let suspended = site.github.model().installation_event(installation, "suspend");
    site.tell(suspended).await;
    let refused = site.server.change("PUT", PATH, json!({"repository": "octo/ranker"})).await;
    assert_eq!(refused.status, 422);
    assert_eq!(links::get(&site.server.pool, &slug("scorer")).await.unwrap(), None);
}

#[tokio::test]
async fn only_an_administrator_of_the_server_chooses_a_repository() {
    let site = Site::new().await;
    let own = site.server.token(Scope::Admin, Some("scorer")).await;
    let wanted = json!({"repository": "octo/ranker"});
    assert_eq!(site.server.ask_by(&own, "PUT", PATH, &wanted).await.status, 403);
    assert_eq!(site.server.change("PUT", PATH, wanted).await.status, 200);
    let narrower = json!({"repository": "octo/ranker", "paths": ["scorer/**"]});
    assert_eq!(site.server.ask_by(&own, "PUT", PATH, &narrower).await.status, 200);
    assert_eq!(site.server.ask_by(&own, "DELETE", PATH, &Value::Null).await.status, 204);
    let agent = site.server.token(Scope::Agent, Some("scorer")).await;
    assert_eq!(site.server.ask_by(&agent, "GET", PATH, &Value::Null).await.status, 403);
}

#[tokio::test]
async fn tags_from_before_are_not_measured() {
    let site = Site::new().await;
    let head = site.github.model().push(site.id, "main", &[("a", Some("a"))]);
    site.github.model().tag(site.id, "v1.0.0", &head, false);
    let linked = site.server.change("PUT", PATH, json!({"repository": "octo/ranker"})).await;
    assert_eq!(linked.status, 200, "{linked:?}");
    assert!(tags::is_known(&site.server.pool, &slug("scorer"), "v1.0.0", &commit(&head)).await.unwrap());
    site.github.end();
}

#[tokio::test]
async fn a_project_of_a_private_repository_is_private() {
    let site = Site::new().await;
    site.github.model().repo(site.id).private = true;
    let push = site.github.model().push_event(site.id, "main", None);
    site.tell(("repository", {
        let mut payload = push.1;
        payload["action"] = json!("privatized");
        payload
    }))
    .await;
    site.server.change("PUT", PATH, json!({"repository": "octo/ranker"})).await;
    assert_eq!(site.server.get("/api/v1/projects/scorer").await.status, 404, "for everybody");
    assert_eq!(site.server.read("/api/v1/projects/scorer").await.status, 200);
}

async fn form(site: &Site, token: &str, path: &str, from: &str, fields: &[(&str, &str)]) -> (u16, String) {
    let body = url::form_urlencoded::Serializer::new(String::new()).extend_pairs(fields).finish();
    let request = Request::post(path).header("content-type", "application/x-www-form-urlencoded");
    let request = request.header("accept", "text/html").header("sec-fetch-site", from);
    let by = SignedIn::Token(id_of(site, token).await);
    let cookie = session::begin(&site.server.state, &Caller::anonymous(), by).await.unwrap();
    let request = request.header("cookie", format!("{}={}", cookie.name(), cookie.value()));
    let (parts, body) = site.server.open(request.body(Body::from(body)).unwrap()).await.into_parts();
    let text = to_bytes(body, 1 << 20).await.unwrap();
    (parts.status.as_u16(), String::from_utf8(text.to_vec()).unwrap())
}

async fn id_of(site: &Site, token: &str) -> uuid::Uuid {
    tokens::in_use(&site.server.pool, &hash(token)).await.unwrap().expect("a token").id
}

#[tokio::test]
async fn the_settings_page_links_and_unlinks() {
    let site = Site::new().await;
    let admin = site.server.token(Scope::Admin, None).await;
    let own = site.server.token(Scope::Admin, Some("scorer")).await;
    let path = "/scorer/settings/github";
    let wanted = [
        ("repository", "octo/ranker"),
        ("paths", "src/**\r\n\r\nmodels/\r\n"),
        ("labels", "gpu = A10\r\n"),
        ("tags", ""),
        ("queue_minutes", "30"),
    ];
    assert_eq!(form(&site, &admin, path, "cross-site", &wanted).await.0, 403);
    assert_eq!(form(&site, &own, path, "same-origin", &wanted).await.0, 403, "another repository");
    assert_eq!(form(&site, &admin, path, "same-origin", &wanted).await.0, 303);
    let link = links::get(&site.server.pool, &slug("scorer")).await.unwrap().unwrap();
    assert_eq!((link.paths, link.queue_minutes), (vec!["src/**".to_owned(), "models/".to_owned()], 30));
    assert_eq!((link.labels["gpu"].as_str(), link.tags), ("A10", None));
    let unfit = [("repository", "octo/ranker"), ("paths", "src/[\n<b>")];
    let (status, page) = form(&site, &own, path, "same-origin", &unfit).await;
    assert_eq!(status, 422);
    assert!(page.contains("src/[\n&#60;b&#62;</textarea>") && page.contains("role=\"alert\""), "as it was filled in");
    assert_eq!(form(&site, &own, "/scorer/settings/github/unlink", "same-origin", &[]).await.0, 303);
    assert_eq!(links::get(&site.server.pool, &slug("scorer")).await.unwrap(), None);
}

//! What was delivered is handled, whatever GitHub and this server do meanwhile.

use std::time::Duration;

use axum::body::Body;
use axum::http::Request;
use plimsoll_server::tasks::background;
use plimsoll_server::tasks::github::inbox::run_once;
use serde_json::json;

use super::actor::Site;
use super::fake::Fault;
use super::fake::payloads::{Delivery, signature};

/// How the newest delivery stands: `outcome` or `last_error`, and the rest of its row.
#[derive(Debug, PartialEq, sqlx::FromRow)]
struct Row {
    said: Option<String>,
    attempts: i32,
    /// `handled`, `given up`, `waits` for its time or is `due`.
    state: String,
    bytes: i32,
}

async fn row(site: &Site) -> Row {
    let newest = "select coalesce(outcome, last_error) as said, attempts, octet_length(body) as bytes,
                      case when handled_at is not null then 'handled' when failed_at is not null then 'given up'
                           when next_at > now() or taken_until > now() then 'waits' else 'due' end as state
                  from github_inbox order by received_at desc limit 1";
    sqlx::query_as(newest).fetch_one(&site.server.pool).await.unwrap()
}

/// As if its pauses were over, and the leases of those who died.
async fn later(site: &Site) {
    let sql = "update github_inbox set next_at = now(), taken_until = null where handled_at is null";
    sqlx::raw_sql(sql).execute(&site.server.pool).await.unwrap();
}

async fn deliver_as(site: &Site, id: &str, (event, payload): &Delivery) {
    let body = payload.to_string();
    let request = Request::post("/github/webhook")
        .header("x-github-event", *event)
        .header("x-github-delivery", id)
        .header("x-hub-signature-256", signature(body.as_bytes()));
    let answer = site.server.send(request.body(Body::from(body)).unwrap()).await;
    assert_eq!(answer.status.as_u16(), 202, "{answer:?}");
}

/// A tag whose commit only GitHub knows.
fn tag(site: &Site, name: &str) -> Delivery {
    let mut model = site.github.model();
    let head = model.push(site.id, "main", &[("src/version", Some(name))]);
    model.tag(site.id, name, &head, false);
    model.create_event(site.id, name)
}

#[tokio::test]
async fn what_cannot_be_read_is_over_and_what_it_said_is_gone() {
    let site = Site::new().await;
    let said = site.tell(("push", json!({ "ref": "refs/heads/main", "note": "a word" }))).await;
    assert_eq!(said, "unreadable: missing field `repository` at line 1 column 41");
    assert_eq!(row(&site).await, Row { said: Some(said), attempts: 1, state: "handled".to_owned(), bytes: 0 });
    let said = site.tell(("pull_request", json!([1]))).await;
    assert!(said.starts_with("unreadable: invalid"), "{said}");
}

#[tokio::test]
async fn what_github_did_not_answer_is_handled_later_and_holds_up_nothing() {
    let site = Site::new().await;
    site.github.fail("GET /git", Fault::Broken, 1);
    let said = site.tell(tag(&site, "v1.0.0")).await;
    let waiting = row(&site).await;
    assert_eq!((waiting.state.as_str(), waiting.attempts, waiting.bytes > 0), ("waits", 1, true), "{said}");
    assert!(said.starts_with("GitHub does not answer as it should"), "{said}");
    assert!(site.runs().await.is_empty());

    site.tell(tag(&site, "v2.0.0")).await;
    assert_eq!(site.runs().await.len(), 1, "another delivery of the same repository");
    later(&site).await;
    site.work().await;
    let left: i64 = sqlx::query_scalar("select count(*) from github_inbox where handled_at is null")
        .fetch_one(&site.server.pool)
        .await
        .unwrap();
    assert_eq!((left, site.runs().await.len()), (0, 2));
}

#[tokio::test]
async fn what_github_refuses_is_given_up_and_taken_when_it_comes_again() {
    let site = Site::new().await;
    site.github.fail("GET /git", Fault::Forbidden, 100);
    let delivery = tag(&site, "v1.0.0");
    deliver_as(&site, "again", &delivery).await;
    let mut attempts = 0;
    while row(&site).await.state != "given up" {
        later(&site).await;
        site.work().await;
        attempts += 1;
        assert!(attempts < 20, "{:?}", row(&site).await);
    }
    let over = row(&site).await;
    assert_eq!((over.attempts, over.bytes), (attempts, 0));
    assert!(over.said.unwrap().contains("GitHub does not let the App do this"));
    later(&site).await;
    site.work().await;
    assert_eq!(row(&site).await.attempts, attempts, "nobody tries it any more");

    site.github.heal();
    deliver_as(&site, "again", &delivery).await;
    site.work().await;
    assert_eq!((row(&site).await.state.as_str(), site.runs().await.len()), ("handled", 1));
}

#[tokio::test(flavor = "multi_thread")]
async fn a_server_that_dies_of_it_loses_nothing() {
    let site = Site::new().await;
    site.github.fail("GET /git", Fault::Silent, 1);
    let delivery = tag(&site, "v1.0.0");
    site.deliver(&delivery).await;
    let state = site.server.state.clone();
    let dying = tokio::spawn(async move { run_once(&state).await });
    site.github.heard("GET /git", 1).await;
    dying.abort();
    assert!(dying.await.unwrap_err().is_cancelled());
    let other = site.server.beside_with(site.github.settings()).await;
    assert_eq!(run_once(&other.state).await.unwrap(), 0, "its lease lasts");
    later(&site).await;
    assert_eq!(run_once(&other.state).await.unwrap(), 1);
    let row = row(&site).await;
    assert_eq!((row.state.as_str(), row.attempts, site.runs().await.len()), ("handled", 2, 1), "{row:?}");
}

#[tokio::test(flavor = "multi_thread")]
async fn servers_share_the_work() {
    let site = Site::new().await;
    let other = site.server.beside_with(site.github.settings()).await;
    for n in 0..20 {
        let id = site.github.repository(&format!("octo/service-{n}")).0;
        let pushed = site.github.model().push_event(id, "main", None);
        site.deliver(&pushed).await;
        site.deliver_to(&other, &pushed).await;
    }
    let work = |state: plimsoll_server::state::AppState| {
        tokio::spawn(async move { while run_once(&state).await.unwrap() > 0 {} })
    };
    for server in [work(site.server.state.clone()), work(other.state.clone()), work(other.state.clone())] {
        server.await.unwrap();
    }
    site.work().await;
    let (handled, attempts): (i64, i32) = sqlx::query_as("select count(handled_at), max(attempts) from github_inbox")
        .fetch_one(&other.pool)
        .await
        .unwrap();
    assert_eq!((handled, attempts), (41, 1));
}

#[tokio::test(flavor = "multi_thread")]
async fn a_running_server_handles_what_comes() {
    let site = Site::new().await;
    let tasks = background::start(&site.server.state);
    let delivery = tag(&site, "v1.0.0");
    site.deliver(&delivery).await;
    let handled = async {
        while row(&site).await.state != "handled" {
            tokio::time::sleep(Duration::from_millis(5)).await;
        }
    };
    tokio::time::timeout(Duration::from_secs(60), handled).await.expect("it is handled");
    assert_eq!(site.runs().await.len(), 1);
    site.server.state.drain();
    let ended = async move {
        let mut tasks = tasks;
        while tasks.join_next().await.is_some() {}
    };
    tokio::time::timeout(Duration::from_secs(60), ended).await.expect("the tasks end");
}

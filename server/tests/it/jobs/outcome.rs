//! How runs end.

use axum::http::StatusCode;
use plimsoll_domain::job::{Ending, Stage};
use plimsoll_domain::synthetic::Synthetic;
use plimsoll_server::access::Scope;
use plimsoll_server::tasks::leases;
use serde_json::json;

use super::actor::{Actor, ask, end_lease, report_of, run, state, told};
use crate::app::{App, release};

fn events(names: &[&str], conclusion: &str) -> (Vec<String>, Option<String>) {
    (names.iter().map(|name| format!("run.{name}")).collect(), Some(conclusion.to_owned()))
}

#[tokio::test]
async fn a_run_goes_from_the_request_to_the_verdict() {
    let app = App::new().await;
    let runner = Actor::new();
    app.token(Scope::Read, Some("sentiment")).await;
    let hook =
        "insert into webhooks (project, url, secret, created_by) values ('sentiment', 'https://x', 's', 'a test')";
    sqlx::query(hook).execute(&app.pool).await.unwrap();
    let id = ask(&app, "v1.0.0", json!({"labels": {"gpu": "A10"}})).await;
    let job = runner.claim(&app).await.unwrap();
    assert_eq!((job.run_id, job.attempt, job.revision.tag.as_deref()), (id, 1, Some("v1.0.0")));
    assert_eq!(runner.beat(&app, &job, Stage::Start).await.json, json!({"lease_s": 60}));
    assert_eq!(state(&app, id).await, "leased");
    assert_eq!(runner.beat(&app, &job, Stage::Smoke).await.status, StatusCode::OK);
    assert_eq!((state(&app, id).await.as_str(), told(&app, id).await.0.len()), ("running", 2));

    app.upload(&report_of(id, &release("v1.0.0", 0))).await;
    let done = run(&app, id).await;
    assert_eq!((&done["state"], &done["verdict"]), (&"done".into(), &"no_baseline".into()), "{done}");
    assert_eq!(done["path"], format!("/sentiment/snapshots/{id}"));
    assert_eq!(told(&app, id).await, events(&["requested", "started", "finished"], "no_baseline"));
    let deliveries: i64 = sqlx::query_scalar("select count(*) from deliveries").fetch_one(&app.pool).await.unwrap();
    assert_eq!(deliveries, 3);
    // Its lease is over.
    assert_eq!(runner.beat(&app, &job, Stage::Upload).await.status, StatusCode::CONFLICT);
}

#[tokio::test]
async fn an_upload_without_a_request_is_told_too_and_once() {
    let app = App::new().await;
    let report = release("v1.0.0", 0).report();
    app.upload(&report).await;
    app.post(report.to_json()).await;
    assert_eq!(told(&app, report.run_id).await, events(&["finished"], "no_baseline"));
}

#[tokio::test]
async fn a_report_must_be_of_what_was_asked_for() {
    let app = App::new().await;
    let commit = json!({"revision": {"commit": "a".repeat(40)}});
    let id = ask(&app, "", commit).await;
    let elsewhere = Synthetic { project: "speech".to_owned(), ..release("v1.0.0", 0) };
    let wrong = Synthetic { commit: Some("b".repeat(40)), ..release("v1.0.0", 0) };
    for other in [elsewhere, wrong] {
        let answer = app.post(report_of(id, &other).to_json()).await;
        assert_eq!(answer.status, StatusCode::CONFLICT, "{answer:?}");
    }
    assert_eq!(state(&app, id).await, "queued");
    let short = Synthetic { commit: Some("a".repeat(12)), ..release("v1.0.0", 0) };
    app.upload(&report_of(id, &short)).await;
    assert_eq!(state(&app, id).await, "done");
}

#[tokio::test]
async fn what_a_runner_says_at_the_end_decides() {
    let app = App::new().await;
    let runner = Actor::new();
    let id = ask(&app, "v1.0.0", json!({})).await;
    let job = runner.claim(&app).await.unwrap();
    assert_eq!(runner.end(&app, &job, Ending::Released).await.status, StatusCode::NO_CONTENT);
    assert_eq!(runner.end(&app, &job, Ending::Failed).await.status, StatusCode::CONFLICT, "the lease is over");
    let job = runner.claim(&app).await.unwrap();
    assert_eq!((job.run_id, job.attempt), (id, 1), "a released attempt does not count");
    runner.end(&app, &job, Ending::Failed).await;
    let failed = run(&app, id).await;
    assert_eq!((&failed["state"], &failed["reason"]), (&"failed".into(), &"the service did not start".into()));
    assert_eq!(told(&app, id).await, events(&["requested", "finished"], "failed"));
}

#[tokio::test]
async fn a_lost_runner_s_job_goes_to_another_and_ends_when_that_does_not_help() {
    let app = App::new().await;
    let id = ask(&app, "v1.0.0", json!({})).await;
    for attempt in 1..=3 {
        let job = Actor::new().claim(&app).await.unwrap();
        assert_eq!((job.run_id, job.attempt), (id, attempt));
        assert_eq!(leases::run_once(&app.state).await.unwrap(), 0);
        end_lease(&app, id).await;
        assert_eq!(leases::run_once(&app.state).await.unwrap(), 1);
    }
    let over = run(&app, id).await;
    assert_eq!(over["state"], "expired");
    assert!(over["reason"].as_str().unwrap().starts_with("runner lost: it was last heard at 20"), "{over}");
    assert_eq!(told(&app, id).await, events(&["requested", "finished"], "expired"));
    // The report was waiting on its disk.
    app.upload(&report_of(id, &release("v1.0.0", 0))).await;
    assert_eq!(state(&app, id).await, "done");
    assert_eq!(told(&app, id).await, events(&["requested", "finished", "rejudged"], "no_baseline"));
}

#[tokio::test]
async fn a_runner_that_asks_again_has_lost_what_it_had() {
    let app = App::new().await;
    let runner = Actor::new();
    let id = ask(&app, "v1.0.0", json!({})).await;
    let first = runner.claim(&app).await.unwrap();
    assert_eq!(runner.beat(&app, &first, Stage::Checkout).await.status, StatusCode::OK);
    let second = runner.claim(&app).await.unwrap();
    assert_eq!((second.run_id, second.attempt), (id, 2));
    assert_eq!(runner.beat(&app, &first, Stage::Smoke).await.status, StatusCode::CONFLICT);
    assert_eq!(runner.beat(&app, &second, Stage::Smoke).await.status, StatusCode::OK);
}

#[tokio::test]
async fn an_answer_that_was_lost_costs_no_attempt_a_few_times() {
    let app = App::new().await;
    let runner = Actor::new();
    let id = ask(&app, "v1.0.0", json!({})).await;
    for lost in 0..=10 {
        let job = runner.claim(&app).await.unwrap();
        assert_eq!((job.run_id, job.attempt), (id, 1), "after {lost} lost answers");
    }
    for attempt in 2..=3 {
        let job = runner.claim(&app).await.unwrap();
        assert_eq!((job.run_id, job.attempt), (id, attempt), "it ends each time before its first word");
    }
    assert_eq!(runner.claim(&app).await, None);
    assert_eq!(state(&app, id).await, "expired");
}

#[tokio::test]
async fn a_runner_that_ends_gives_back_what_it_may_have_been_given() {
    let app = App::new().await;
    let mut runner = Actor::new();
    let id = ask(&app, "v1.0.0", json!({})).await;
    assert_eq!(runner.claim(&app).await.unwrap().attempt, 1);
    let projects = std::mem::take(&mut runner.projects);
    assert_eq!(runner.claim(&app).await, None);
    let run = run(&app, id).await;
    assert_eq!((&run["state"], &run["attempt"]), (&"queued".into(), &0.into()), "{run}");
    let known: Vec<String> = sqlx::query_scalar("select projects from runners").fetch_one(&app.pool).await.unwrap();
    assert_eq!(known, projects, "it has its recipes still");
    let ended = async || app.read("/api/v1/runners").await.json[0]["ended"].clone();
    assert_eq!(ended().await, true);
    runner.projects = projects;
    assert_eq!(runner.claim(&app).await.unwrap().run_id, id);
    assert_eq!(ended().await, false, "it is back");
    runner.projects.clear();
    runner.claim(&app).await;
    assert_eq!(Actor::new().claim(&app).await.unwrap().run_id, id);
}

#[tokio::test]
async fn a_report_that_an_earlier_version_stored_ends_its_job_too() {
    let app = App::new().await;
    let report = release("v1.0.0", 0).report();
    app.upload(&report).await;
    // That version wrote neither jobs nor the outbox.
    sqlx::query("delete from outbox").execute(&app.pool).await.unwrap();
    let id = ask(&app, "v1.0.0", json!({})).await;
    Actor::new().claim(&app).await.unwrap();
    for table in ["jobs", "live_events", "outbox"] {
        let sql = format!("alter table {table} disable trigger all; update {table} set run_id = '{}'", report.run_id);
        sqlx::raw_sql(sqlx::AssertSqlSafe(sql)).execute(&app.pool).await.unwrap();
    }
    end_lease(&app, report.run_id).await;
    assert_eq!(leases::run_once(&app.state).await.unwrap(), 1);
    assert_ne!(id, report.run_id);
    assert_eq!(state(&app, report.run_id).await, "done");
    assert_eq!(told(&app, report.run_id).await, events(&["requested", "finished"], "no_baseline"));
}

#[tokio::test]
async fn a_job_that_nobody_takes_expires() {
    let app = App::new().await;
    let id = ask(&app, "v1.0.0", json!({})).await;
    let late = "update jobs set take_by = now() - interval '1 second'";
    sqlx::query(late).execute(&app.pool).await.unwrap();
    assert_eq!(Actor::new().claim(&app).await, None);
    assert_eq!(leases::run_once(&app.state).await.unwrap(), 1);
    let over = run(&app, id).await;
    assert_eq!((&over["state"], &over["reason"]), (&"expired".into(), &"no runner took it".into()));
}

#[tokio::test]
async fn a_cancelled_run_ends_at_once_or_with_its_runner_s_next_word_or_with_its_lease() {
    let app = App::new().await;
    let (runner, other) = (Actor::new(), Actor::new());
    let cancel = json!({"reason": "not needed"});
    let ask_to_stop = async |id| app.ask("POST", &format!("/api/v1/runs/{id}/cancel"), &cancel).await;
    let [told_so, lost, waits] =
        [ask(&app, "a1", json!({})).await, ask(&app, "a2", json!({})).await, ask(&app, "a3", json!({})).await];
    assert_eq!(ask_to_stop(waits).await.json["state"], "cancelled");
    assert_eq!(ask_to_stop(waits).await.status, StatusCode::OK);

    let job = runner.claim(&app).await.unwrap();
    other.claim(&app).await.unwrap();
    for id in [told_so, lost] {
        assert_eq!(ask_to_stop(id).await.json["state"], "leased");
    }
    assert_eq!(runner.beat(&app, &job, Stage::Smoke).await.json["cancel"], "not needed");
    assert_eq!(runner.end(&app, &job, Ending::Released).await.status, StatusCode::NO_CONTENT);
    end_lease(&app, lost).await;
    leases::run_once(&app.state).await.unwrap();
    for id in [told_so, lost, waits] {
        let over = run(&app, id).await;
        assert_eq!((&over["state"], &over["reason"]), (&"cancelled".into(), &"not needed".into()));
        assert_eq!(told(&app, id).await.0.iter().filter(|event| *event == "run.finished").count(), 1);
    }
    let done = ask(&app, "a4", json!({})).await;
    app.upload(&report_of(done, &release("a4", 0))).await;
    assert_eq!(ask_to_stop(done).await.status, StatusCode::CONFLICT);
}

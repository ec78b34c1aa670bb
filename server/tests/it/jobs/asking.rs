//! Asking for runs, and who gets which.

use axum::http::StatusCode;
use plimsoll_server::access::Scope;
use serde_json::{Value, json};

use super::actor::{Actor, ask, run, state, told};
use crate::app::{App, release};

#[tokio::test]
async fn asking_twice_is_no_harm_and_another_request_under_the_same_id_is_refused() {
    let app = App::new().await;
    let id = uuid::Uuid::now_v7();
    let request = json!({"project": "sentiment", "revision": {"tag": "v1.0.0"}, "run_id": id});
    let first = app.ask("POST", "/api/v1/runs", &request).await;
    assert_eq!((first.status, &first.json["state"]), (StatusCode::CREATED, &"queued".into()), "{first:?}");
    let again = app.ask("POST", "/api/v1/runs", &request).await;
    assert_eq!((again.status, &again.json), (StatusCode::OK, &first.json));
    let mut other = request.clone();
    other["revision"]["tag"] = "v2.0.0".into();
    assert_eq!(app.ask("POST", "/api/v1/runs", &other).await.status, StatusCode::CONFLICT);
    // A run that was measured without being asked for.
    let report = release("v1.0.0", 0).report();
    app.upload(&report).await;
    other["run_id"] = report.run_id.to_string().into();
    assert_eq!(app.ask("POST", "/api/v1/runs", &other).await.status, StatusCode::CONFLICT);
    other["revision"] = json!({});
    assert_eq!(app.ask("POST", "/api/v1/runs", &other).await.status, StatusCode::UNPROCESSABLE_ENTITY);

    let acts: Vec<(String, String)> = sqlx::query_as("select action, subject from audit where action like 'run.%'")
        .fetch_all(&app.pool)
        .await
        .unwrap();
    assert_eq!(acts, [("run.create".to_owned(), id.to_string())]);
}

#[tokio::test]
async fn what_is_wrong_with_a_request_is_said_in_the_caller_s_words() {
    let app = App::new().await;
    for (body, said) in [
        (json!({"project": "sentiment", "revision": "v1.0.0"}), "expected an object with commit, tag or branch"),
        (json!("v1.0.0"), "expected an object with project and revision"),
        (
            json!({"project": "sentiment", "tag": "v1.0.0"}),
            "unknown field `tag`, expected one of `project`, `revision`",
        ),
    ] {
        let refused = app.ask("POST", "/api/v1/runs", &body).await;
        let detail = refused.json["detail"].as_str().unwrap();
        assert_eq!(refused.status, StatusCode::UNPROCESSABLE_ENTITY, "{refused:?}");
        assert!(detail.contains(said) && !detail.contains("struct"), "{detail}");
    }
    // A token for one project is not told to get one for all.
    let reader = app.token(Scope::Read, Some("sentiment")).await;
    let request = json!({"project": "sentiment", "revision": {"tag": "v1.0.0"}});
    let refused = app.ask_by(&reader, "POST", "/api/v1/runs", &request).await;
    assert_eq!(refused.status, StatusCode::FORBIDDEN);
    let detail = refused.json["detail"].as_str().unwrap();
    assert!(detail.ends_with("it needs the scope `upload` for the project"), "{detail}");
}

#[tokio::test]
async fn the_highest_priority_goes_first_then_the_project_that_waited_longest() {
    let app = App::new().await;
    let runner = Actor { projects: vec!["sentiment", "speech"], ..Actor::new() };
    let normal = ask(&app, "x1", json!({"priority": "normal"})).await;
    let second = ask(&app, "x2", json!({"priority": "normal"})).await;
    let speech = ask(&app, "x3", json!({"priority": "normal", "project": "speech"})).await;
    let pull = ask(&app, "x4", json!({"revision": {"branch": "fix", "pull_request": 7}})).await;
    let mut order = Vec::new();
    while let Some(job) = runner.claim(&app).await {
        order.push(job.run_id);
        runner.end(&app, &job, plimsoll_domain::job::Ending::Failed).await;
    }
    // The pull request was of `sentiment`: then `speech` has waited longer.
    assert_eq!(order, [pull, speech, normal, second]);
}

#[tokio::test]
async fn a_runner_gets_what_fits_its_labels_and_projects_and_its_token_reaches() {
    let app = App::new().await;
    let elsewhere = ask(&app, "v1.0.0", json!({"labels": {"gpu": "L20"}})).await;
    let other = ask(&app, "v1.0.0", json!({"project": "speech"})).await;
    let both = vec!["sentiment", "speech"];
    assert_eq!(Actor::new().claim(&app).await, None, "neither its label nor its project");

    let token = app.token(Scope::Agent, Some("sentiment")).await;
    let bound = Actor { projects: both.clone(), token: Some(token.clone()), ..Actor::new() };
    assert_eq!(bound.claim(&app).await, None, "of another project");
    let foreign = Actor { projects: vec!["speech"], token: Some(token), ..Actor::new() };
    assert_eq!(foreign.claim_answer(&app, 0).await.status, StatusCode::FORBIDDEN);
    let uploads = Actor { token: Some(app.token(Scope::Upload, None).await), ..Actor::new() };
    assert_eq!(uploads.claim_answer(&app, 0).await.status, StatusCode::FORBIDDEN);

    let free = Actor { projects: both, ..Actor::new() };
    assert_eq!(free.claim(&app).await.unwrap().run_id, other);
    // Whoever knows a runner's id does not take from it what their token does not reach.
    let thief = Actor { id: free.id, projects: vec!["sentiment"], token: bound.token.clone() };
    assert_eq!(thief.claim_answer(&app, 0).await.status, StatusCode::CONFLICT);
    assert_eq!((state(&app, other).await, state(&app, elsewhere).await), ("leased".to_owned(), "queued".to_owned()));
}

#[tokio::test]
async fn only_the_newest_of_a_pull_request_is_carried_out() {
    let app = App::new().await;
    let runner = Actor::new();
    let key = json!({"supersedes": "pull 7"});
    let first = ask(&app, "v1.0.0", key.clone()).await;
    let job = runner.claim(&app).await.unwrap();
    assert_eq!(job.run_id, first);
    let second = ask(&app, "v1.0.1", key.clone()).await;
    let third = ask(&app, "v1.0.2", key).await;
    assert_eq!(state(&app, second).await, "cancelled");
    assert_eq!(run(&app, second).await["reason"], format!("superseded by run {third}"));
    assert_eq!(
        told(&app, second).await,
        (vec!["run.requested".to_owned(), "run.finished".to_owned()], Some("cancelled".to_owned()))
    );
    let beat = runner.beat(&app, &job, plimsoll_domain::job::Stage::Checkout).await;
    assert_eq!(beat.json["cancel"], format!("superseded by run {second}"));
    assert_eq!(state(&app, third).await, "queued");
}

#[tokio::test]
async fn lists_leave_out_what_the_caller_may_not_read() {
    let app = App::new().await;
    let seen = ask(&app, "v1.0.0", json!({})).await;
    let hidden = ask(&app, "v1.0.0", json!({"project": "speech"})).await;
    sqlx::query("update projects set visibility = 'private' where slug = 'speech'").execute(&app.pool).await.unwrap();
    let ids = |runs: Value| runs.as_array().unwrap().iter().map(|run| run["run_id"].clone()).collect::<Vec<_>>();
    let (seen, hidden): (Value, Value) = (seen.to_string().into(), hidden.to_string().into());
    assert_eq!(ids(app.get("/api/v1/runs").await.json), std::slice::from_ref(&seen));
    assert_eq!(ids(app.get("/api/v1/runs?project=speech").await.json), Vec::<Value>::new());
    let own = app.token(Scope::Read, Some("speech")).await;
    assert_eq!(ids(app.ask_by(&own, "GET", "/api/v1/runs", &()).await.json), [hidden.clone(), seen.clone()]);
    assert_eq!(
        ids(app.ask("GET", &format!("/api/v1/runs?before={}", hidden.as_str().unwrap()), &()).await.json),
        [seen]
    );
    assert_eq!(app.get(&format!("/api/v1/runs/{}", hidden.as_str().unwrap())).await.status, StatusCode::NOT_FOUND);
    assert_eq!(ids(app.ask("GET", "/api/v1/runs?state=done", &()).await.json), Vec::<Value>::new());

    Actor { projects: vec!["speech"], ..Actor::new() }.claim(&app).await.unwrap();
    assert_eq!(app.get("/api/v1/runners").await.status, StatusCode::UNAUTHORIZED);
    assert_eq!(app.ask_by(&own, "GET", "/api/v1/runners", &()).await.json[0]["projects"], json!(["speech"]));
    let other = app.token(Scope::Read, Some("sentiment")).await;
    assert_eq!(app.ask_by(&other, "GET", "/api/v1/runners", &()).await.json, json!([]));
}

#[tokio::test]
async fn a_runner_asks_which_projects_its_token_reaches() {
    let app = App::new().await;
    let reach = async |scope, project| {
        let token = app.token(scope, project).await;
        app.ask_by(&token, "GET", "/api/v1/agent/reach", &()).await
    };
    assert_eq!(reach(Scope::Agent, Some("speech")).await.json, json!({"everywhere": false, "projects": ["speech"]}));
    assert_eq!(reach(Scope::Admin, None).await.json, json!({"everywhere": true, "projects": []}));
    assert_eq!(reach(Scope::Upload, None).await.status, StatusCode::FORBIDDEN);
    assert_eq!(app.get("/api/v1/agent/reach").await.status, StatusCode::UNAUTHORIZED);
}

#[tokio::test]
async fn a_token_brings_a_bounded_number_of_runners() {
    let app = App::new().await;
    let by = |token: &str| Actor { token: Some(token.to_owned()), ..Actor::new() };
    let token = app.token(Scope::Agent, None).await;
    let known = by(&token);
    assert_eq!(known.claim_answer(&app, 0).await.status, StatusCode::NO_CONTENT);
    let more = "insert into runners (id, name, labels, version, projects, token)
                select gen_random_uuid(), 'r', '{}', '1', '{}', token from runners, generate_series(1, 999)";
    sqlx::query(more).execute(&app.pool).await.unwrap();

    let refused = by(&token).claim_answer(&app, 0).await;
    let detail = refused.json["detail"].as_str().unwrap();
    assert!(refused.status == StatusCode::TOO_MANY_REQUESTS && detail.contains("1000 runners already"), "{refused:?}");
    assert_eq!(known.claim_answer(&app, 0).await.status, StatusCode::NO_CONTENT, "it is known");
    let other = app.token(Scope::Agent, None).await;
    assert_eq!(by(&other).claim_answer(&app, 0).await.status, StatusCode::NO_CONTENT, "another token");
    sqlx::query("delete from runners where id = (select id from runners where name = 'r' limit 1)")
        .execute(&app.pool)
        .await
        .unwrap();
    assert_eq!(by(&token).claim_answer(&app, 0).await.status, StatusCode::NO_CONTENT, "there is room again");
}

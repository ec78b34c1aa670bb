//! Uploads: idempotent, whole or not at all.

use std::io::Write as _;

use axum::body::Body;
use axum::http::{Request, StatusCode};
use plimsoll_server::store::reports;
use plimsoll_server::tasks::pack;
use serde_json::Value;

use crate::app::{App, release, signed};

#[tokio::test]
async fn a_report_sent_twice_is_one_snapshot() {
    let app = App::new().await;
    let report = release("v1.0.0", 0).report();
    let first = app.upload(&report).await;
    assert_eq!(first.json["created"], true);
    assert_eq!(first.json["run_id"], report.run_id.to_string());
    assert_eq!(first.json["url"], format!("/sentiment/snapshots/{}", report.run_id));
    assert_eq!(first.json["comparison"]["verdict"], "no_baseline");

    // The same report in other clothes.
    let value: Value = serde_json::from_str(&report.to_json()).unwrap();
    let pretty = serde_json::to_string_pretty(&value).unwrap();
    let again = app.post(pretty.clone()).await;
    assert_eq!((again.status, &again.json["created"]), (StatusCode::OK, &false.into()));
    assert_eq!(again.json["comparison"], first.json["comparison"]);

    let mut gzip = flate2::write::GzEncoder::new(Vec::new(), flate2::Compression::fast());
    gzip.write_all(pretty.as_bytes()).unwrap();
    let request = signed(Request::post("/api/v1/snapshots")).header("content-encoding", "gzip");
    let packed = app.send(request.body(Body::from(gzip.finish().unwrap())).unwrap()).await;
    assert_eq!(packed.status, StatusCode::OK, "{packed:?}");

    assert_eq!(app.rows().await, [1, 1, 1, 1, 1]);
}

#[tokio::test]
async fn a_report_is_stored_as_it_came_and_known_in_other_clothes() {
    let app = App::new().await;
    let report = release("v1.0.0", 0).report();
    let value: Value = serde_json::from_str(&report.to_json()).unwrap();
    let pretty = serde_json::to_string_pretty(&value).unwrap();
    assert_eq!(app.post(pretty.clone()).await.status, StatusCode::CREATED);
    let stored = reports::get(&app.pool, report.run_id).await.unwrap().unwrap();
    assert_eq!(pack::json(&stored).unwrap(), pretty.as_bytes());
    let zstd = zstd::bulk::compress(pretty.as_bytes(), 19).unwrap();
    let request = signed(Request::post("/api/v1/snapshots")).header("content-encoding", "zstd");
    assert_eq!(app.send(request.body(Body::from(zstd)).unwrap()).await.status, StatusCode::OK);

    for same in [pretty.clone(), report.to_json(), format!(" {pretty}")] {
        let again = app.post(same).await;
        assert_eq!((again.status, &again.json["created"]), (StatusCode::OK, &false.into()));
    }
    let mut other = report;
    other.phases[0].duration_ms += 1;
    assert_eq!(app.post(other.to_json()).await.status, StatusCode::CONFLICT);
}

#[tokio::test]
async fn another_report_under_the_same_run_id_is_refused_and_changes_nothing() {
    let app = App::new().await;
    let report = release("v1.0.0", 0).report();
    app.upload(&report).await;
    let before = app.get(&format!("/api/v1/snapshots/{}", report.run_id)).await.json;

    let mut other = report.clone();
    other.revision.tag = Some("v9.9.9".to_owned());
    let refused = app.post(other.to_json()).await;
    assert_eq!((refused.status, refused.kind.as_str()), (StatusCode::CONFLICT, "application/problem+json"));
    assert!(refused.json["detail"].as_str().unwrap().contains(&report.run_id.to_string()), "{refused:?}");
    assert_eq!(app.get(&format!("/api/v1/snapshots/{}", report.run_id)).await.json, before);
}

#[tokio::test]
async fn of_many_uploads_of_one_run_at_once_one_creates() {
    let app = App::new().await;
    let json = release("v1.0.0", 0).report().to_json();
    let mut answers = Vec::new();
    let (a, b, c, d) =
        tokio::join!(app.post(json.clone()), app.post(json.clone()), app.post(json.clone()), app.post(json.clone()));
    answers.extend([a, b, c, d]);
    assert!(answers.iter().all(|answer| answer.status.is_success()), "{answers:?}");
    assert_eq!(answers.iter().filter(|answer| answer.status == StatusCode::CREATED).count(), 1);
    assert!(answers.iter().all(|answer| answer.json["comparison"] == answers[0].json["comparison"]));
    assert_eq!(app.rows().await, [1, 1, 1, 1, 1]);
}

#[tokio::test]
async fn a_snapshot_is_never_stored_without_its_verdict() {
    let app = App::new().await;
    let fail =
        "create function fail() returns trigger language plpgsql as $$ begin raise 'a secret of the database'; end $$;
                create trigger fail before insert on verdicts for each row execute function fail()";
    sqlx::raw_sql(fail).execute(&app.pool).await.unwrap();
    let report = release("v1.0.0", 0).report();
    let failed = app.post(report.to_json()).await;
    assert_eq!((failed.status, failed.kind.as_str()), (StatusCode::INTERNAL_SERVER_ERROR, "application/problem+json"));
    assert!(failed.json["request_id"].is_string() && !failed.json.to_string().contains("secret"), "{failed:?}");
    assert_eq!(failed.json["request_id"], failed.headers["x-request-id"].to_str().unwrap());
    assert_eq!(app.rows().await, [0; 5]);

    sqlx::raw_sql("drop trigger fail on verdicts").execute(&app.pool).await.unwrap();
    app.upload(&report).await;
    assert_eq!(app.rows().await, [1, 1, 1, 1, 1]);
}

#[tokio::test]
async fn an_invalid_run_is_kept_and_shown_but_never_compared_with() {
    let app = App::new().await;
    let mut spoiled = release("v1.0.0", 0);
    spoiled.engine_cpu = 0.97;
    let spoiled = spoiled.report();
    assert!(!spoiled.is_valid(), "the example must be invalid");
    assert_eq!(app.upload(&spoiled).await.json["comparison"]["verdict"], "invalid");
    let shown = app.get(&format!("/api/v1/snapshots/{}", spoiled.run_id)).await.json;
    assert_eq!(
        (&shown["valid"], &shown["accepted"], &shown["verdict"]),
        (&false.into(), &false.into(), &"invalid".into())
    );

    let next = release("v1.1.0", 1).report();
    assert_eq!(app.upload(&next).await.json["comparison"]["verdict"], "no_baseline");
}

#[tokio::test]
async fn what_comes_by_zstd_is_stored_byte_for_byte() {
    let app = App::new().await;
    let report = release("v1.0.0", 0).report();
    let packed = zstd::bulk::compress(report.to_json().as_bytes(), 3).unwrap();
    let request = signed(Request::post("/api/v1/snapshots")).header("content-encoding", "zstd");
    assert_eq!(app.send(request.body(Body::from(packed.clone())).unwrap()).await.status, StatusCode::CREATED);
    let stored = reports::get(&app.pool, report.run_id).await.unwrap().unwrap();
    assert_eq!(stored.body, packed);
    assert_eq!(pack::unpack(&stored).unwrap(), report);
    assert_eq!(app.post(report.to_json()).await.json["created"], false);
}

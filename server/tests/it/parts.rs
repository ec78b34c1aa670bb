//! Uploads in parts: cut anywhere, repeated anywhere, stored once.

use std::io::Write as _;

use axum::body::Body;
use axum::http::{Request, StatusCode};
use plimsoll_domain::ids::RunId;
use plimsoll_domain::report::{MAX_BYTES, Report};
use serde_json::{Value, json};
use sha2::{Digest as _, Sha256};

use crate::app::{Answer, App, release, signed};

fn packed(report: &Report) -> Vec<u8> {
    let mut gzip = flate2::write::GzEncoder::new(Vec::new(), flate2::Compression::fast());
    gzip.write_all(report.to_json().as_bytes()).unwrap();
    gzip.finish().unwrap()
}

fn hex(bytes: &[u8]) -> String {
    Sha256::digest(bytes).iter().map(|byte| format!("{byte:02x}")).collect()
}

async fn begin(app: &App, run: RunId, bytes: &[u8]) -> Answer {
    let body = json!({ "sha256": hex(bytes), "bytes": bytes.len() }).to_string();
    app.send(signed(Request::put(format!("/api/v1/uploads/{run}"))).body(body.into()).unwrap()).await
}

async fn append(app: &App, run: RunId, offset: usize, part: &[u8]) -> Answer {
    let request = signed(Request::patch(format!("/api/v1/uploads/{run}"))).header("upload-offset", offset);
    app.send(request.body(Body::from(part.to_vec())).unwrap()).await
}

async fn finish(app: &App, run: RunId) -> Answer {
    app.send(signed(Request::post(format!("/api/v1/uploads/{run}/finish"))).body(Body::empty()).unwrap()).await
}

async fn parts(app: &App) -> i64 {
    sqlx::query_scalar("select count(*) from upload_parts").fetch_one(&app.pool).await.unwrap()
}

fn received(answer: &Answer) -> &Value {
    &answer.json["received"]
}

#[tokio::test]
async fn a_report_in_parts_is_stored_as_if_sent_whole_and_each_step_may_be_repeated() {
    let app = App::new().await;
    let report = release("v1.0.0", 0).report();
    let (run, bytes) = (report.run_id, packed(&report));
    let half = bytes.len() / 2;
    for _ in 0..2 {
        let begun = begin(&app, run, &bytes).await;
        assert_eq!((begun.status, received(&begun)), (StatusCode::OK, &json!(0)));
    }
    let first = append(&app, run, 0, &bytes[..half]).await;
    assert_eq!((first.status, received(&first)), (StatusCode::OK, &json!(half)));
    // Its answer was lost; a part too far; an early end.
    for answer in
        [append(&app, run, 0, &bytes[..half]).await, append(&app, run, half + 1, &[1]).await, finish(&app, run).await]
    {
        assert_eq!((answer.status, received(&answer)), (StatusCode::CONFLICT, &json!(half)), "{answer:?}");
        assert_eq!(answer.kind, "application/problem+json");
    }
    assert_eq!(received(&begin(&app, run, &bytes).await), &json!(half), "it goes on where it was");
    assert_eq!(append(&app, run, half, &bytes[half..]).await.status, StatusCode::OK);
    let stored = finish(&app, run).await;
    assert_eq!((stored.status, &stored.json["created"]), (StatusCode::CREATED, &json!(true)), "{stored:?}");
    assert_eq!(stored.json["url"], format!("/sentiment/snapshots/{run}"));
    assert_eq!(parts(&app).await, 0);

    // After the end.
    assert_eq!(received(&begin(&app, run, &bytes).await), &json!(bytes.len()));
    let again = finish(&app, run).await;
    assert_eq!((again.status, &again.json["created"]), (StatusCode::OK, &json!(false)));
    assert_eq!(again.json["comparison"], stored.json["comparison"]);
    // The same report in one piece, and in parts but packed differently.
    assert_eq!(app.post(report.to_json()).await.status, StatusCode::OK);
    let mut whole = flate2::write::GzEncoder::new(Vec::new(), flate2::Compression::best());
    whole.write_all(report.to_json().as_bytes()).unwrap();
    let whole = whole.finish().unwrap();
    assert_eq!(received(&begin(&app, run, &whole).await), &json!(0));
    append(&app, run, 0, &whole).await;
    assert_eq!(finish(&app, run).await.status, StatusCode::OK);
    // Another report under its id.
    let mut other = report.clone();
    other.revision.tag = Some("v9.9.9".to_owned());
    let other = packed(&other);
    begin(&app, run, &other).await;
    append(&app, run, 0, &other).await;
    let refused = finish(&app, run).await;
    assert_eq!((refused.status, received(&refused)), (StatusCode::CONFLICT, &Value::Null));
    assert_eq!(app.rows().await, [1, 1, 1, 1, 1]);
}

#[tokio::test]
async fn of_many_parts_and_ends_at_once_each_counts_once() {
    let app = App::new().await;
    let report = release("v1.0.0", 0).report();
    let (run, bytes) = (report.run_id, packed(&report));
    begin(&app, run, &bytes).await;
    let (a, b, c) =
        tokio::join!(append(&app, run, 0, &bytes), append(&app, run, 0, &bytes), append(&app, run, 0, &bytes));
    let stored = [&a, &b, &c].iter().filter(|answer| answer.status == StatusCode::OK).count();
    assert_eq!(stored, 1, "{a:?} {b:?} {c:?}");
    assert!([a, b, c].iter().all(|answer| received(answer) == &json!(bytes.len())));
    let (a, b, c) = tokio::join!(finish(&app, run), finish(&app, run), finish(&app, run));
    assert_eq!([&a, &b, &c].iter().filter(|answer| answer.status == StatusCode::CREATED).count(), 1);
    assert!([a, b, c].iter().all(|answer| answer.status.is_success()));
    assert_eq!(app.rows().await, [1, 1, 1, 1, 1]);
}

#[tokio::test]
async fn spoilt_bytes_begin_anew() {
    let app = App::new().await;
    let report = release("v1.0.0", 0).report();
    let (run, bytes) = (report.run_id, packed(&report));
    begin(&app, run, &bytes).await;
    let mut spoilt = bytes.clone();
    spoilt[bytes.len() / 2] ^= 1;
    append(&app, run, 0, &spoilt).await;
    let refused = finish(&app, run).await;
    assert_eq!((refused.status, received(&refused)), (StatusCode::CONFLICT, &json!(0)), "{refused:?}");
    append(&app, run, 0, &bytes).await;
    assert_eq!(finish(&app, run).await.status, StatusCode::CREATED);
}

#[tokio::test]
async fn what_does_not_fit_is_refused() {
    let app = App::new().await;
    let report = release("v1.0.0", 0).report();
    let (run, bytes) = (report.run_id, packed(&report));
    let put =
        |body: Value| signed(Request::put(format!("/api/v1/uploads/{run}"))).body(body.to_string().into()).unwrap();
    for (body, status) in [
        (json!({ "sha256": hex(&bytes), "bytes": MAX_BYTES + 1 }), 413),
        (json!({ "sha256": hex(&bytes), "bytes": 0 }), 422),
        (json!({ "sha256": "0".repeat(63) + "é", "bytes": 7 }), 422),
        (json!({ "sha256": "00", "bytes": 7 }), 422),
        (json!({ "sha256": hex(&bytes), "bytes": -7 }), 422),
        (json!({ "sha256": hex(&bytes), "bytes": 7, "more": 1 }), 422),
        (json!([]), 422),
    ] {
        let answer = app.send(put(body)).await;
        assert_eq!((answer.status.as_u16(), answer.kind.as_str()), (status, "application/problem+json"), "{answer:?}");
    }
    assert_eq!(append(&app, run, 0, b"part").await.status, StatusCode::NOT_FOUND);
    assert_eq!(finish(&app, run).await.status, StatusCode::NOT_FOUND);
    begin(&app, run, b"seven b").await;
    assert_eq!(append(&app, run, 0, b"eight by").await.status, StatusCode::PAYLOAD_TOO_LARGE);
    assert_eq!(append(&app, run, 0, &vec![0; (1 << 20) + 1]).await.status, StatusCode::PAYLOAD_TOO_LARGE);
    let nowhere = signed(Request::patch(format!("/api/v1/uploads/{run}"))).body(Body::from("part")).unwrap();
    assert_eq!(app.send(nowhere).await.status, StatusCode::BAD_REQUEST);
    assert_eq!(parts(&app).await, 0);
    // Whole, but no report; a report of another run.
    append(&app, run, 0, b"seven b").await;
    assert_eq!(finish(&app, run).await.status, StatusCode::BAD_REQUEST);
    let other = release("v1.1.0", 1).report().run_id;
    begin(&app, other, &bytes).await;
    append(&app, other, 0, &bytes).await;
    assert_eq!(finish(&app, other).await.status, StatusCode::UNPROCESSABLE_ENTITY);
    assert_eq!(app.rows().await, [0; 5]);
}

#[tokio::test]
async fn an_owner_has_few_open_at_a_time_and_nobody_else_s() {
    let app = App::new().await;
    let runs: Vec<RunId> = (0..9).map(|day| release("v1.0.0", day).report().run_id).collect();
    for run in &runs[..8] {
        assert_eq!(begin(&app, *run, b"bytes").await.status, StatusCode::OK);
    }
    assert_eq!(begin(&app, runs[8], b"bytes").await.status, StatusCode::TOO_MANY_REQUESTS);
    assert_eq!(begin(&app, runs[0], b"other").await.status, StatusCode::OK, "one of the eight");
    // Another owner has others, of the same run too.
    append(&app, runs[0], 0, b"oth").await;
    let body = json!({ "sha256": hex(b"other"), "bytes": 5 });
    let own = app.change("PUT", &format!("/api/v1/uploads/{}", runs[0]), body).await;
    assert_eq!((own.status, received(&own)), (StatusCode::OK, &json!(0)));
    // What stalls makes room.
    sqlx::query("update uploads set updated_at = now() - interval '2 hours' where run_id = $1")
        .bind(runs[7].0)
        .execute(&app.pool)
        .await
        .unwrap();
    assert_eq!(begin(&app, runs[8], b"bytes").await.status, StatusCode::OK);
}

//! What is refused says what and where, and leaves nothing behind.

use std::io::Write as _;

use axum::body::Body;
use axum::http::{Request, StatusCode};
use plimsoll_domain::report::MAX_BYTES;
use plimsoll_domain::synthetic::Synthetic;
use serde_json::{Value, json};

use crate::app::{App, TOKEN, release, signed};

fn gzip(bytes: &[u8]) -> Vec<u8> {
    let mut gzip = flate2::write::GzEncoder::new(Vec::new(), flate2::Compression::fast());
    gzip.write_all(bytes).unwrap();
    gzip.finish().unwrap()
}

#[tokio::test]
async fn bad_reports_are_refused_with_what_and_where() {
    let app = App::new().await;
    let mut whole = Synthetic { branch: Some("main".to_owned()), ..release("v1.0.0", 0) }.report();
    whole.testbed.name = Some("host".to_owned());
    let good: Value = serde_json::from_str(&whole.to_json()).unwrap();
    // Nothing that an index could make shorter.
    let long = || (0..700).map(|n: u32| format!("{:08x}", n.wrapping_mul(2_654_435_761))).take(500).collect::<String>();
    let with = |pointer: &str, value: Value| {
        let mut report = good.clone();
        *report.pointer_mut(pointer).expect("the report has it") = value;
        report.to_string()
    };
    let text = good.to_string();
    let max_error_rate = "/plan/phases/staircase/max_error_rate";
    let cases: [(&str, Vec<u8>, u16, &str); 19] = [
        ("empty", Vec::new(), 400, "EOF"),
        ("cut", text.as_bytes()[..text.len() / 2].to_vec(), 400, "line 1 column"),
        ("not JSON", b"<html>".to_vec(), 400, "line 1 column 1"),
        ("not a report", b"{}".to_vec(), 400, "schema"),
        ("NaN", text.replacen("\"start_ms\":0", "\"start_ms\":NaN", 1).into_bytes(), 400, "line 1 column"),
        ("infinite", with(max_error_rate, json!("x")).replace("\"x\"", "1e999").into_bytes(), 400, "line 1 column"),
        ("unknown field", text.replacen('{', "{\"surprise\":1,", 1).into_bytes(), 400, "surprise"),
        ("newer", with("/schema", json!(999)).into_bytes(), 422, "newer plimsoll"),
        ("wrong digest", with("/plan_digest", json!("0123456789ab")).into_bytes(), 422, "plan_digest"),
        ("ended before it began", with("/finished_at", json!("2001-01-01T00:00:00Z")).into_bytes(), 422, "finished_at"),
        ("bad project", with("/project", json!("../etc")).into_bytes(), 400, "project"),
        ("no workers", with("/phases/0/steps/0/workers", json!(0)).into_bytes(), 422, "phases[0].steps[0]"),
        ("a long tag", with("/revision/tag", json!(long())).into_bytes(), 422, "revision.tag"),
        ("a long branch", with("/revision/branch", json!(long())).into_bytes(), 422, "revision.branch"),
        ("a long testbed", with("/testbed/name", json!(long())).into_bytes(), 422, "testbed.name"),
        ("an early start", with("/started_at", json!("-004800-01-01T00:00:00Z")).into_bytes(), 422, "started_at"),
        ("a late end", with("/finished_at", json!("2200-01-01T00:00:00Z")).into_bytes(), 422, "finished_at"),
        ("NUL", with("/revision/tag", json!("v1\u{0}")).into_bytes(), 422, "revision.tag"),
        ("too large", vec![b' '; MAX_BYTES + 1], 413, "bytes"),
    ];
    for (name, body, status, detail) in cases {
        let answer = app.post(body).await;
        assert_eq!(answer.status.as_u16(), status, "{name}: {answer:?}");
        assert_eq!(answer.kind, "application/problem+json", "{name}");
        assert!(answer.json["detail"].as_str().unwrap_or_default().contains(detail), "{name}: {answer:?}");
    }
    assert_eq!(app.rows().await, [0; 5]);
}

#[tokio::test]
async fn bad_requests_are_refused() {
    let app = App::new().await;
    let report = release("v1.0.0", 0).report().to_json();
    let post = || Request::post("/api/v1/snapshots");
    let zip = |bytes: &[u8]| signed(post()).header("content-encoding", "gzip").body(Body::from(gzip(bytes))).unwrap();
    let body = || Body::from(report.clone());
    let mut cut = gzip(report.as_bytes());
    cut.truncate(cut.len() / 2);
    let cut = signed(post()).header("content-encoding", "gzip").body(Body::from(cut)).unwrap();
    let long = signed(post()).header("content-length", (MAX_BYTES + 1).to_string()).body(Body::empty()).unwrap();
    let cases = [
        ("a bomb", zip(&vec![b' '; MAX_BYTES + 1]), 413),
        ("cut gzip", cut, 400),
        ("said to be long", long, 413),
        ("another encoding", signed(post()).header("content-encoding", "br").body(body()).unwrap(), 415),
        (
            "another type",
            post()
                .header("authorization", format!("Bearer {TOKEN}"))
                .header("content-type", "text/xml")
                .body(body())
                .unwrap(),
            415,
        ),
        ("no token", post().body(body()).unwrap(), 401),
        ("a wrong token", post().header("authorization", "Bearer wrong").body(body()).unwrap(), 401),
        ("half a token", post().header("authorization", format!("Bearer {}", &TOKEN[1..])).body(body()).unwrap(), 401),
        ("another scheme", post().header("authorization", format!("Basic {TOKEN}")).body(body()).unwrap(), 401),
        ("no such method", signed(Request::delete("/api/v1/snapshots")).body(Body::empty()).unwrap(), 405),
        ("no such endpoint", Request::get("/api/v1/nothing").body(Body::empty()).unwrap(), 404),
        ("no run id", Request::get("/api/v1/snapshots/7").body(Body::empty()).unwrap(), 400),
        ("no such project", Request::get("/api/v1/projects/nothing").body(Body::empty()).unwrap(), 404),
        (
            "half a question",
            signed(Request::get("/api/v1/projects/x/pinned-load?plan=0123456789ab")).body(Body::empty()).unwrap(),
            400,
        ),
        (
            "an unknown question",
            signed(Request::get("/api/v1/projects/x/snapshots?since=1")).body(Body::empty()).unwrap(),
            400,
        ),
    ];
    for (name, request, status) in cases {
        let answer = app.send(request).await;
        assert_eq!(answer.status.as_u16(), status, "{name}: {answer:?}");
        assert_eq!(answer.kind, "application/problem+json", "{name}");
        assert_eq!(answer.json["status"], status, "{name}");
        let challenged = answer.headers.contains_key("www-authenticate");
        assert_eq!(challenged, answer.status == StatusCode::UNAUTHORIZED, "{name}");
    }
    assert_eq!(app.rows().await, [0; 5]);
}

#[tokio::test]
async fn a_policy_out_of_bounds_is_refused() {
    let app = App::new().await;
    for (body, status) in [
        (json!({"p99_increase": -0.1, "capacity_decrease": 0.05, "error_rate_points": 0.001}), 422),
        (json!({"p99_increase": 0.1, "capacity_decrease": 5.0, "error_rate_points": 0.001}), 422),
        (json!({"p99_increase": 0.1, "capacity_decrease": 0.05, "error_rate_points": 0.001, "x": 1}), 422),
    ] {
        let answer = app.put("/api/v1/projects/sentiment/policy", body.to_string()).await;
        assert_eq!((answer.status.as_u16(), answer.kind.as_str()), (status, "application/problem+json"), "{answer:?}");
    }
    let unsigned = Request::put("/api/v1/projects/sentiment/policy").body(Body::from("{}")).unwrap();
    assert_eq!(app.send(unsigned).await.status, StatusCode::UNAUTHORIZED);
    // A policy that is in order, by a token that only uploads.
    let lenient = json!({"p99_increase": 5.0, "capacity_decrease": 0.9, "error_rate_points": 0.5}).to_string();
    let uploader = signed(Request::put("/api/v1/projects/sentiment/policy")).body(Body::from(lenient)).unwrap();
    assert_eq!(app.send(uploader).await.status, StatusCode::FORBIDDEN);
    assert_eq!(app.rows().await, [0; 5]);
}

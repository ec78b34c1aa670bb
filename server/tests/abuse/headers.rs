//! What every answer tells a browser, whatever it answers.

use axum::body::Body;
use axum::http::Request;
use plimsoll_domain::report::MAX_BYTES;

use crate::target::{TOKEN, Target, small};

#[tokio::test(flavor = "multi_thread")]
async fn every_kind_of_answer_says_what_a_browser_may_do_with_it() {
    let target = Target::new().await;
    let report = small(0).report();
    assert_eq!(target.upload(report.to_json()).await.status.as_u16(), 201);
    let run = report.run_id;
    let get = |path: &str| Request::get(path).header("authorization", format!("Bearer {TOKEN}"));
    let page = |path: &str| get(path).header("accept", "text/html");
    let empty = |request: axum::http::request::Builder| request.body(Body::empty()).unwrap();
    let long = get("/").method("POST").uri("/api/v1/snapshots").header("content-length", (MAX_BYTES + 1).to_string());
    let foreign = Request::post("/sign-in").header("sec-fetch-site", "cross-site");
    let cases = [
        ("a page", empty(page("/")), 200),
        ("a redirect", empty(page("/sentiment")), 303),
        ("a document", empty(get(&format!("/api/v1/snapshots/{run}"))), 200),
        ("a report", empty(get(&format!("/api/v1/snapshots/{run}/report"))), 200),
        ("an asset", empty(get("/assets/style.css")), 200),
        ("health", empty(get("/healthz")), 200),
        ("a missing page", empty(page("/nothing/at/all")), 404),
        ("a missing project", empty(page("/nothing")), 404),
        ("a missing document", empty(get("/api/v1/nothing")), 404),
        ("a bad request", empty(get("/api/v1/snapshots/7")), 400),
        ("no token", empty(Request::get("/api/v1/tokens")), 401),
        ("a foreign form", empty(foreign), 403),
        ("another method", empty(get("/").method("DELETE").uri("/api/v1/snapshots")), 405),
        ("a large body", empty(long), 413),
        ("no document", empty(get("/").method("POST").uri("/api/v1/runs")), 415),
        ("a head alone", empty(get("/").method("HEAD")), 200),
    ];
    for (what, request, status) in cases {
        let seen = target.send(request).await;
        assert_eq!(seen.status.as_u16(), status, "{what}: {}", seen.text());
        let header = |name: &str| seen.headers.get(name).and_then(|value| value.to_str().ok()).unwrap_or_default();
        let policy = header("content-security-policy");
        for part in ["default-src 'none'", "frame-ancestors 'none'", "base-uri 'none'", "form-action 'self'"] {
            assert!(policy.contains(part), "{what}: {policy:?}");
        }
        assert!(!policy.contains("unsafe"), "{what}: {policy}");
        assert_eq!(header("x-content-type-options"), "nosniff", "{what}");
        assert_eq!(header("referrer-policy"), "same-origin", "{what}");
        assert!(header("cache-control").contains("private") || what == "an asset", "{what}");
        assert!(!header("x-request-id").is_empty(), "{what}");
        assert!(!seen.headers.contains_key("server") && !seen.headers.contains_key("x-powered-by"), "{what}");
    }
}

//! What holds for every page: headers, assets, failures.

use axum::body::Body;
use axum::http::{Request, StatusCode};

use crate::site::{Site, release};

#[tokio::test]
async fn an_empty_server_says_how_to_begin() {
    let site = Site::new(&[]).await;
    let page = site.page("/").await;
    assert!(page.one(".say").contains("Nothing has been measured yet"));
    assert!(page.body.contains("plimsoll init"));
}

#[tokio::test]
async fn pages_allow_nothing_but_their_own_sheet() {
    let report = release("v1.0.0", 0, 10).report();
    let site = Site::new(std::slice::from_ref(&report)).await;
    for path in ["/", "/methodology", "/sentiment/history", &format!("/sentiment/snapshots/{}", report.run_id)] {
        let page = site.page(path).await;
        let policy = page.header("content-security-policy");
        assert!(policy.contains("default-src 'none'") && policy.contains("style-src 'self'"), "{policy}");
        assert!(!policy.contains("unsafe"), "{policy}");
        assert_eq!(page.header("x-content-type-options"), "nosniff");
        for forbidden in ["<script", "style=", "onclick", "javascript:", "http://www.w3.org/2000/svg\" style"] {
            assert!(!page.body.contains(forbidden), "{forbidden} on {path}");
        }
        assert_eq!(page.all("h1").len(), 1, "{path}");
        assert_eq!(page.attributes("html", "lang"), ["en"]);
        assert!(page.all("a[href='/methodology']").len() > 1, "{path} does not link the methodology");
    }
}

#[tokio::test]
async fn assets_are_kept_for_ever_under_their_hash() {
    let site = Site::new(&[]).await;
    let page = site.page("/").await;
    for address in page.attributes("link", "href") {
        let asset = site.page(&address).await;
        assert!(asset.header("cache-control").contains("immutable"), "{address}");
        assert!(["text/css; charset=utf-8", "image/svg+xml"].contains(&asset.header("content-type")), "{address}");
    }
    let stale = site.page("/assets/style.000000000000.css").await;
    assert_eq!(stale.header("cache-control"), "no-cache");
    assert_eq!(site.get("/assets/other.css").await.status, StatusCode::NOT_FOUND);
    assert_eq!(site.page("/favicon.ico").await.header("content-type"), "image/svg+xml");
}

#[tokio::test]
async fn what_is_not_there_is_a_page_for_browsers_and_a_problem_for_programs() {
    let site = Site::new(&[release("v1.0.0", 0, 10).report()]).await;
    let missing = [
        "/nowhere",
        "/nowhere/history",
        "/sentiment/snapshots/v9.9.9",
        "/sentiment/snapshots/01234567-89ab-cdef-0123-456789abcdef",
        "/sentiment/compare/v1.0.0...v9.9.9",
        "/sentiment/compare/v1.0.0",
        "/a/b/c/d",
        "/<script>",
    ];
    for path in missing {
        let path = path.replace('<', "%3C").replace('>', "%3E");
        let page = site.get(&path).await;
        assert_eq!(page.status, StatusCode::NOT_FOUND, "{path}");
        assert_eq!(page.header("content-type"), "text/html; charset=utf-8", "{path}");
        assert!(page.one(".say").contains("Nothing is here") && !page.body.contains("<script"), "{path}");
        assert!(!page.all("main a[href='/']").is_empty());
    }
    let program = site.send(Request::get("/nowhere").body(Body::empty()).unwrap()).await;
    assert_eq!((program.status, program.header("content-type")), (StatusCode::NOT_FOUND, "application/problem+json"));
    let api = site.get("/api/v1/snapshots/none").await;
    assert!(api.status.is_client_error());
    assert_eq!(api.header("content-type"), "application/problem+json");
}

#[tokio::test]
async fn a_failure_of_ours_shows_its_request_id_and_not_its_cause() {
    let report = release("v1.0.0", 0, 10).report();
    let site = Site::new(std::slice::from_ref(&report)).await;
    sqlx::query("update reports set body = 'x'").execute(&site.pool).await.unwrap();
    let page = site.get(&format!("/sentiment/snapshots/{}", report.run_id)).await;
    assert_eq!(page.status, StatusCode::INTERNAL_SERVER_ERROR);
    assert!(page.one(".say").contains("Something broke on our side"), "{}", page.body);
    assert_eq!(page.one("main code"), page.header("x-request-id"));
    assert!(!page.body.contains("zstd") && !page.body.contains("stored report"), "{}", page.body);
    assert!(page.header("content-security-policy").contains("default-src 'none'"));
}

#[tokio::test]
async fn projects_lead_to_their_snapshots_the_worst_first() {
    let slow = release("v2.0.0", 1, 5).report();
    let other = plimsoll_domain::synthetic::Synthetic { project: "embeddings".into(), ..release("v0.1.0", 2, 10) };
    let site = Site::new(&[other.report(), release("v1.0.0", 0, 10).report(), slow.clone()]).await;
    let page = site.page("/").await;
    let rows = page.table("Projects");
    assert_eq!(rows.len(), 2);
    assert!(rows[0][0].starts_with("sentiment") && rows[0].iter().any(|cell| cell == "▲ regressed"), "{rows:?}");
    assert!(rows[1].iter().any(|cell| cell == "– no baseline"), "{rows:?}");
    assert_eq!(page.one(".word"), "▲ Regressed");
    assert!(page.one(".say").contains("sentiment v2.0.0"));
    assert!(page.attributes("tbody a", "href").contains(&format!("/sentiment/snapshots/{}", slow.run_id)));
    assert_eq!(page.all(".spark svg").len(), 2);
}

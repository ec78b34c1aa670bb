//! Serves the pages over invented snapshots on a scratch Postgres, for work on templates, charts and the style sheet:
//! `cargo run -p plimsoll-server --example preview -- [PORT]`.

use axum::body::Body;
use axum::http::{Request, StatusCode};
use jiff::{SignedDuration, Timestamp};
use plimsoll_domain::plan::Profile;
use plimsoll_domain::report::Report;
use plimsoll_domain::synthetic::Synthetic;
use plimsoll_server::access::Tokens;
use plimsoll_server::postgres::scratch::Scratch;
use plimsoll_server::router::router;
use plimsoll_server::state::{AppState, Settings};
use plimsoll_server::store::database;
use secrecy::SecretString;
use tower::ServiceExt as _;

type Fallible<T = ()> = Result<T, Box<dyn std::error::Error>>;

const TOKEN: &str = "a-token-for-this-preview-only";

#[tokio::main]
async fn main() -> Fallible {
    let port = std::env::args().nth(1).map_or(Ok(8980), |port| port.parse())?;
    let scratch = Scratch::start().await?;
    let pool = database::open(&scratch.database().await?, 4).await?;
    let server = router(AppState::new(
        pool,
        Settings { tokens: Tokens::new(&[SecretString::from(TOKEN)]), ..Settings::default() },
    ));
    for report in reports()? {
        let upload = Request::post("/api/v1/snapshots")
            .header("authorization", format!("Bearer {TOKEN}"))
            .header("content-type", "application/json")
            .body(Body::from(report.to_json()))?;
        let answer = server.clone().oneshot(upload).await?;
        assert_eq!(answer.status(), StatusCode::CREATED);
    }
    let listener = tokio::net::TcpListener::bind(("127.0.0.1", port)).await?;
    println!("http://{}/", listener.local_addr()?);
    axum::serve(listener, server).await?;
    Ok(())
}

/// `sentiment` over releases, with an invalid run and a regression at the end; `ranker` with what else can happen; a
/// project with one snapshot; one with hostile names.
fn reports() -> Fallible<Vec<Report>> {
    let start: Timestamp = "2025-01-14T14:06:00Z".parse()?;
    let release = |n: u32, tag: &str, pool: u32, run_factor: f64| Synthetic {
        tag: Some(tag.to_owned()),
        commit: Some(format!(
            "{:012x}0000000000000000000000000000",
            0xc02e_5d80_1234_u64 * u64::from(n + 1) % (1 << 48)
        )),
        started_at: start + SignedDuration::from_hours(24 * 21 * i64::from(n)),
        pool,
        run_factor,
        slow_share: 0.004,
        stability_s: 90,
        step_s: 12,
        error_rate: 0.000_03,
        seed: u64::from(n) + 1,
        ..Synthetic::default()
    };
    let tags = ["v1.0.0", "v1.1.0", "v1.2.0", "v1.2.1", "v1.3.0", "v1.4.0", "v1.4.1", "v1.5.0", "v1.6.0", "v1.7.0"];
    let mut out = Vec::new();
    for (n, tag) in (0..).zip(tags) {
        let run_factor = 1.0 + 0.012 * (f64::from(n * 7 % 5) - 2.0) / 2.0;
        let run = release(n, tag, if n < 4 { 14 } else { 16 }, run_factor);
        out.push(Synthetic { engine_cpu: if n == 6 { 0.93 } else { 0.21 }, ..run }.report());
    }
    out.push(release(10, "v1.8.0", 10, 1.0).report());
    out.push(Synthetic { gpu: "L20".to_owned(), ..release(9, "v1.7.0", 28, 1.0) }.report());
    out.push(Synthetic { project: "embeddings".to_owned(), stability_s: 60, ..release(3, "v0.1.0", 8, 0.4) }.report());
    // A fast service; a pull request with its short profile; too noisy to say; a plateau that was not reached.
    let fast = |n: u32, tag: &str| Synthetic {
        project: "ranker".to_owned(),
        service_ms: 2.3,
        stability_workers: 6,
        stability_s: 30,
        step_s: 6,
        ..release(n, tag, 8, 1.0)
    };
    out.push(fast(0, "v1.0.0").report());
    out.push(Synthetic { profile: Profile::Pr, tag: None, pull_request: Some(418), ..fast(1, "") }.report());
    out.push(Synthetic { waves: 0.12, run_factor: 1.07, error_rate: 0.004, ..fast(2, "v1.1.0") }.report());
    out.push(Synthetic { pool: 600, staircase: vec![2, 4, 8], ..fast(3, "v1.2.0") }.report());
    let hostile = "<script>alert(1)</script>\"&' ünïcödé with a very long name that does not end soon";
    let odd =
        Synthetic { project: "odd_names".to_owned(), gpu: format!("H100 {hostile}"), ..release(2, hostile, 8, 1.0) };
    let mut odd = odd.report();
    odd.testbed.labels.insert("<b>zone</b>".to_owned(), "<img src=x onerror=alert(1)>".to_owned());
    out.push(odd);
    Ok(out)
}

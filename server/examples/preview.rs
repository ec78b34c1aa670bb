//! Serves the pages over invented snapshots, for work on templates and charts:
//! `DATABASE_URL=postgres://… cargo run -p plimsoll-server --example preview`, with an empty database.

use std::sync::Arc;

use axum::Router;
use jiff::{SignedDuration, Timestamp};
use plimsoll_domain::comparison::Comparison;
use plimsoll_domain::figures::Figures;
use plimsoll_domain::report::Report;
use plimsoll_domain::synthetic::Synthetic;
use plimsoll_server::auth::Tokens;
use plimsoll_server::state::AppState;
use plimsoll_server::store::{self, Pool};
use plimsoll_server::tasks::{pack, verdict};
use plimsoll_server::web;

type Fallible<T = ()> = Result<T, Box<dyn std::error::Error>>;

#[tokio::main]
async fn main() -> Fallible {
    let pool = Pool::connect(&std::env::var("DATABASE_URL")?).await?;
    store::migrate::run(&pool).await?;
    let state = AppState::new(pool, Tokens::default(), None);
    for report in reports()? {
        add(&state, report).await?;
    }
    let pages: Router = web::routes().with_state(state);
    let listener = tokio::net::TcpListener::bind("127.0.0.1:8980").await?;
    println!("http://{}/", listener.local_addr()?);
    axum::serve(listener, pages).await?;
    Ok(())
}

async fn add(state: &AppState, report: Report) -> Fallible {
    if store::snapshots::get(state.pool(), report.run_id).await?.is_some() {
        return Ok(());
    }
    store::projects::ensure(state.pool(), &report.project).await?;
    store::testbeds::ensure(state.pool(), &report.testbed).await?;
    let report = Arc::new(report);
    let comparison: Comparison = verdict::judge_new(state, report.clone()).await.map_err(|e| format!("{e:?}"))?;
    store::snapshots::insert(state.pool(), &report, &Figures::of(&report), comparison.verdict).await?;
    store::reports::insert(state.pool(), report.run_id, &pack::pack(&report).map_err(|e| format!("{e:?}"))?).await?;
    store::verdicts::insert(state.pool(), report.run_id, &comparison).await?;
    println!("{} {}: {}", report.project, report.revision.label_or_unnamed(), comparison.sentence);
    Ok(())
}

/// `sentiment` over releases, with a regression at the end and an invalid run; a project with one snapshot; one with
/// hostile names.
fn reports() -> Fallible<Vec<Report>> {
    let start: Timestamp = "2025-01-14T14:06:00Z".parse()?;
    let at = |n: i64| start + SignedDuration::from_hours(24 * 21 * n);
    let release = |n: i64, tag: &str, pool: u32, run_factor: f64| Synthetic {
        tag: Some(tag.to_owned()),
        commit: Some(format!(
            "{:012x}0000000000000000000000000000",
            0xc02e_5d80_1234_u64 * (n as u64 + 1) % 0xffff_ffff_ffff
        )),
        started_at: at(n),
        pool,
        service_ms: 56.0,
        run_factor,
        slow_share: 0.004,
        stability_workers: 24,
        stability_s: 90,
        staircase: vec![5, 10, 20, 50, 100],
        step_s: 12,
        error_rate: 0.00003,
        seed: n as u64 + 1,
        ..Synthetic::default()
    };
    let tags = ["v1.0.0", "v1.1.0", "v1.2.0", "v1.2.1", "v1.3.0", "v1.4.0", "v1.4.1", "v1.5.0", "v1.6.0", "v1.7.0"];
    let mut out = Vec::new();
    for (n, tag) in tags.iter().enumerate() {
        let run_factor = 1.0 + 0.012 * ((n * 7 % 5) as f64 - 2.0) / 2.0;
        let mut run = release(n as i64, tag, if n < 4 { 14 } else { 16 }, run_factor);
        if n == 6 {
            run.engine_cpu = 0.93;
        }
        out.push(run.report());
    }
    out.push(release(10, "v1.8.0", 10, 1.0).report());
    let cpu = Synthetic { gpu: "L20".to_owned(), ..release(9, "v1.7.0", 28, 1.0) };
    out.push(cpu.report());
    out.push(Synthetic { project: "embeddings".to_owned(), stability_s: 60, ..release(3, "v0.1.0", 8, 0.4) }.report());
    let hostile = "<script>alert(1)</script>\"&' ünïcödé 版本 with a very long name that does not end soon";
    let mut odd =
        Synthetic { project: "odd_names".to_owned(), gpu: format!("H100 {hostile}"), ..release(2, hostile, 8, 1.0) }
            .report();
    odd.testbed.labels.insert("<b>zone</b>".to_owned(), "<img src=x onerror=alert(1)>".to_owned());
    out.push(odd);
    Ok(out)
}

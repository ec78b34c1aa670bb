//! Serves the pages over invented snapshots and runs on a scratch Postgres, for work on templates, charts and the style
//! sheet: `cargo run -p plimsoll-server --example preview -- [PORT]`. The token that it says signs in.

use std::collections::BTreeMap;

use axum::body::Body;
use axum::http::{Request, StatusCode};
use jiff::{SignedDuration, Timestamp};
use plimsoll_domain::ids::RunId;
use plimsoll_domain::job::{Claim, Ended, Ending, Heartbeat, Progress, RunRequest, RunnerFacts, Stage, Wanted};
use plimsoll_domain::plan::Profile;
use plimsoll_domain::report::Report;
use plimsoll_domain::synthetic::Synthetic;
use plimsoll_server::access::{Caller, Grant, Scope, Who, hash};
use plimsoll_server::postgres::scratch::Scratch;
use plimsoll_server::router::router;
use plimsoll_server::state::{AppState, Settings};
use plimsoll_server::store::projects::{Visibility, set_visibility};
use plimsoll_server::store::{database, tokens};
use plimsoll_server::tasks::{jobs, leases, webhooks};
use tower::ServiceExt as _;
use uuid::Uuid;

type Fallible<T = ()> = Result<T, Box<dyn std::error::Error>>;

const TOKEN: &str = "a-token-for-this-preview-only";

#[tokio::main]
async fn main() -> Fallible {
    let port = std::env::args().nth(1).map_or(Ok(8980), |port| port.parse())?;
    let scratch = Scratch::start().await?;
    let pool = database::open(&scratch.database().await?, 4).await?;
    let admin = Grant { scope: Scope::Admin, project: None };
    let token = tokens::New { name: "preview", grant: &admin, created_by: "the preview", lasts: None };
    tokens::insert(&pool, &hash(TOKEN), &token).await?;
    let state = AppState::new(pool, Settings::default());
    let server = router(state.clone());
    for report in reports()? {
        let upload = Request::post("/api/v1/snapshots")
            .header("authorization", format!("Bearer {TOKEN}"))
            .header("content-type", "application/json")
            .body(Body::from(report.to_json()))?;
        let answer = server.clone().oneshot(upload).await?;
        assert_eq!(answer.status(), StatusCode::CREATED);
    }
    let who = Who::Token { id: None, name: "preview".to_owned() };
    let caller = Caller { who, grants: vec![admin], ..Caller::anonymous() };
    runs(&state, &caller).await.map_err(|error| format!("{error:?}"))?;
    set_visibility(state.pool(), &"odd_names".parse()?, Visibility::Private).await?;
    webhooks::create(&state, &caller, &"sentiment".parse()?, "https://example.com/hooks/plimsoll")
        .await
        .map_err(|error| format!("{error:?}"))?;
    let listener = tokio::net::TcpListener::bind(("127.0.0.1", port)).await?;
    println!("http://{}/ (sign in with {TOKEN})", listener.local_addr()?);
    axum::serve(listener, server).await?;
    Ok(())
}

/// A run that failed, one whose runner was lost as often as is tried, one under way, and two that wait, one of them for
/// what no runner has.
async fn runs(state: &AppState, caller: &Caller) -> plimsoll_server::error::Result<()> {
    let failed = ask(state, caller, "ranker", "v1.3.0", &[]).await?;
    let runner = Runner { id: Uuid::now_v7(), name: "cpu-01", gpu: "none", projects: &["ranker", "embeddings"] };
    let lease = runner.take(state, caller).await?;
    let reason = "the service did not become ready within 300 s".to_owned();
    jobs::end(state, failed, &Ended { lease, how: Ending::Failed, reason }).await?;

    let lost = ask(state, caller, "embeddings", "v0.2.0", &[]).await?;
    for _ in 0..3 {
        let lease = runner.take(state, caller).await?;
        let progress = (0..40).map(|second| moment(second, Stage::WarmUp)).collect();
        jobs::heartbeat(state, lost, &Heartbeat { lease, progress, draining: false }).await?;
        let over = "update jobs set lease_expires_at = now() - interval '1 second' where lease is not null";
        sqlx::query(over).execute(state.pool()).await.expect("the database");
        leases::run_once(state).await?;
    }

    let runner = Runner { id: Uuid::now_v7(), name: "gpu-host-1", gpu: "A10", projects: &["sentiment"] };
    let running = ask(state, caller, "sentiment", "v1.9.0", &[("gpu", "A10")]).await?;
    let lease = runner.take(state, caller).await?;
    for part in 0..12 {
        let stage = if part < 1 { Stage::WarmUp } else { Stage::Staircase };
        let progress = (part * 50..(part + 1) * 50).map(|second| moment(second, stage)).collect();
        jobs::heartbeat(state, running, &Heartbeat { lease, progress, draining: false }).await?;
    }
    ask(state, caller, "sentiment", "v1.9.1", &[("gpu", "A10")]).await?;
    ask(state, caller, "sentiment", "v1.9.1-h200", &[("gpu", "H200")]).await?;
    Ok(())
}

async fn ask(
    state: &AppState,
    caller: &Caller,
    project: &str,
    tag: &str,
    labels: &[(&str, &str)],
) -> plimsoll_server::error::Result<RunId> {
    let request = RunRequest {
        project: project.parse().expect("a project's name"),
        revision: Wanted { tag: Some(tag.to_owned()), ..Wanted::default() },
        plan: None,
        plan_commit: None,
        profile: None,
        labels: labels.iter().map(|(name, value)| ((*name).to_owned(), (*value).to_owned())).collect(),
        priority: None,
        supersedes: None,
        run_id: None,
    };
    Ok(jobs::create(state, caller, request).await?.0.run_id)
}

struct Runner<'a> {
    id: Uuid,
    name: &'a str,
    gpu: &'a str,
    projects: &'a [&'a str],
}

impl Runner<'_> {
    async fn take(
        &self,
        state: &AppState,
        caller: &Caller,
    ) -> plimsoll_server::error::Result<plimsoll_domain::job::LeaseId> {
        let runner = RunnerFacts {
            id: self.id,
            name: self.name.to_owned(),
            version: "0.1.0".to_owned(),
            labels: BTreeMap::from([("gpu".to_owned(), self.gpu.to_owned())]),
            projects: self.projects.iter().map(|project| project.parse().expect("a project's name")).collect(),
        };
        let taken = jobs::claim(state, caller, &Claim { runner, wait_s: 0 }).await?;
        Ok(taken.expect("a run that waits").lease)
    }
}

/// TPS rises with the workers until the pool is full, then only latency does.
fn moment(second: u32, stage: Stage) -> Progress {
    let workers = match stage {
        Stage::Staircase => 5 * 2u32.pow((second / 110).min(4)),
        _ => 1,
    };
    let wobble = 1.0 + 0.03 * (f64::from(second * 37 % 101) / 50.0 - 1.0);
    let tps = (f64::from(workers) * 8.6).min(312.0) * wobble;
    let latency = 1_000.0 * f64::from(workers) / tps;
    Progress {
        elapsed_ms: u64::from(second) * 1_000,
        stage,
        workers: Some(workers),
        left_ms: Some(1_140_000 - u64::from(second) * 1_000),
        done: Some(f64::from(second) / 1_140.0),
        tps: (second > 3).then_some(tps),
        p50_ms: (second > 3).then_some(latency),
        p99_ms: (second > 20).then_some(latency * 1.3 * wobble),
        errors: Some(0),
        gpu_utilisation: Some((tps / 520.0).min(1.0)),
        gpu_memory_bytes: Some(9 << 30),
    }
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

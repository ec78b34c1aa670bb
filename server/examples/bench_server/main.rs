//! How fast the server takes uploads and shows pages, beside what Postgres alone does: the real program over HTTP, with
//! a durable Postgres of its own. `scripts/bench-server` builds it and says how to run it.

mod binary;
mod copy;
mod corpus;
mod fill;
mod pages;
mod service;
mod uploads;

use std::process::ExitCode;
use std::str::FromStr as _;
use std::sync::Arc;
use std::time::{Duration, Instant};

use plimsoll_server::postgres::{Cluster, Options};
use plimsoll_server::store::{database, migrate};
use secrecy::ExposeSecret as _;
use sqlx::postgres::PgConnectOptions;

type Fallible<T = ()> = Result<T, Box<dyn std::error::Error + Send + Sync>>;

/// How much is done.
#[derive(Debug, Clone, Copy)]
struct Size {
    snapshots: usize,
    rounds: usize,
    uploads_per_round: usize,
    pages_for: Duration,
}

const FULL: Size = Size { snapshots: 100_000, rounds: 5, uploads_per_round: 400, pages_for: Duration::from_secs(40) };
const QUICK: Size = Size { snapshots: 10_000, rounds: 3, uploads_per_round: 200, pages_for: Duration::from_secs(15) };
/// Clients that upload at the same time, and connections that COPY.
const CONNECTIONS: usize = 4;
const LEAST_SHARE_OF_COPY: f64 = 0.25;
const MOST_PAGE_MS: f64 = 50.0;
/// What the server may grow by between the middle and the end of the pages.
const MOST_GROWTH: f64 = 0.10;

fn main() -> ExitCode {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let (size, program) = match arguments.iter().map(String::as_str).collect::<Vec<_>>()[..] {
        [program] => (FULL, program),
        ["--quick", program] | [program, "--quick"] => (QUICK, program),
        _ => {
            eprintln!("usage: bench_server [--quick] PLIMSOLL_SERVER");
            return ExitCode::from(2);
        }
    };
    match tokio::runtime::Runtime::new().map_err(Into::into).and_then(|runtime| runtime.block_on(run(size, program))) {
        Ok(true) => ExitCode::SUCCESS,
        Ok(false) => ExitCode::FAILURE,
        Err(error) => {
            eprintln!("bench_server: {error}");
            ExitCode::from(70)
        }
    }
}

/// Whether every limit was kept.
async fn run(size: Size, program: &str) -> Fallible<bool> {
    let folder = tempfile::Builder::new().prefix("plimsoll-bench.").tempdir_in("/tmp")?;
    // Postgres may run as another user.
    std::fs::set_permissions(folder.path(), std::os::unix::fs::PermissionsExt::from_mode(0o711))?;
    let options = Options { dir: folder.path().join("postgres"), durable: true };
    let cluster = tokio::task::spawn_blocking(move || Cluster::start(&options)).await??;
    database::create(&cluster.url("postgres"), "bench").await?;
    let url = cluster.url("bench");
    // Over TCP, COPY would wait for the acknowledgement of what it sent before it says that it is done.
    let socket = PgConnectOptions::from_str(url.expose_secret())?.socket(cluster.dir().join("socket"));
    let pool = database::open(&url, 8).await?;
    migrate::run(&pool).await?;
    let service = Arc::new(service::Service::start(program, folder.path(), &url).await?);

    let began = Instant::now();
    let templates = Arc::new(corpus::templates(&service).await?);
    println!("{}", corpus::described(&templates[0]));
    let history = fill::fill(&pool, &templates, size.snapshots).await?;
    println!(
        "{} snapshots in {:.0} s, the database has {:.2} GB\n",
        history.len(),
        began.elapsed().as_secs_f64(),
        copy::database_bytes(&pool).await? as f64 / 1e9
    );

    let uploads = uploads::run(&service, &pool, &socket, &templates, &history, size).await?;
    let before = service.memory_mib();
    let newest = pages::run(&service, history.newest(5_000), &history, size.pages_for).await?;
    let middle = service.memory_mib();
    let all = pages::run(&service, history.newest(history.len()), &history, size.pages_for).await?;
    let after = service.memory_mib();

    println!("\nPages at {} requests/s, latency from the intended start, ms", pages::RATE);
    println!("  {:<34} {:>6} {:>8} {:>8} {:>8}", "", "n", "P50", "P99", "max");
    for (of, measured) in [("the newest 5,000", &newest), ("all snapshots", &all)] {
        measured.print(of);
    }
    let mut kept = true;
    let mut line = |text: String, holds: bool| {
        println!("{text}{}", if holds { "" } else { "  PAST THE LIMIT" });
        kept &= holds;
    };
    println!();
    line(format!("uploads/COPY: {uploads:.2} (limit {LEAST_SHARE_OF_COPY})"), uploads >= LEAST_SHARE_OF_COPY);
    for (of, measured) in [("newest 5,000", &newest), ("all", &all)] {
        for (kind, p99) in [("history", measured.history.p99()), ("comparison", measured.comparison.p99())] {
            line(format!("{kind} P99, {of}: {p99:.0} ms (limit {MOST_PAGE_MS:.0})"), p99 <= MOST_PAGE_MS);
        }
    }
    match (before, middle, after) {
        (Some(before), Some(middle), Some(after)) => line(
            format!(
                "memory before, between, after the pages: {before:.0}, {middle:.0}, {after:.0} MiB; growth {:.0} % \
                 (limit {:.0} %)",
                (after / middle - 1.0) * 100.0,
                MOST_GROWTH * 100.0
            ),
            after / middle - 1.0 <= MOST_GROWTH,
        ),
        _ => println!("memory: – (this system does not tell)"),
    }
    Arc::into_inner(service).ok_or("requests are still under way")?.stop().await?;
    pool.close().await;
    tokio::task::spawn_blocking(move || drop(cluster)).await?;
    Ok(kept)
}

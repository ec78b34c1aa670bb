//! How fast GitHub's deliveries are answered while GitHub itself is slow: the real program over HTTP, with a durable
//! Postgres of its own. `scripts/bench-webhook` builds it and says how to run it.

mod deliveries;
mod github;
mod service;

use std::process::ExitCode;
use std::time::Duration;

use plimsoll_server::postgres::{Cluster, Options};
use plimsoll_server::store::{Pool, database, migrate};

use deliveries::{Round, Taken};

type Fallible<T = ()> = Result<T, Box<dyn std::error::Error + Send + Sync>>;

const AT_ONCE: usize = 200;
const ROUNDS: usize = 10;
/// Until connections and the handling of what came are as in the middle of work.
const BETWEEN: Duration = Duration::from_secs(2);
const API_TAKES: Duration = Duration::from_secs(15);
const MOST_MS: f64 = 250.0;

fn main() -> ExitCode {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let [program] = &arguments[..] else {
        eprintln!("usage: bench_webhook PLIMSOLL_SERVER");
        return ExitCode::from(2);
    };
    match tokio::runtime::Runtime::new().map_err(Into::into).and_then(|runtime| runtime.block_on(run(program))) {
        Ok(true) => ExitCode::SUCCESS,
        Ok(false) => ExitCode::FAILURE,
        Err(error) => {
            eprintln!("bench_webhook: {error}");
            ExitCode::from(70)
        }
    }
}

/// Whether every limit was kept.
async fn run(program: &str) -> Fallible<bool> {
    let folder = tempfile::Builder::new().prefix("plimsoll-bench.").tempdir_in("/tmp")?;
    // Postgres may run as another user.
    std::fs::set_permissions(folder.path(), std::os::unix::fs::PermissionsExt::from_mode(0o711))?;
    let options = Options { dir: folder.path().join("postgres"), durable: true };
    let cluster = tokio::task::spawn_blocking(move || Cluster::start(&options)).await??;
    database::create(&cluster.url("postgres"), "bench").await?;
    let pool = database::open(&cluster.url("bench"), 4).await?;
    migrate::run(&pool).await?;
    deliveries::projects(&pool).await?;
    let github = github::start(API_TAKES).await?;
    let mut service = service::Service::start(program, folder.path(), &cluster.url("bench"), &github.url).await?;

    println!(
        "{AT_ONCE} deliveries at once over {AT_ONCE} new connections, {ROUNDS} times; GitHub's API takes {} s\n\
         from the start of all to the end of each answer, ms\n  {:<8} {:>8} {:>8} {:>8}",
        API_TAKES.as_secs(),
        "round",
        "P50",
        "P99",
        "max"
    );
    let mut sent = Vec::new();
    let mut worst: f64 = 0.0;
    for number in 1..=ROUNDS {
        let round = Round::new(number, AT_ONCE).send(service.address, |_| {}).await;
        let failed = round.iter().filter(|taken| taken.status != Some(202)).count();
        if failed > 0 {
            return Err(format!("{failed} of {AT_ONCE} were not taken; the log: {}", service.log()).into());
        }
        let mut times: Vec<f64> = round.iter().map(|taken| taken.ms).collect();
        times.sort_by(f64::total_cmp);
        let (p50, p99, max) = (rank(&times, 0.50), rank(&times, 0.99), rank(&times, 1.0));
        println!("  {number:<8} {p50:>8.0} {p99:>8.0} {max:>8.0}");
        worst = worst.max(p99);
        sent.extend(round);
        tokio::time::sleep(BETWEEN).await;
    }
    let asked = github.asked();
    // Killed in the middle of a round, without a word.
    let (address, half) = (service.address, AT_ONCE / 2);
    let kill = |taken: usize| {
        if taken == half {
            service.kill();
        }
    };
    let cut = Round::new(ROUNDS + 1, AT_ONCE).send(address, kill).await;
    let acknowledged = cut.iter().filter(|taken| taken.status == Some(202)).count();
    sent.extend(cut);
    let lost = lost(&pool, &sent).await?;

    let mut kept = true;
    let mut line = |text: String, holds: bool| {
        println!("{text}{}", if holds { "" } else { "  PAST THE LIMIT" });
        kept &= holds;
    };
    println!();
    line(format!("P99, the worst round: {worst:.0} ms (limit {MOST_MS:.0})"), worst <= MOST_MS);
    line(format!("requests that GitHub's API kept waiting meanwhile: {asked} (at least 1)"), asked > 0);
    line(
        format!("lost of those that were taken, {acknowledged} of them as the server was killed: {lost} (limit 0)"),
        lost == 0,
    );
    pool.close().await;
    tokio::task::spawn_blocking(move || drop(cluster)).await?;
    Ok(kept)
}

/// By nearest rank.
fn rank(sorted: &[f64], share: f64) -> f64 {
    let place = (share * sorted.len() as f64).ceil() as usize;
    sorted[place.clamp(1, sorted.len()) - 1]
}

/// How many deliveries were taken and are not in the database.
async fn lost(pool: &Pool, sent: &[Taken]) -> Fallible<usize> {
    let stored: Vec<String> = sqlx::query_scalar("select delivery from github_inbox").fetch_all(pool).await?;
    let stored: std::collections::HashSet<String> = stored.into_iter().collect();
    Ok(sent.iter().filter(|taken| taken.status == Some(202) && !stored.contains(&taken.delivery)).count())
}

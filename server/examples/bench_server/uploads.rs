//! Uploads beside the speed at which Postgres takes the rows that they write.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Instant;

use plimsoll_domain::comparison::Verdict;
use plimsoll_server::store::Pool;
use sqlx::postgres::PgConnectOptions;
use uuid::Uuid;

use crate::corpus::{self, Template};
use crate::fill::History;
use crate::service::Service;
use crate::{CONNECTIONS, Fallible, Size, copy};

/// An upload that is ready to be sent.
struct Upload {
    run_id: Uuid,
    packed: Vec<u8>,
}

/// Uploads per second over the raw speed of COPY, snapshots per second: the median of all rounds. COPY takes all rows of a
/// round at once; beside that stands what it takes in the way that uploads must go, each snapshot committed by itself, over
/// as many connections. All start after a checkpoint.
pub(crate) async fn run(
    service: &Arc<Service>,
    pool: &Pool,
    socket: &PgConnectOptions,
    templates: &Arc<Vec<Template>>,
    history: &Arc<History>,
    size: Size,
) -> Fallible<f64> {
    println!(
        "Snapshots per second: uploads over {CONNECTIONS} connections, all rows of a round by COPY at once, and by COPY with"
    );
    println!("a commit for each snapshot over {CONNECTIONS} connections");
    println!(
        "  {:>5} {:>10} {:>10} {:>8} {:>15} {:>8}",
        "round", "uploads", "COPY", "ratio", "COPY one by one", "ratio"
    );
    let mut ratios = Vec::new();
    let mut following = history.following(size.rounds * size.uploads_per_round).into_iter();
    for round in 1..=size.rounds {
        let names: Vec<_> = following.by_ref().take(size.uploads_per_round).collect();
        let templates = Arc::clone(templates);
        let prepare = move || -> Fallible<Vec<Upload>> {
            let made = names.into_iter().enumerate().map(|(i, (series, named))| {
                let json = templates[i % templates.len()].json(&series, &named, false)?;
                Ok(Upload { run_id: named.run_id.0, packed: corpus::packed(json.as_bytes())? })
            });
            made.collect()
        };
        let uploads = Arc::new(tokio::task::spawn_blocking(prepare).await??);
        let runs: Vec<Uuid> = uploads.iter().map(|upload| upload.run_id).collect();

        copy::checkpoint(pool).await?;
        let began = Instant::now();
        send(service, &uploads).await?;
        let uploaded = runs.len() as f64 / began.elapsed().as_secs_f64();

        let written = Arc::new(copy::written(pool, &runs).await?);
        copy::remove(pool, &runs).await?;
        copy::checkpoint(pool).await?;
        let took = copy::one_by_one(socket, Arc::clone(&written), CONNECTIONS).await?;
        let copied = runs.len() as f64 / took.as_secs_f64();

        copy::remove(pool, &runs).await?;
        copy::checkpoint(pool).await?;
        let at_once = runs.len() as f64 / copy::at_once(socket, &written).await?.as_secs_f64();
        let ratio = uploaded / at_once;
        let each = uploaded / copied;
        println!("  {round:>5} {uploaded:>10.1} {at_once:>10.1} {ratio:>8.2} {copied:>15.1} {each:>8.2}");
        ratios.push(ratio);
    }
    ratios.sort_by(f64::total_cmp);
    Ok(ratios[ratios.len() / 2])
}

/// All of them, over as many connections as COPY has. Each must be new, and judged against a baseline.
async fn send(service: &Arc<Service>, uploads: &Arc<Vec<Upload>>) -> Fallible {
    let next = Arc::new(AtomicUsize::new(0));
    let clients: Vec<_> = (0..CONNECTIONS)
        .map(|_| {
            let (service, uploads, next) = (Arc::clone(service), Arc::clone(uploads), Arc::clone(&next));
            tokio::spawn(async move {
                while let Some(upload) = uploads.get(next.fetch_add(1, Ordering::Relaxed)) {
                    let answer = service.upload(upload.packed.clone()).await?;
                    if !answer.created || answer.comparison.verdict == Verdict::NoBaseline {
                        return Err(format!("run {} was not new, or had no baseline", upload.run_id).into());
                    }
                }
                Fallible::Ok(())
            })
        })
        .collect();
    for client in clients {
        client.await??;
    }
    Ok(())
}

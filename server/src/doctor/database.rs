//! The database: whether it answers, its schema, its clock, its room, and what waits in it.

use std::time::Duration;

use jiff::Timestamp;

use super::Check;
use super::host::size;
use crate::store::gauges::{self, About, Gauges};
use crate::store::{Pool, StoreError, migrate};

/// The oldest Postgres that the queries are written for.
const OLDEST: u32 = 14;
/// Beyond this, times on pages and in logs do not fit together.
const MOST_SKEW_S: f64 = 5.0;
/// A task looks at leases every few seconds.
const OVERDUE_S: f64 = 60.0;
/// Longer than a run takes that a runner is busy with.
const WAITS_LONG_S: f64 = 3_600.0;
const ANSWERS_WITHIN: Duration = Duration::from_secs(10);

pub(super) fn away(why: String) -> Check {
    let advice = "Start the server, or its database; --database-url and --data-dir must be those of the server.";
    Check::failed("database", why, advice)
}

pub(super) async fn checks(pool: &Pool) -> Vec<Check> {
    let ask = async {
        let before = Timestamp::now();
        let about = gauges::about(pool).await?;
        let after = Timestamp::now();
        let half = after.duration_since(before) / 2;
        let skew = about.now.duration_since(before.checked_add(half).unwrap_or(before)).as_secs_f64();
        let missing = migrate::missing(pool).await;
        Ok::<_, StoreError>((about, skew, missing))
    };
    let (about, skew, missing) = match tokio::time::timeout(ANSWERS_WITHIN, ask).await {
        Ok(Ok(found)) => found,
        Ok(Err(error)) => return vec![away(error.to_string())],
        Err(_) => return vec![away(format!("no answer within {} s", ANSWERS_WITHIN.as_secs()))],
    };
    let mut checks = vec![version(&about), schema(missing), clock(skew), connections(&about)];
    checks.push(Check::ok("database size", size(about.bytes.unsigned_abs())));
    match gauges::read(pool).await {
        Ok(gauges) => checks.extend([queue(&gauges), leases(&gauges), deliveries(&gauges)]),
        Err(error) => checks.push(Check::failed("queue", error.to_string(), "See the migrations above.")),
    }
    checks
}

fn version(about: &About) -> Check {
    let found = format!("Postgres {} answers", about.version);
    let major = about.version.split('.').next().and_then(|major| major.parse::<u32>().ok());
    match major {
        Some(major) if major < OLDEST => Check::failed("database", found, format!("Use Postgres {OLDEST} or newer.")),
        _ => Check::ok("database", found),
    }
}

fn schema(missing: Result<Vec<i64>, StoreError>) -> Check {
    match missing {
        Ok(missing) if missing.is_empty() => Check::ok("migrations", "all applied"),
        Ok(missing) => {
            let advice = "Start a server of this version once: it brings the schema up to date.";
            Check::failed("migrations", format!("not applied: {missing:?}"), advice)
        }
        Err(error) => Check::failed("migrations", error.to_string(), "Start a server on this database once."),
    }
}

fn clock(skew: f64) -> Check {
    let side = if skew < 0.0 { "behind" } else { "ahead" };
    let found = format!("the database's clock is {:.1} s {side}", skew.abs());
    if skew.abs() <= MOST_SKEW_S {
        return Check::ok("clock", found);
    }
    Check::warning("clock", found, "Let both hosts set their clocks by NTP. Leases go by the database's clock alone.")
}

fn connections(about: &About) -> Check {
    let found = format!("{} of {} connections in use", about.connections, about.max_connections);
    if about.connections * 10 < about.max_connections * 8 {
        return Check::ok("connections", found);
    }
    Check::warning("connections", found, "Raise max_connections of Postgres; each server takes up to 16.")
}

fn queue(of: &Gauges) -> Check {
    let found = format!("{} jobs queued, {} with runners", of.queued, of.leased + of.running);
    match of.oldest_queued_s.filter(|age| *age > WAITS_LONG_S) {
        None => Check::ok("queue", found),
        Some(age) => {
            let found = format!("{found}; the oldest has waited for {:.1} h", age / 3_600.0);
            let seen = of.runners_seen;
            let advice = format!(
                "{seen} of {} runners were heard of in the last two minutes: start one whose labels and projects fit.",
                of.runners
            );
            Check::warning("queue", found, advice)
        }
    }
}

fn leases(of: &Gauges) -> Check {
    match of.most_overdue_s.filter(|overdue| *overdue > OVERDUE_S) {
        None => Check::ok("leases", format!("{} held", of.leased + of.running)),
        Some(overdue) => Check::failed(
            "leases",
            format!("{} jobs are past their lease, the first for {overdue:.0} s", of.overdue),
            "A running server takes them back within seconds: look into its log.",
        ),
    }
}

fn deliveries(of: &Gauges) -> Check {
    let found = format!("{} events on their way to webhooks, {} given up today", of.undelivered, of.given_up);
    let late = of.oldest_undelivered_s.is_some_and(|age| age > WAITS_LONG_S);
    if !late && of.given_up == 0 {
        return Check::ok("webhooks", found);
    }
    Check::warning("webhooks", found, "The log says what the receivers answer.")
}

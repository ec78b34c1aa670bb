//! Gauges in Prometheus' text format. What is not known is left out.

use std::fmt::Write as _;

use crate::store::Pool;
use crate::store::gauges::Gauges;

pub(super) fn pool(page: &mut String, pool: &Pool) {
    let (size, idle) = (f64::from(pool.size()), pool.num_idle() as f64);
    let most = f64::from(pool.options().get_max_connections());
    let states = [("idle", Some(idle)), ("used", Some((size - idle).max(0.0)))];
    gauge(page, "db_pool_connections", "Database connections of this server.", "state", &states);
    one(page, "db_pool_max_connections", "Most database connections of this server.", Some(most));
}

pub(super) fn database(page: &mut String, answers: bool) {
    one(page, "database_up", "Whether the database answers.", Some(f64::from(u8::from(answers))));
}

pub(super) fn gauges(page: &mut String, of: &Gauges, current: bool) {
    let n = |count: i64| Some(count as f64);
    one(page, "schema_current", "Whether every migration is applied.", Some(f64::from(u8::from(current))));
    let jobs = [("queued", n(of.queued)), ("leased", n(of.leased)), ("running", n(of.running))];
    gauge(page, "jobs", "Jobs that are not over.", "state", &jobs);
    let ages = [("queued", of.oldest_queued_s), ("leased", of.oldest_leased_s), ("running", of.oldest_running_s)];
    gauge(page, "jobs_oldest_age_seconds", "Age of the oldest job in the state.", "state", &ages);
    one(page, "leases", "Jobs that a runner has.", n(of.leased + of.running));
    one(page, "leases_overdue", "Leases that ended and were not taken back yet.", n(of.overdue));
    let runners = [("seen", n(of.runners_seen)), ("away", n(of.runners - of.runners_seen))];
    gauge(page, "runners", "Runners by whether they were heard of in the last two minutes.", "state", &runners);
    one(page, "deliveries_pending", "Events on their way to webhooks.", n(of.undelivered));
    one(page, "deliveries_oldest_age_seconds", "Age of the oldest event on its way.", of.oldest_undelivered_s);
    one(page, "deliveries_given_up", "Events given up in the last day.", n(of.given_up));
    one(page, "github_inbox_pending", "Deliveries of GitHub's that are not handled.", n(of.inbox));
    one(page, "github_inbox_oldest_age_seconds", "Age of the oldest of them.", of.oldest_inbox_s);
    one(page, "github_inbox_given_up", "Deliveries of GitHub's given up in the last day.", n(of.inbox_given_up));
    one(page, "github_outbox_pending", "Checks and comments that GitHub is to be told.", n(of.untold));
    one(page, "github_outbox_oldest_age_seconds", "Age of the oldest of them.", of.oldest_untold_s);
    one(page, "github_outbox_given_up", "Of those, given up in the last day.", n(of.untold_given_up));
    one(page, "uploads_open", "Uploads in parts under way.", n(of.uploads));
    one(page, "uploads_open_bytes", "Bytes received of them.", n(of.upload_bytes));
}

fn one(page: &mut String, name: &str, help: &str, value: Option<f64>) {
    let Some(value) = value else { return };
    head(page, name, help);
    let _ = writeln!(page, "plimsoll_{name} {value}\n");
}

fn gauge(page: &mut String, name: &str, help: &str, label: &str, values: &[(&str, Option<f64>)]) {
    if values.iter().all(|(_, value)| value.is_none()) {
        return;
    }
    head(page, name, help);
    for (of, value) in values.iter().filter_map(|(of, value)| Some((of, (*value)?))) {
        let _ = writeln!(page, "plimsoll_{name}{{{label}=\"{of}\"}} {value}");
    }
    page.push('\n');
}

fn head(page: &mut String, name: &str, help: &str) {
    let _ = writeln!(page, "# HELP plimsoll_{name} {help}\n# TYPE plimsoll_{name} gauge");
}

//! `plimsoll-server prune`.

use std::io::Write as _;
use std::time::Duration;

use plimsoll_server::store::prune::Counts;
use plimsoll_server::store::{self, Pool};
use plimsoll_server::tasks::prune::{self, PruneError, Pruned};
use serde_json::json;

use super::CliError;
use super::database::Database;

/// Live events of runs that ended a week ago, expired sessions, uploads that nobody continued for a week, events that
/// were delivered a month ago and runners that were not heard for a month go always; a server does the same every hour.
#[derive(Debug, clap::Args)]
pub(super) struct Args {
    #[command(flatten)]
    database: Database,
    /// Age at which reports lose their per-second windows; figures, histograms and slices stay.
    #[arg(long, value_name = "AGE", default_value = "90d", value_parser = super::age::parse)]
    windows_after: Duration,
    /// Say what would go, and leave it.
    #[arg(long)]
    dry_run: bool,
    /// Print the counts as JSON.
    #[arg(long)]
    json: bool,
}

impl Args {
    pub(super) fn run(self) -> Result<(), CliError> {
        let done = self.database.with(async |pool| Ok(prune(&pool, &self).await?))?;
        let mut out = std::io::stdout().lock();
        if self.json {
            let mut document = json!({ "dry_run": self.dry_run, "counts": done.counts });
            if !self.dry_run {
                document["bytes_before"] = done.bytes_before.into();
                document["bytes_after"] = done.bytes_after.into();
                document["unreadable"] = done.unreadable.into();
            }
            return Ok(writeln!(out, "{document}")?);
        }
        let verb = if self.dry_run { "Would remove" } else { "Removed" };
        let Counts { reports, live_events, sessions, uploads, deliveries, events, runners, inbox, told } = done.counts;
        let size = match self.dry_run {
            true => String::new(),
            false => format!(" ({} → {})", mebibytes(done.bytes_before), mebibytes(done.bytes_after)),
        };
        writeln!(out, "{verb} the windows of {reports} reports{size}.")?;
        writeln!(
            out,
            "{verb} {live_events} live events, {sessions} sessions, {uploads} uploads, {deliveries} deliveries, \
             {events} events, {runners} runners, {inbox} deliveries of GitHub's, {told} things told to GitHub."
        )?;
        if done.unreadable > 0 {
            writeln!(out, "{} reports could not be read and are as they were.", done.unreadable)?;
        }
        Ok(())
    }
}

async fn prune(pool: &Pool, args: &Args) -> Result<Pruned, PruneError> {
    let now = store::prune::now(pool).await?;
    let before = prune::cutoffs(now, Some(args.windows_after));
    if args.dry_run {
        return Ok(Pruned { counts: store::prune::count(pool, &before).await?, ..Pruned::default() });
    }
    let mut all = Pruned::default();
    loop {
        let done = prune::step(pool, &before, all.after).await?;
        all.add(&done);
        if done.total() == 0 {
            return Ok(all);
        }
    }
}

fn mebibytes(bytes: u64) -> String {
    format!("{:.1} MiB", bytes as f64 / f64::from(1 << 20))
}

//! What the database can keep and find again of a report that is whole in itself.

use jiff::Timestamp;
use plimsoll_domain::report::Report;

/// Names of revisions and testbeds are looked up by an index, which takes no longer ones.
const MAX_NAME: usize = 512;
/// 1970 to 2200, in seconds.
const FIRST: i64 = 0;
const LAST: i64 = 7_258_118_400;

/// Says which field does not fit, and why.
pub(super) fn check(report: &Report) -> Result<(), String> {
    let names = [
        ("revision.tag", &report.revision.tag),
        ("revision.branch", &report.revision.branch),
        ("testbed.name", &report.testbed.name),
    ];
    if let Some((at, _)) = names.iter().find(|(_, name)| name.as_ref().is_some_and(|name| name.len() > MAX_NAME)) {
        return Err(format!("{at}: longer than {MAX_NAME} bytes"));
    }
    let instants = [("started_at", report.started_at), ("finished_at", report.finished_at)];
    let within = |at: Timestamp| (FIRST..LAST).contains(&at.as_second());
    match instants.into_iter().find(|(_, at)| !within(*at)) {
        Some((name, at)) => Err(format!("{name}: {at} does not lie between 1970 and 2200")),
        None => Ok(()),
    }
}

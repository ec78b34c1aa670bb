//! `plimsoll upload`: sends a report that lies on disk.

use std::io::Write as _;
use std::time::Duration;

use plimsoll_domain::report::Report;
use serde_json::json;

use super::Done;
use super::args::UploadArgs;
use crate::exit::{Exit, Failure};
use crate::report::comparison;
use crate::report::paint::Paint;
use crate::report::summary::undecisive;
use crate::report::watch::waiting;
use crate::spool;
use crate::upload::{Package, Pauses, Server, Uploaded, Wait};

pub(super) async fn execute(args: &UploadArgs, paint: Paint) -> Result<Done, Failure> {
    let server = args.server.needed()?;
    let report = spool::read(&args.report)?;
    let path = args.report.display().to_string();
    let uploaded = send(&server, &report, &path, args.retry.retry_for).await?;
    let first = if uploaded.created { "Uploaded" } else { "The server had it already:" };
    let mut text = format!("{first} {} of {}.\n\n", report.revision.label_or_unnamed(), report.project);
    text += &comparison::text(&uploaded.comparison, paint);
    text += &uploaded.undecisive().map_or_else(String::new, undecisive);
    if let Some(url) = &uploaded.url {
        text += &format!("Page        {url}\n");
    }
    let json = json!({
        "run_id": uploaded.run_id,
        "created": uploaded.created,
        "url": uploaded.url,
        "gates": uploaded.gates,
        "gates_not_because": uploaded.undecisive(),
        "verdict": uploaded.comparison.verdict,
        "comparison": uploaded.comparison,
    });
    Ok(Done { exit: Exit::Pass, text, json })
}

/// Uploads, trying again for so long; on failure the message says that the report is safe, and how to send it later
/// where that would help.
pub(super) async fn send(
    server: &Server,
    report: &Report,
    path: &str,
    retry_for: Duration,
) -> Result<Uploaded, Failure> {
    let package = Package::of(report).map_err(Failure::internal)?;
    let mut tell = |wait: &Wait<'_>| {
        let _ = writeln!(std::io::stderr(), "{}", waiting(server.address(), wait));
    };
    let sent = server.deliver(&package, Pauses::within(retry_for), &mut tell).await;
    sent.map_err(|error| {
        let later = if error.is_for_good() { "" } else { "\nsend it later: plimsoll upload " };
        let keep = format!("the report is kept at {path}{later}{}", if later.is_empty() { "" } else { path });
        let failure = error.failure(server);
        let hint = failure.hint.clone().map_or(keep.clone(), |hint| format!("{hint}\n{keep}"));
        failure.hint(hint)
    })
}

//! `plimsoll upload`: sends a report that lies on disk.

use plimsoll_domain::report::Report;
use serde_json::json;

use super::Done;
use super::args::UploadArgs;
use crate::exit::{Exit, Failure};
use crate::report::comparison;
use crate::report::paint::Paint;
use crate::spool;
use crate::upload::{Server, Uploaded};

pub(super) async fn execute(args: &UploadArgs, paint: Paint) -> Result<Done, Failure> {
    let server = args.server.needed()?;
    let report = spool::read(&args.report)?;
    let path = args.report.display().to_string();
    let uploaded = send(&server, &report, &path).await?;
    let first = if uploaded.created { "Uploaded" } else { "The server had it already:" };
    let mut text = format!("{first} {} of {}.\n\n", report.revision.label_or_unnamed(), report.project);
    text += &comparison::text(&uploaded.comparison, paint);
    if let Some(url) = &uploaded.url {
        text += &format!("Page        {url}\n");
    }
    let json = json!({
        "run_id": uploaded.run_id,
        "created": uploaded.created,
        "url": uploaded.url,
        "verdict": uploaded.comparison.verdict,
        "comparison": uploaded.comparison,
    });
    Ok(Done { exit: Exit::Pass, text, json })
}

/// Uploads; on failure the message says that the report is safe and how to send it later.
pub(super) async fn send(server: &Server, report: &Report, path: &str) -> Result<Uploaded, Failure> {
    server.upload(report).await.map_err(|error| {
        let failure = error.failure(server);
        let keep = format!("the report is kept at {path}\nsend it later: plimsoll upload {path}");
        let hint = failure.hint.clone().map_or(keep.clone(), |hint| format!("{hint}\n{keep}"));
        failure.hint(hint)
    })
}

//! `plimsoll gate`: run, upload, and end by the server's verdict.

use plimsoll_domain::report::Status;
use serde_json::json;

use super::args::RunArgs;
use super::measure::{self, Measured};
use super::{Done, upload};
use crate::exit::{Exit, Failure};
use crate::report::paint::Paint;
use crate::report::{comparison, summary};

/// A run that a person stopped is not sent by itself.
pub(super) async fn execute(args: &RunArgs, paint: Paint) -> Result<Done, Failure> {
    let server = args.server.needed()?;
    let Measured { report, path, .. } = &measure::measure(args, Some(&server)).await?;
    let mut json = summary::json(report, path);
    let mut text = summary::text(report, paint);
    if report.status == Status::Interrupted {
        json["exit_code"] = json!(Exit::Failed.code());
        text += &summary::closing(path, None, &Exit::Failed.ends());
        return Ok(Done { exit: Exit::Failed, text, json });
    }
    let (exit, url) = match upload::send(&server, report, &path.display().to_string()).await {
        Ok(uploaded) => {
            text += "\n";
            text += &comparison::text(&uploaded.comparison, paint);
            json["verdict"] = json!(uploaded.comparison.verdict);
            json["comparison"] = json!(uploaded.comparison);
            json["url"] = json!(uploaded.url);
            (Exit::from(uploaded.comparison.verdict), uploaded.url)
        }
        Err(failure) => {
            // The figures are shown all the same: they took their time, and the report is on disk.
            text += &format!("\n{failure}\n");
            json["error"] = failure.to_json()["error"].take();
            (failure.exit, None)
        }
    };
    json["exit_code"] = json!(exit.code());
    text += &summary::closing(path, url.as_deref(), &exit.ends());
    Ok(Done { exit, text, json })
}

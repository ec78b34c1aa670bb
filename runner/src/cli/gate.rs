//! `plimsoll gate`: run, upload, and end by the server's verdict.

use plimsoll_domain::report::Status;
use serde_json::json;

use super::args::GateArgs;
use super::measure::{self, Measured};
use super::{Done, upload};
use crate::exit::{Exit, Failure};
use crate::report::paint::Paint;
use crate::report::{comparison, markdown, summary};

/// A run that a person stopped is not sent by itself.
pub(super) async fn execute(args: &GateArgs, paint: Paint) -> Result<Done, Failure> {
    let server = args.run.server.needed()?;
    server.accepts_token().await.map_err(|error| error.failure(&server))?;
    let Measured { report, path, .. } = &measure::measure(&args.run, Some(&server)).await?;
    let mut json = summary::json(report, path);
    if report.status == Status::Interrupted {
        json["exit_code"] = json!(Exit::Failed.code());
        write(args, &markdown::unjudged(report, "The run was stopped, and is not sent by itself."))?;
        let text = summary::text(report, paint) + &summary::closing(path, None, &Exit::Failed.ends());
        return Ok(Done { exit: Exit::Failed, text, json });
    }
    let (exit, url, text) = match upload::send(&server, report, &path.display().to_string(), args.retry.retry_for).await
    {
        Ok(uploaded) => {
            let undecisive = uploaded.undecisive();
            write(args, &markdown::judged(&uploaded.comparison, undecisive, uploaded.url.as_deref()))?;
            let aside = undecisive.map_or_else(String::new, summary::undecisive);
            json["gates"] = json!(uploaded.gates);
            if let Some(why) = undecisive {
                json["gates_not_because"] = json!(why);
            }
            let comparison = uploaded.comparison;
            let figures = summary::figures(report, &comparison.findings, paint);
            json["verdict"] = json!(comparison.verdict);
            json["comparison"] = json!(comparison);
            json["url"] = json!(uploaded.url);
            (Exit::from(comparison.verdict), uploaded.url, comparison::text(&comparison, paint) + &aside + &figures)
        }
        Err(failure) => {
            // The figures are shown all the same: they took their time, and the report is on disk.
            write(args, &markdown::unjudged(report, &failure.message))?;
            json["error"] = failure.to_json()["error"].take();
            (failure.exit, None, format!("{}\n{failure}\n", summary::text(report, paint)))
        }
    };
    json["exit_code"] = json!(exit.code());
    let text = text + &summary::closing(path, url.as_deref(), &exit.ends());
    Ok(Done { exit, text, json })
}

/// For the summary of a CI job, where one is asked for.
fn write(args: &GateArgs, text: &str) -> Result<(), Failure> {
    let Some(path) = &args.summary else { return Ok(()) };
    std::fs::write(path, text)
        .map_err(|error| Failure::internal(format!("the summary could not be written to {}: {error}", path.display())))
}

//! `plimsoll run`.

use serde_json::json;

use super::args::RunArgs;
use super::measure::{self, Measured};
use super::{Done, compare};
use crate::exit::Failure;
use crate::report::paint::Paint;
use crate::report::{comparison, summary};

/// Ends with 0 when the run is valid and 3 when not; a comparison with `--baseline` is shown and does not change that.
pub(super) async fn execute(args: &RunArgs, paint: Paint) -> Result<Done, Failure> {
    let server = args.server.optional()?;
    let Measured { loaded, report, path, baseline } = &measure::measure(args, server.as_ref()).await?;
    let exit = measure::exit(report);
    let mut json = summary::json(report, path);
    let mut text = match baseline {
        Some(baseline) => {
            let compared = compare::two(baseline, report, &loaded.policy);
            json["comparison"] = json!(compared);
            comparison::text(&compared, paint) + &summary::figures(report, &compared.findings, paint)
        }
        None => summary::text(report, paint),
    };
    json["exit_code"] = json!(exit.code());
    text += &summary::closing(
        path,
        None,
        if report.is_valid() { "0, the run is valid" } else { "3, the run failed or is invalid" },
    );
    Ok(Done { exit, text, json })
}

//! `plimsoll policy push`: the plan's thresholds become the project's.

use serde_json::json;

use super::Done;
use super::args::PolicyArgs;
use crate::exit::{Exit, Failure};
use crate::plan;

pub(super) async fn push(args: &PolicyArgs) -> Result<Done, Failure> {
    let (planned, policy) = plan::load_gate(&args.plan)?;
    let project = args.project.clone().or(planned).ok_or_else(|| {
        Failure::usage("the plan names no project").hint("add `project = \"my-service\"` to it, or give --project")
    })?;
    let server = args.server.needed()?;
    server.push_policy(&project, &policy).await.map_err(|error| error.failure(&server))?;
    let text = format!(
        "{project} now allows P99 {}, capacity {}, error rate {}.\n",
        plimsoll_domain::format::change(policy.p99_increase),
        plimsoll_domain::format::change(-policy.capacity_decrease),
        plimsoll_domain::format::points(policy.error_rate_points),
    );
    Ok(Done { exit: Exit::Pass, text, json: json!({ "project": project, "policy": policy }) })
}

//! `plimsoll check`: validates, and shows what would be sent.

use super::args::PlanArgs;
use super::{Done, environment};
use crate::exit::{Exit, Failure};
use crate::report::plan as shown;
use crate::{plan, spool};

pub(super) fn execute(args: &PlanArgs) -> Result<Done, Failure> {
    let loaded = plan::load(&args.plan, &args.overrides(), &environment)?;
    let baseline = args.baseline.as_deref().map(spool::read).transpose()?;
    let planned = args.stability_workers.or(loaded.plan.phases.stability.workers);
    let workers = planned.or_else(|| Some(baseline?.stability()?.workers));
    Ok(Done { exit: Exit::Pass, text: shown::text(&loaded, workers), json: shown::json(&loaded, workers) })
}

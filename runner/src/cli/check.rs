//! `plimsoll check`: validates, and shows what would be sent.

use super::args::PlanArgs;
use super::{Done, environment};
use crate::exit::{Exit, Failure};
use crate::pin::of_report;
use crate::report::plan as shown;
use crate::{plan, spool};

pub(super) fn execute(args: &PlanArgs) -> Result<Done, Failure> {
    let loaded = plan::load(&args.plan, &args.overrides(), &environment)?;
    let baseline = args.baseline.as_deref().map(spool::read).transpose()?;
    let planned = args.stability_workers.or(loaded.plan.phases.stability.workers);
    let baseline = baseline.as_ref().and_then(of_report);
    let load = shown::Load {
        stability: planned.or(baseline.map(|load| load.workers)),
        capacity: baseline.and_then(|load| load.capacity_workers),
    };
    Ok(Done { exit: Exit::Pass, text: shown::text(&loaded, load), json: shown::json(&loaded, load) })
}

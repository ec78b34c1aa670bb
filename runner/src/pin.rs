//! At which load stability runs: what a flag or the plan says, else the baseline's, else the server's pinned load;
//! otherwise the engine takes a part of the run's own knee.

use plimsoll_domain::figures;
use plimsoll_domain::finding::Finding;
use plimsoll_domain::ids::ProjectSlug;
use plimsoll_domain::plan::{Plan, Profile};
use plimsoll_domain::report::{LoadChoice, Report};
use plimsoll_domain::testbed::Testbed;

use crate::exit::{Exit, Failure};
use crate::spec::PinnedLoad;
use crate::upload::{Pinned, Server, ServerError};

/// Everything the choice depends on.
pub(crate) struct Asked<'a> {
    /// `--stability-workers`.
    pub(crate) flag: Option<u32>,
    pub(crate) plan: &'a Plan,
    pub(crate) project: &'a ProjectSlug,
    pub(crate) testbed: &'a Testbed,
    pub(crate) baseline: Option<&'a Report>,
    pub(crate) server: Option<&'a Server>,
}

/// The chosen load, and what the report should say about how it was chosen.
pub(crate) async fn choose(asked: Asked<'_>) -> Result<(Option<PinnedLoad>, Option<Finding>), Failure> {
    let named = asked.flag.or(asked.plan.phases.stability.workers);
    let from_baseline = asked.baseline.and_then(of_report);
    let enough = from_baseline.is_some() || (named.is_some() && asked.plan.profile != Profile::Pr);
    let (from_server, finding) = match (enough, asked.server) {
        (false, Some(server)) => pinned(&asked, server).await?,
        _ => (None, None),
    };
    let known = from_baseline.or(from_server);
    let capacity_workers = known.and_then(|load| load.capacity_workers);
    let load = match named {
        Some(workers) => Some(PinnedLoad { workers, choice: LoadChoice::Plan, capacity_workers }),
        None => known,
    };
    // Nothing says where the capacity lies: twice a load below the knee is past it.
    let load = load.map(|load| match (asked.plan.profile, load.capacity_workers) {
        (Profile::Pr, None) => PinnedLoad { capacity_workers: Some(load.workers.saturating_mul(2)), ..load },
        _ => load,
    });
    match load {
        None if asked.plan.profile == Profile::Pr => Err(no_load(asked.server, finding.is_some())),
        load => Ok((load, finding)),
    }
}

/// The load of a report's stability phase and of its capacity.
pub(crate) fn of_report(report: &Report) -> Option<PinnedLoad> {
    Some(PinnedLoad {
        workers: report.stability()?.workers,
        choice: LoadChoice::Baseline,
        capacity_workers: figures::capacity(report).map(|capacity| capacity.at_workers),
    })
}

/// A server that cannot be reached does not stop a run: the report is kept, and says so.
async fn pinned(asked: &Asked<'_>, server: &Server) -> Result<(Option<PinnedLoad>, Option<Finding>), Failure> {
    let answer = server.pinned_load(asked.project, &asked.plan.digest(), &asked.testbed.fingerprint()).await;
    match answer {
        Ok(Some(Pinned { workers, capacity_workers, .. })) if workers > 0 => {
            Ok((Some(PinnedLoad { workers, choice: LoadChoice::Pinned, capacity_workers }), None))
        }
        Ok(_) => Ok((None, None)),
        Err(ServerError::Unreachable(why)) => {
            let message = format!("The pinned load is not known: the server could not be reached ({why}).");
            let advice = "Stability figures compare only at the same load; pin it with --stability-workers.";
            Ok((None, Some(Finding::notice("pinned_load_unknown", message).with_advice(advice))))
        }
        Err(error) => Err(error.failure(server)),
    }
}

/// The `pr` profile has no staircase from which to take a load.
fn no_load(server: Option<&Server>, unreachable: bool) -> Failure {
    let standard = "measure the default branch with the standard profile first, or give --stability-workers";
    match server {
        Some(server) if unreachable => Failure::new(
            "unreachable",
            Exit::Unreachable,
            format!(
                "the profile `pr` needs the pinned load, and the server at {} could not be reached",
                server.address()
            ),
        ),
        Some(_) => Failure::new(
            "no_baseline",
            Exit::NoBaseline,
            "nothing to compare with: the server knows no pinned load for this plan on this testbed",
        ),
        None => Failure::usage("the profile `pr` needs a load: no server, no --baseline and no --stability-workers"),
    }
    .hint(standard)
}

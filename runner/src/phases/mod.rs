//! What runs when: smoke, warm-up, staircase, stability.

mod error;

use plimsoll_domain::report::Report;
use tokio::sync::watch;

use crate::progress::Observer;
use crate::spec::RunSpec;

pub use error::{Cause, RunError};

/// Carries out one run. `stop` turning true ends it cleanly: the report then has status `interrupted` and holds what
/// was measured until then. A run during which the service stops answering altogether has status `failed`.
///
/// # Errors
/// The smoke phase failed (unreachable service, wrong status, wrong output), the plan asks for something that cannot be
/// sent, or the engine could not start.
pub async fn run(
    spec: RunSpec,
    observer: &mut (dyn Observer + Send),
    stop: watch::Receiver<bool>,
) -> Result<Report, RunError> {
    let _ = (spec, observer, stop);
    Err(RunError::new(Cause::Ours, "the engine is being built"))
}

//! What `run` and `gate` share: plan, load, run, report on disk.

use std::io::{IsTerminal as _, Write as _};
use std::path::{Path, PathBuf};

use jiff::Timestamp;
use plimsoll_domain::finding::Finding;
use plimsoll_domain::ids::RunId;
use plimsoll_domain::report::Report;
use plimsoll_domain::revision::Revision;
use tokio::sync::watch;

use super::args::RunArgs;
use super::environment;
use crate::exit::{Exit, Failure};
use crate::load::{measured_part, ramp_up_ms};
use crate::phases::{self, Cause, RunError};
use crate::plan::{self, Loaded};
use crate::progress::{Event, Observer};
use crate::report::labelled;
use crate::report::progress::{Progress, heading};
use crate::spec::RunSpec;
use crate::spool::Partial;
use crate::upload::Server;
use crate::{git, host, pin, spool};

/// A finished run, its report written.
#[derive(Debug)]
pub(super) struct Measured {
    pub(super) loaded: Loaded,
    pub(super) report: Report,
    pub(super) path: PathBuf,
    pub(super) baseline: Option<Report>,
}

/// 0 when the figures may be used, else 3.
pub(super) fn exit(report: &Report) -> Exit {
    if report.is_valid() { Exit::Pass } else { Exit::Failed }
}

/// Measures. A report that came about is on disk when this returns, whether it returns it or a failure.
pub(super) async fn measure(args: &RunArgs, server: Option<&Server>) -> Result<Measured, Failure> {
    let flags = &args.plan;
    let loaded = plan::load(&flags.plan, &flags.overrides(), &environment)?;
    let baseline = flags.baseline.as_deref().map(spool::read).transpose()?;
    let (testbed, unknown) = host::testbed(&loaded.requests.url, &flags.names(&loaded.testbed), &[]);
    let asked = pin::Asked {
        flag: flags.stability_workers,
        plan: &loaded.plan,
        project: &loaded.project,
        testbed: &testbed,
        baseline: baseline.as_ref(),
        server,
    };
    let (pinned, unpinned) = pin::choose(asked).await?;
    let revision = git::revision(loaded.folder(), &args.revision.named(), &environment);
    let path = match &args.output {
        Some(path) => path.clone(),
        None => spool::claim(Path::new(""), Timestamp::now(), revision.label().as_deref())?,
    };
    spool::prepare(&path)?;
    if let Some(baseline) = &flags.baseline
        && same_file(baseline, &path)
    {
        let message = format!("--output would replace the baseline {}", baseline.display());
        return Err(Failure::usage(message).hint("name another file with --output"));
    }
    let partial = Partial::beside(&path)?;

    let spec = RunSpec {
        run_id: RunId(uuid::Uuid::now_v7()),
        project: loaded.project.clone(),
        revision,
        testbed,
        plan: loaded.plan.clone(),
        requests: loaded.requests.clone(),
        pinned,
    };
    let notes: Vec<Finding> = unknown.into_iter().chain(unpinned).collect();
    let warnings = other_plan(&loaded, baseline.as_ref())
        .into_iter()
        .chain(short_steps(&loaded))
        .chain(unnamed(&spec.revision))
        .chain(notes.iter().map(|note| note.message.clone()));
    tell(&heading(&spec), warnings);

    let mut told = Told { progress: Progress::new(&spec, std::io::stderr().is_terminal()), partial, notes: &notes };
    let ended = phases::run(spec, &mut told, stop_on_signal()).await;
    told.progress.finish();
    let partial = told.partial;
    match ended {
        Ok(mut report) => {
            let path = keep(&path, &mut report, &notes, partial)?;
            Ok(Measured { loaded, report, path, baseline })
        }
        Err(mut error) => {
            let kept = match error.report.take() {
                Some(mut report) => Some(keep(&path, &mut report, &notes, partial)?),
                None => None,
            };
            let failure = failed(error);
            Err(match kept {
                Some(path) => failure.report(path),
                None => failure,
            })
        }
    }
}

/// Writes the report; what was kept of it meanwhile goes once it is in its place.
fn keep(path: &Path, report: &mut Report, notes: &[Finding], mut partial: Partial) -> Result<PathBuf, Failure> {
    report.findings.extend(notes.iter().cloned());
    let unkept = partial.finish();
    let saved = spool::save(path, report)?;
    match (saved.elsewhere, unkept) {
        (Some(elsewhere), _) => note(&elsewhere),
        (None, unkept) => {
            if let Err(why) = unkept {
                note(&format!("The phases could not be kept while the run went on: {why}. The report is whole."));
            }
            partial.replaced();
        }
    }
    Ok(saved.path)
}

/// Who hears of the run: people, and the disk.
struct Told<'a> {
    progress: Progress,
    partial: Partial,
    notes: &'a [Finding],
}

impl Observer for Told<'_> {
    fn observe(&mut self, event: Event<'_>) {
        if let Event::Partial(report) = event {
            let mut report = report.clone();
            report.findings.extend(self.notes.iter().cloned());
            self.partial.keep(report);
        }
        self.progress.observe(event);
    }
}

fn failed(error: RunError) -> Failure {
    let (kind, exit) = match error.cause {
        Cause::Service => ("service", Exit::Failed),
        Cause::Plan => ("plan", Exit::Usage),
        Cause::Ours => ("internal", Exit::Internal),
    };
    let failure = Failure::new(kind, exit, error.message);
    match error.advice {
        Some(advice) => failure.hint(advice),
        None => failure,
    }
}

fn same_file(one: &Path, other: &Path) -> bool {
    match (one.canonicalize(), other.canonicalize()) {
        (Ok(one), Ok(other)) => one == other,
        _ => false,
    }
}

/// Said before a long run rather than after it.
fn other_plan(loaded: &Loaded, baseline: Option<&Report>) -> Option<String> {
    let (ours, theirs) = (loaded.plan.digest(), &baseline?.plan_digest);
    (ours != *theirs).then(|| {
        format!("The baseline was measured by another plan ({theirs}, this is {ours}): figures will not compare.")
    })
}

/// A verdict on capacity rests on whole seconds between ramp-up and edges.
fn short_steps(loaded: &Loaded) -> Option<String> {
    const FEWEST_SECONDS: u64 = 3;
    let step_ms = loaded.plan.executed_step_ms();
    let (from_ms, to_ms) = measured_part(step_ms, ramp_up_ms(loaded.plan.phases.staircase.ramp_up_ms, step_ms));
    ((to_ms / 1_000).saturating_sub(from_ms.div_ceil(1_000)) < FEWEST_SECONDS).then(|| {
        "The steps show a capacity, but are too short for a verdict on it, which needs three whole seconds between \
         ramp-up and edges."
            .to_owned()
    })
}

/// A baseline is found by the revision's name and history.
fn unnamed(revision: &Revision) -> Option<String> {
    match (revision.label(), revision.dirty) {
        (None, _) => {
            Some("Nothing says what is measured: give --revision, or keep the plan in a git checkout.".to_owned())
        }
        (Some(_), true) => {
            Some("The checkout has uncommitted changes: its commit does not say what is measured.".to_owned())
        }
        (Some(_), false) => None,
    }
}

fn tell(heading: &str, warnings: impl Iterator<Item = String>) {
    let mut err = std::io::stderr().lock();
    let _ = writeln!(err, "{heading}");
    for warning in warnings {
        let _ = write!(err, "{}", labelled("Note", &warning));
    }
    let _ = writeln!(err);
}

fn note(text: &str) {
    let _ = write!(std::io::stderr(), "{}", labelled("Note", text));
}

/// Turns true at the first Ctrl-C, SIGTERM or closing of the terminal; the second one ends the program at once.
fn stop_on_signal() -> watch::Receiver<bool> {
    let (stop, stopped) = watch::channel(false);
    tokio::spawn(async move {
        let mut asked = 0;
        while signal().await {
            asked += 1;
            if asked > 1 {
                std::process::exit(i32::from(Exit::Failed.code()));
            }
            let _ = writeln!(std::io::stderr(), "stopping; the report is written (again to end at once)");
            let _ = stop.send(true);
        }
    });
    stopped
}

/// Waits for the next signal that asks to end; false when none can be heard.
async fn signal() -> bool {
    #[cfg(unix)]
    {
        use tokio::signal::unix::{SignalKind, signal};
        let heard = [SignalKind::interrupt(), SignalKind::terminate(), SignalKind::hangup()].map(signal);
        let [Ok(mut interrupt), Ok(mut terminate), Ok(mut hangup)] = heard else { return false };
        tokio::select! {
            heard = interrupt.recv() => heard.is_some(),
            heard = terminate.recv() => heard.is_some(),
            heard = hangup.recv() => heard.is_some(),
        }
    }
    #[cfg(not(unix))]
    tokio::signal::ctrl_c().await.is_ok()
}

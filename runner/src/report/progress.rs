//! Progress on stderr: a bar on a terminal, a plain line every few seconds elsewhere, a line for each finished phase.

use std::io::Write as _;
use std::time::{Duration, Instant};

use indicatif::{ProgressBar, ProgressDrawTarget, ProgressStyle};
use plimsoll_domain::format::{ABSENT, NARROW, count, counted, duration, latency, number, workers};
use plimsoll_domain::plan::Profile;
use plimsoll_domain::report::{PhaseKind, Step, StepRole};

use super::text::{WIDTH, width};
use crate::plan::profile_name;
use crate::progress::{Event, Live, Observer};
use crate::spec::RunSpec;

/// What is about to be measured: `sentiment v1.9.2 (8d1e07b) on A10 ×1, plan 7c1f0be2`.
pub fn heading(spec: &RunSpec) -> String {
    let revision = match (&spec.revision.tag, &spec.revision.commit) {
        (Some(tag), Some(commit)) => format!("{tag} ({})", commit.short()),
        _ => spec.revision.label_or_unnamed(),
    };
    let profile = match spec.plan.profile {
        Profile::Standard => String::new(),
        other => format!(", {}", profile_name(other)),
    };
    format!("{} {revision} on {}, plan {}{profile}", spec.project, spec.testbed.label(), spec.plan.digest())
}

/// Writes the progress of one run.
#[derive(Debug)]
pub struct Progress {
    bar: Option<ProgressBar>,
    last_line: Option<Instant>,
    /// A phase that ended, whose last requests may still be followed to their end.
    ended: Option<(PhaseKind, Duration, Instant)>,
    steps: Vec<Brief>,
    shapes: u32,
    /// Whether a line was written.
    spoke: bool,
}

/// Columns of the bar.
const BAR: usize = 7;
/// How long a finished phase's line waits for its last step's figures.
const SETTLE: Duration = Duration::from_secs(1);
/// A pause between two plain lines.
const EVERY: Duration = Duration::from_secs(5);

impl Progress {
    pub fn new(spec: &RunSpec, terminal: bool) -> Self {
        let bar = terminal.then(|| {
            let bar = ProgressBar::with_draw_target(Some(1_000), ProgressDrawTarget::stderr());
            bar.set_style(
                ProgressStyle::with_template(&format!("{{bar:{BAR}}} {{wide_msg}}"))
                    .unwrap_or_else(|_| ProgressStyle::default_bar()),
            );
            bar
        });
        Self { bar, last_line: None, ended: None, steps: Vec::new(), shapes: spec.plan.workload.requests, spoke: false }
    }

    /// Says what is left to say and takes the bar away.
    pub fn finish(&mut self) {
        self.settle(Duration::ZERO);
        if let Some(bar) = &self.bar {
            bar.finish_and_clear();
        }
        if self.spoke {
            self.line("");
        }
    }

    fn line(&mut self, line: &str) {
        self.spoke = true;
        match &self.bar {
            Some(bar) if !bar.is_finished() => bar.println(line),
            _ => drop(writeln!(std::io::stderr(), "{line}")),
        }
    }

    /// The line of the phase that ended at least so long ago.
    fn settle(&mut self, after: Duration) {
        if let Some((phase, took, _)) = self.ended.take_if(|(_, _, at)| at.elapsed() >= after) {
            self.line(&phase_line(phase, took, &self.steps, self.shapes));
        }
    }

    fn tick(&mut self, live: &Live) {
        self.settle(SETTLE);
        match &self.bar {
            Some(bar) => {
                bar.set_position((live.done.clamp(0.0, 1.0) * 1_000.0) as u64);
                bar.set_message(live_line(live));
            }
            None if self.last_line.is_none_or(|last| last.elapsed() >= EVERY) => {
                self.last_line = Some(Instant::now());
                self.line(&format!("    {}", live_line(live)));
            }
            None => {}
        }
    }
}

impl Observer for Progress {
    fn observe(&mut self, event: Event<'_>) {
        match event {
            // Findings stand in the summary, beside the figures they are about.
            Event::PhaseStarted { .. } | Event::Found(_) | Event::Partial(_) => {}
            Event::Tick(live) => self.tick(live),
            Event::StepFinished { phase, step } => self.steps.push(Brief::of(phase, step)),
            Event::PhaseFinished { phase, took } => {
                self.settle(Duration::ZERO);
                self.ended = Some((phase, took, Instant::now()));
            }
            Event::Remark(remark) => self.line(&format!("  {remark}")),
            Event::FirstFailure { kind, reason } => self.line(&format!("  first {}: {reason}", kind.name())),
        }
    }
}

/// One line: phase, workers at work, time left, TPS, P50, P99, errors. Blanks give way where the bar leaves it little room.
pub(super) fn live_line(live: &Live) -> String {
    let ms = |value: Option<f64>| value.map_or_else(|| format!("{ABSENT}{NARROW}ms"), latency);
    let workers = (live.workers > 0).then(|| workers(live.workers));
    let left = live.left.map_or("extending".to_owned(), |left| format!("{} left", duration(left.as_secs_f64())));
    let load = workers.into_iter().chain([left]).collect::<Vec<_>>().join(", ");
    let parts = [
        format!("{} {load}", live.phase.name()),
        format!("{} TPS", live.tps.map_or_else(|| ABSENT.to_owned(), number)),
        format!("P50 {}", ms(live.p50_ms)),
        format!("P99 {}", ms(live.p99_ms)),
        counted(live.errors, "error"),
    ];
    let roomy = parts.join("  ");
    if width(&roomy) < WIDTH - BAR { roomy } else { parts.join(" ") }
}

/// What a phase's line needs of a step.
#[derive(Debug, Clone, PartialEq)]
struct Brief {
    phase: PhaseKind,
    role: StepRole,
    workers: u32,
    requests: u64,
    p50_ms: Option<f64>,
    p99_ms: Option<f64>,
}

impl Brief {
    fn of(phase: PhaseKind, step: &Step) -> Self {
        Self {
            phase,
            role: step.role,
            workers: step.workers,
            requests: step.outcomes.finished(),
            p50_ms: step.latency.quantile_ms(0.5),
            p99_ms: plimsoll_domain::percentile::p99(&step.latency).map(|p99| p99.value),
        }
    }
}

/// A finished phase: `✓ staircase  12 min   5 to 100 workers, 7 steps, knee bisected`.
fn phase_line(phase: PhaseKind, took: Duration, steps: &[Brief], shapes: u32) -> String {
    let own: Vec<&Brief> = steps.iter().filter(|step| step.phase == phase).collect();
    let told = match phase {
        PhaseKind::Smoke => {
            let single = own.iter().find(|step| step.role == StepRole::Single).and_then(|step| step.p50_ms);
            let alone = single.map_or_else(String::new, |ms| format!(", {} alone", latency(ms)));
            format!("1 worker, {}{alone}", counted(shapes.into(), "request shape"))
        }
        PhaseKind::WarmUp => {
            format!("{}, kept apart", counted(own.iter().map(|step| step.requests).sum(), "request"))
        }
        PhaseKind::Staircase => {
            let workers = own.iter().map(|step| step.workers);
            let range = match (workers.clone().min(), workers.max()) {
                (Some(least), Some(most)) => format!("{} to {} workers, ", count(least.into()), count(most.into())),
                _ => String::new(),
            };
            let bisected = own.iter().any(|step| step.role == StepRole::Bisect);
            format!("{range}{}{}", counted(own.len() as u64, "step"), if bisected { ", knee bisected" } else { "" })
        }
        PhaseKind::Stability => own.first().map_or_else(String::new, |step| {
            let p99 = step.p99_ms.map_or_else(String::new, |ms| format!(", P99 {}", latency(ms)));
            format!("{}{p99}", workers(step.workers))
        }),
    };
    format!("  ✓ {:<10} {:>10}   {told}", phase.name(), duration(took.as_secs_f64()))
}

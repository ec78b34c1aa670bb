//! How a run of the server goes, on stderr: one line that changes on a terminal, plain lines elsewhere.

use std::io::Write as _;
use std::time::{Duration, Instant};

use indicatif::{ProgressBar, ProgressDrawTarget, ProgressStyle};
use plimsoll_domain::format::duration;
use plimsoll_domain::job::{Live, Progress, Run, State, say};

use crate::upload::Wait;

/// Writes what happens to one run.
#[derive(Debug)]
pub struct Watch {
    bar: Option<ProgressBar>,
    last_line: Option<Instant>,
}

/// A pause between two plain lines.
const EVERY: Duration = Duration::from_secs(5);

impl Watch {
    pub fn new(terminal: bool) -> Self {
        let bar = terminal.then(|| {
            let bar = ProgressBar::with_draw_target(Some(1_000), ProgressDrawTarget::stderr());
            let style = ProgressStyle::with_template("{bar:7} {wide_msg}");
            bar.set_style(style.unwrap_or_else(|_| ProgressStyle::default_bar()));
            bar
        });
        Self { bar, last_line: None }
    }

    pub fn see(&mut self, event: &Live) {
        match event {
            Live::State { state, attempt, runner, .. } => self.line(&state_line(*state, *attempt, runner.as_deref())),
            Live::Progress(progress) => self.progress(progress),
            // It ends the run, and is said by the command.
            Live::Verdict { .. } => {}
        }
    }

    pub fn line(&mut self, line: &str) {
        match &self.bar {
            Some(bar) if !bar.is_finished() => bar.println(line),
            _ => drop(writeln!(std::io::stderr(), "{line}")),
        }
    }

    /// Takes the changing line away.
    pub fn finish(&mut self) {
        if let Some(bar) = &self.bar {
            bar.finish_and_clear();
        }
    }

    fn progress(&mut self, progress: &Progress) {
        match &self.bar {
            Some(bar) => {
                if let Some(done) = progress.done {
                    bar.set_position((done.clamp(0.0, 1.0) * 1_000.0) as u64);
                }
                bar.set_message(say::all_figures(progress));
            }
            None if self.last_line.is_none_or(|last| last.elapsed() >= EVERY) => {
                self.last_line = Some(Instant::now());
                self.line(&format!("    {}", say::all_figures(progress)));
            }
            None => {}
        }
    }
}

/// `v1.9.2 of sentiment, run 0190…: running`.
pub fn heading(run: &Run) -> String {
    format!("{} of {}, run {}: {}", run.label, run.project, run.run_id, say::word(run.state))
}

/// What is waited for, for how long, and how often it was tried.
pub fn waiting(server: &str, wait: &Wait<'_>) -> String {
    let time = |time: Duration| duration(time.as_secs_f64());
    let until = wait.left.map_or_else(String::new, |left| format!(", giving up in {}", time(left)));
    let tries = if wait.attempts == 1 { "1 try".to_owned() } else { format!("{} tries", wait.attempts) };
    format!("  waiting for {}: {}; {tries} so far, the next in {}{until}", server, wait.why, time(wait.pause))
}

fn state_line(state: State, attempt: u32, runner: Option<&str>) -> String {
    if state.is_final() {
        return format!("  {}", say::word(state));
    }
    let again = if attempt > 1 { format!(", attempt {attempt}") } else { String::new() };
    format!("  {}{again}", say::place(state, runner))
}

#[cfg(test)]
mod tests {
    use plimsoll_domain::format::NARROW;

    use super::*;

    #[test]
    fn a_pause_says_for_whom_why_how_long_and_how_often() {
        let wait = Wait { why: "connection refused", pause: Duration::from_secs(4), attempts: 3, left: None };
        let said = waiting("http://h:1", &wait).replace(NARROW, " ");
        assert_eq!(said, "  waiting for http://h:1: connection refused; 3 tries so far, the next in 4 s");
        let bounded = Wait { left: Some(Duration::from_secs(90)), attempts: 1, ..wait };
        let said = waiting("http://h:1", &bounded).replace(NARROW, " ");
        assert!(said.ends_with("1 try so far, the next in 4 s, giving up in 90 s"), "{said}");
    }

    #[test]
    fn states_are_told_in_words() {
        assert_eq!(state_line(State::Queued, 0, None), "  waiting");
        assert_eq!(state_line(State::Running, 2, Some("a10-1")), "  running on a10-1, attempt 2");
    }
}

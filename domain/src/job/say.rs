//! How a run goes, in words: the same on its page and in a terminal.

use super::{Progress, State};
use crate::format::{self, NARROW};

/// Where it stands, in a word.
pub fn word(state: State) -> &'static str {
    match state {
        State::Queued => "waiting",
        State::Leased => "preparing",
        state => state.name(),
    }
}

/// The same with its runner, whose name is not told to everybody: `running on gpu-host-1`.
pub fn place(state: State, runner: Option<&str>) -> String {
    format!("{}{}", word(state), on(runner))
}

/// ` on gpu-host-1`, or nothing.
pub fn on(runner: Option<&str>) -> String {
    runner.map(|name| format!(" on {name}")).unwrap_or_default()
}

/// `staircase, 48 workers, 312 TPS, P99 171 ms; about 9 min left`, as far as it is known.
pub fn figures(now: &Progress) -> String {
    told(now, [tps(now), latency("P99", now.p99_ms)])
}

/// The same with everything else that is known.
pub fn all_figures(now: &Progress) -> String {
    let figures = [
        tps(now),
        latency("P50", now.p50_ms),
        latency("P99", now.p99_ms),
        now.errors.map(|errors| format::counted(errors, "error")),
        now.gpu_utilisation.map(|share| format!("GPU {}{NARROW}%", format::number((share * 100.0).round()))),
    ];
    told(now, figures)
}

/// Where no load is put on the service there are no figures to tell.
fn told<const N: usize>(now: &Progress, figures: [Option<String>; N]) -> String {
    let stage = now.stage.name().to_owned();
    if !now.stage.is_measuring() {
        return stage;
    }
    let known = [Some(stage), now.workers.map(format::workers)].into_iter().chain(figures).flatten();
    format!("{}{}", known.collect::<Vec<_>>().join(", "), left(now))
}

fn tps(now: &Progress) -> Option<String> {
    now.tps.map(|tps| format!("{}{NARROW}TPS", format::number(tps)))
}

fn latency(name: &str, ms: Option<f64>) -> Option<String> {
    ms.map(|ms| format!("{name} {}", format::latency(ms)))
}

fn left(now: &Progress) -> String {
    now.left_ms.map(|ms| format!("; {}", time_left(ms as f64 / 1_000.0))).unwrap_or_default()
}

/// `about 9 min left`: whole minutes above 100 s.
pub fn time_left(seconds: f64) -> String {
    let about = if seconds >= 100.0 { (seconds / 60.0).round() * 60.0 } else { seconds };
    format!("about {} left", format::duration(about))
}

#[cfg(test)]
mod tests {
    use super::super::Stage;
    use super::*;

    #[test]
    fn figures_are_told_as_far_as_they_are_known() {
        let bare = Progress::at(1, Stage::WarmUp);
        assert_eq!((figures(&bare), all_figures(&bare)), ("warm-up".to_owned(), "warm-up".to_owned()));
        let now = Progress {
            workers: Some(20),
            left_ms: Some(548_000),
            tps: Some(176.2),
            p50_ms: Some(101.0),
            p99_ms: Some(261.0),
            errors: Some(1),
            gpu_utilisation: Some(0.874),
            ..Progress::at(1, Stage::Staircase)
        };
        let plain = |text: String| text.replace(NARROW, " ");
        assert_eq!(plain(figures(&now)), "staircase, 20 workers, 176 TPS, P99 261 ms; about 9 min left");
        assert_eq!(
            plain(all_figures(&now)),
            "staircase, 20 workers, 176 TPS, P50 101 ms, P99 261 ms, 1 error, GPU 87.0 %; about 9 min left"
        );
        assert_eq!(figures(&Progress { stage: Stage::CleanUp, ..now }), "clean-up");
        let soon = Progress { workers: Some(1), left_ms: Some(42_000), ..bare };
        assert_eq!(plain(figures(&soon)), "warm-up, 1 worker; about 42 s left");
    }

    #[test]
    fn a_state_names_its_runner_where_it_may() {
        assert_eq!(place(State::Running, Some("a10-1")), "running on a10-1");
        assert_eq!((place(State::Leased, None), word(State::Queued)), ("preparing".to_owned(), "waiting"));
    }
}

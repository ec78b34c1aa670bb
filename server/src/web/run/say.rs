//! How a run goes, in one sentence.

use plimsoll_domain::format::{self, NARROW};
use plimsoll_domain::job::{Progress, Run, State};

use crate::web::view::{Look, sentence, word};

/// Above the sentence.
pub(in crate::web) fn state_word(run: &Run) -> String {
    match (run.state, run.verdict) {
        (_, Some(verdict)) => word(verdict),
        (State::Queued, _) => "Waiting".to_owned(),
        (State::Leased, _) => "Preparing".to_owned(),
        (state, None) => sentence(state.name()).trim_end_matches('.').to_owned(),
    }
}

/// Colours are a verdict's: a run that has none is plain, or grey when it ended without.
pub(in crate::web) fn look(run: &Run) -> Look {
    match (run.verdict, run.state) {
        (Some(verdict), _) => Look::of(verdict),
        (None, State::Failed | State::Cancelled | State::Expired) => Look::Void,
        (None, _) => Look::Plain,
    }
}

/// `served` tells whether a runner fits.
pub(super) fn say(run: &Run, served: bool) -> String {
    let runner = run.runner.as_deref().unwrap_or("A runner");
    // The name is not told to everybody.
    let on = run.runner.as_ref().map(|name| format!(" on {name}")).unwrap_or_default();
    let reason = run.reason.as_deref().map(sentence).unwrap_or_default();
    match (run.state, &run.sentence) {
        (_, Some(judged)) => judged.clone(),
        (State::Queued, _) => joined(&reason, &waiting(run, served)),
        (State::Leased, _) => match &run.progress {
            Some(now) if !now.stage.is_measuring() => format!("{runner} has it: {}.", now.stage.name()),
            _ => format!("{runner} has it and prepares."),
        },
        (State::Running, _) => match &run.progress {
            Some(now) => format!("Running{on}: {}.", figures(now)),
            None => format!("Running{on}."),
        },
        (State::Done, _) => "Measured; the verdict comes in a moment.".to_owned(),
        (State::Failed, _) => joined(&format!("It could not be measured{on}."), &reason),
        (State::Cancelled, _) => joined("Cancelled.", &reason),
        (State::Expired, _) => joined("Given up.", &reason),
    }
}

/// What is announced to those who hear the page: only what changes seldom.
pub(super) fn announced(run: &Run) -> String {
    match (run.state, &run.progress) {
        (State::Running, Some(now)) => format!("Running: {}", now.stage.name()),
        _ => state_word(run),
    }
}

fn waiting(run: &Run, served: bool) -> String {
    let labels: Vec<String> = run.labels.iter().map(|(name, value)| format!("{name}={value}")).collect();
    let with = if labels.is_empty() { String::new() } else { format!(" with {}", labels.join(", ")) };
    match served {
        true => format!("It waits until a runner{with} is free."),
        false => format!("It waits, and no runner{with} takes runs of {}: start one.", run.project),
    }
}

/// `staircase, 48 workers, 312 TPS, P99 171 ms; about 9 min left`, as far as it is known.
pub(in crate::web) fn figures(now: &Progress) -> String {
    let workers = now.workers.map(format::workers);
    let parts = [
        Some(now.stage.name().to_owned()),
        workers,
        now.tps.map(|tps| format!("{}{NARROW}TPS", format::number(tps))),
        now.p99_ms.map(|ms| format!("P99 {}", format::latency(ms))),
    ];
    let known = parts.into_iter().flatten().collect::<Vec<_>>().join(", ");
    let left = now.left_ms.map(|ms| format!("; about {} left", about(ms))).unwrap_or_default();
    format!("{known}{left}")
}

/// Whole minutes above 100 s.
fn about(ms: u64) -> String {
    let seconds = ms as f64 / 1_000.0;
    format::duration(if seconds >= 100.0 { (seconds / 60.0).round() * 60.0 } else { seconds })
}

fn joined(first: &str, second: &str) -> String {
    [first, second].into_iter().filter(|text| !text.is_empty()).collect::<Vec<_>>().join(" ")
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use plimsoll_domain::comparison::Verdict;
    use plimsoll_domain::ids::RunId;
    use plimsoll_domain::job::{Kind, Stage, Wanted};
    use uuid::Uuid;

    use super::*;

    fn run(state: State) -> Run {
        Run {
            run_id: RunId(Uuid::nil()),
            project: "sentiment".parse().unwrap(),
            kind: Kind::Measure,
            state,
            label: "v1.9.2".to_owned(),
            revision: Wanted::default(),
            reason: None,
            attempt: 1,
            max_attempts: 3,
            labels: BTreeMap::new(),
            requested_by: Some("token ci".to_owned()),
            runner: Some("gpu-host-1".to_owned()),
            created_at: jiff::Timestamp::UNIX_EPOCH,
            started_at: None,
            finished_at: None,
            progress: None,
            last_seq: 0,
            verdict: None,
            sentence: None,
            path: String::new(),
        }
    }

    fn progress(stage: Stage) -> Progress {
        Progress {
            elapsed_ms: 0,
            stage,
            workers: None,
            left_ms: None,
            done: None,
            tps: None,
            p50_ms: None,
            p99_ms: None,
            errors: None,
            gpu_utilisation: None,
            gpu_memory_bytes: None,
        }
    }

    #[test]
    fn a_run_under_way_says_where_and_how_far() {
        let now = Progress {
            workers: Some(48),
            tps: Some(312.2),
            p99_ms: Some(171.3),
            left_ms: Some(548_000),
            ..progress(Stage::Staircase)
        };
        let told = say(&Run { progress: Some(now), ..run(State::Running) }, true);
        let expected =
            "Running on gpu-host-1: staircase, 48 workers, 312\u{202f}TPS, P99 171\u{202f}ms; about 9\u{202f}min left.";
        assert_eq!(told, expected);
        let little = Run { progress: Some(progress(Stage::WarmUp)), ..run(State::Running) };
        assert_eq!(say(&little, true), "Running on gpu-host-1: warm-up.");
        assert_eq!(say(&run(State::Running), true), "Running on gpu-host-1.");
        let checkout = Run { progress: Some(progress(Stage::Checkout)), ..run(State::Leased) };
        assert_eq!(say(&checkout, true), "gpu-host-1 has it: checkout.");
        assert_eq!(say(&Run { runner: None, ..checkout }, true), "A runner has it: checkout.");
        assert_eq!(say(&Run { runner: None, ..little }, true), "Running: warm-up.");
    }

    #[test]
    fn a_run_that_waits_says_for_what() {
        let labels = BTreeMap::from([("gpu".to_owned(), "H200".to_owned())]);
        let waits = Run { labels, runner: None, ..run(State::Queued) };
        assert_eq!(say(&waits, true), "It waits until a runner with gpu=H200 is free.");
        assert_eq!(say(&waits, false), "It waits, and no runner with gpu=H200 takes runs of sentiment: start one.");
        let again = Run { reason: Some("runner lost".to_owned()), ..run(State::Queued) };
        assert_eq!(say(&again, true), "Runner lost. It waits until a runner is free.");
    }

    #[test]
    fn an_end_says_why_and_a_verdict_says_all() {
        let failed = Run { reason: Some("the plan names no origin".to_owned()), ..run(State::Failed) };
        assert_eq!(say(&failed, true), "It could not be measured on gpu-host-1. The plan names no origin.");
        assert_eq!((state_word(&failed), look(&failed)), ("Failed".to_owned(), Look::Void));
        let judged =
            Run { verdict: Some(Verdict::Pass), sentence: Some("No regression.".to_owned()), ..run(State::Expired) };
        assert_eq!((say(&judged, true).as_str(), look(&judged)), ("No regression.", Look::Better));
    }
}

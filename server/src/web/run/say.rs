//! How a run goes, in one sentence.

use plimsoll_domain::job::say::{figures, on, place, word as state_of};
use plimsoll_domain::job::{Run, State};

use crate::web::view::{Look, sentence, word};

/// Above the sentence.
pub(in crate::web) fn state_word(run: &Run) -> String {
    match (run.state, run.verdict) {
        (_, Some(verdict)) => word(verdict),
        (state, None) => capital(state_of(state)),
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
    let runner = run.runner.as_deref();
    let on = on(runner);
    let reason = run.reason.as_deref().map(sentence).unwrap_or_default();
    match (run.state, &run.sentence) {
        (_, Some(judged)) => judged.clone(),
        (State::Queued, _) => joined(&reason, &waiting(run, served)),
        (State::Leased | State::Running, _) => {
            let now = run.progress.as_ref().map(|now| format!(": {}", figures(now))).unwrap_or_default();
            format!("{}{now}.", capital(&place(run.state, runner)))
        }
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

fn capital(text: &str) -> String {
    sentence(text).trim_end_matches('.').to_owned()
}

fn joined(first: &str, second: &str) -> String {
    [first, second].into_iter().filter(|text| !text.is_empty()).collect::<Vec<_>>().join(" ")
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use plimsoll_domain::comparison::Verdict;
    use plimsoll_domain::ids::RunId;
    use plimsoll_domain::job::{Kind, Progress, Stage, Wanted};
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
        Progress::at(0, stage)
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
        assert_eq!(say(&checkout, true), "Preparing on gpu-host-1: checkout.");
        assert_eq!(say(&Run { runner: None, ..checkout }, true), "Preparing: checkout.");
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

//! The rule, over every combination of what it depends on.

use plimsoll_domain::comparison::{Metric, Verdict};
use plimsoll_domain::job::Stage;
use plimsoll_domain::policy::Doubt;

use super::fixture::{accepted, comparison, project, run, settled, told};
use crate::github::text::{Backfill, Standing, State, Told, Unmeasured, conclusion};
use crate::store::github::checks::Conclusion;

const VERDICTS: [Verdict; 5] =
    [Verdict::Pass, Verdict::Regressed, Verdict::Inconclusive, Verdict::Invalid, Verdict::NoBaseline];
const ENDS: [Unmeasured; 4] = [Unmeasured::Failed, Unmeasured::Cancelled, Unmeasured::Expired, Unmeasured::Lost];

/// What a person took on.
#[derive(Debug, Clone, Copy, PartialEq)]
enum Taken {
    Nothing,
    /// One of the two regressed metrics.
    One,
    Both,
    All,
}
const TAKEN: [Taken; 4] = [Taken::Nothing, Taken::One, Taken::Both, Taken::All];

/// A line of the table: what a measured run is, and how it concludes. `None` fits everything.
struct Line {
    verdict: Option<Verdict>,
    gates: Option<bool>,
    taken: Option<&'static [Taken]>,
    backfill: Option<bool>,
    doubt: Option<Doubt>,
    /// `None` is still in progress.
    concludes: Option<Conclusion>,
    /// In its title.
    says: &'static str,
}

const ANY: Line =
    Line { verdict: None, gates: None, taken: None, backfill: None, doubt: None, concludes: None, says: "" };

/// The first line that fits counts.
const TABLE: [Line; 8] = [
    Line { verdict: Some(Verdict::NoBaseline), backfill: Some(true), ..ANY },
    Line { gates: Some(false), concludes: Some(Conclusion::ActionRequired), says: "may not decide", ..ANY },
    Line { verdict: Some(Verdict::Pass), concludes: Some(Conclusion::Success), says: "No regression", ..ANY },
    Line {
        verdict: Some(Verdict::Regressed),
        taken: Some(&[Taken::Both, Taken::All]),
        concludes: Some(Conclusion::Success),
        says: "accepted by octocat: the new model is worth it",
        ..ANY
    },
    Line { verdict: Some(Verdict::Regressed), concludes: Some(Conclusion::Failure), says: "Regressed: ", ..ANY },
    Line { doubt: Some(Doubt::Fail), concludes: Some(Conclusion::Failure), says: "the policy blocks", ..ANY },
    Line { doubt: Some(Doubt::Pass), concludes: Some(Conclusion::Success), says: "the policy lets it pass", ..ANY },
    ANY,
];

#[test]
fn every_verdict_concludes_as_the_table_says() {
    let project = project();
    let mut seen = 0;
    for verdict in VERDICTS {
        let comparison = comparison(verdict);
        for (gates, taken, backfill, doubt) in combinations() {
            let acceptances = acceptances(taken);
            let told = Told {
                comparison: Some(&comparison),
                gates,
                accepted: &acceptances,
                backfill: backfill.then_some(Backfill { run: run(9), left: None }),
                doubt,
                ..told(&project)
            };
            let fits = |line: &&Line| {
                line.verdict.is_none_or(|v| v == verdict)
                    && line.gates.is_none_or(|g| g == gates)
                    && line.taken.is_none_or(|t| t.contains(&taken))
                    && line.backfill.is_none_or(|b| b == backfill)
                    && line.doubt.is_none_or(|d| d == doubt)
            };
            let line = TABLE.iter().find(fits).unwrap();
            let what = format!("{verdict:?} gates={gates} {taken:?} backfill={backfill} {doubt:?}");
            match (conclusion(&told), line.concludes) {
                (Standing::Progress, None) => {}
                (Standing::Concluded { conclusion, title }, Some(wanted)) => {
                    assert_eq!(conclusion, wanted, "{what}: {title}");
                    assert!(title.contains(line.says), "{what}: {title}");
                }
                (other, wanted) => panic!("{what}: {other:?}, not {wanted:?}"),
            }
            seen += 1;
        }
    }
    assert_eq!(seen, 5 * 2 * 4 * 2 * 2);
}

#[test]
fn a_run_without_a_snapshot_is_a_doubt_and_a_cancelled_one_is_cancelled() {
    let project = project();
    for end in ENDS {
        for (gates, taken, backfill, doubt) in combinations() {
            let acceptances = acceptances(taken);
            let told = Told {
                state: State::Unmeasured { end, why: Some("the service ended\nwith 1.") },
                gates,
                accepted: &acceptances,
                backfill: backfill.then_some(Backfill { run: run(9), left: None }),
                doubt,
                ..told(&project)
            };
            let Standing::Concluded { conclusion, title } = conclusion(&told) else { panic!("{told:?}") };
            let wanted = match (end, doubt) {
                (Unmeasured::Cancelled, _) => Conclusion::Cancelled,
                (_, Doubt::Fail) => Conclusion::Failure,
                (_, Doubt::Pass) => Conclusion::Success,
            };
            assert_eq!(conclusion, wanted, "{title}");
            assert!(title.contains("(the service ended with 1)"), "{title}");
            assert_eq!(title.contains("the policy"), end != Unmeasured::Cancelled, "{title}");
        }
    }
}

#[test]
fn what_is_settled_counts_whatever_the_run_says() {
    let project = project();
    let all = [
        Conclusion::Success,
        Conclusion::Failure,
        Conclusion::ActionRequired,
        Conclusion::Cancelled,
        Conclusion::TimedOut,
    ];
    let comparison = comparison(Verdict::Regressed);
    for wanted in all {
        let settled = settled(wanted, "not measured:\n no matching path");
        for state in states() {
            let told = Told { settled: Some(&settled), state, comparison: Some(&comparison), ..told(&project) };
            let Standing::Concluded { conclusion, title } = conclusion(&told) else { panic!("{told:?}") };
            assert_eq!((conclusion, title.as_str()), (wanted, "not measured: no matching path"));
        }
    }
}

#[test]
fn a_run_under_way_is_in_progress_though_an_earlier_verdict_is_known() {
    let project = project();
    let comparison = comparison(Verdict::Pass);
    for state in states().into_iter().filter(|state| matches!(state, State::Queued | State::Running { .. })) {
        let told = Told { state, comparison: Some(&comparison), ..told(&project) };
        assert_eq!(conclusion(&told), Standing::Progress);
    }
    assert_eq!(conclusion(&told(&project)), Standing::Progress, "stored, and not judged");
}

#[test]
fn a_regression_without_a_metric_is_only_accepted_with_all() {
    let project = project();
    let mut comparison = comparison(Verdict::Regressed);
    comparison.metrics.clear();
    let every = [Metric::P99, Metric::Capacity, Metric::ErrorRate].map(|metric| accepted(Some(metric)));
    let told = Told { comparison: Some(&comparison), accepted: &every, ..told(&project) };
    assert!(matches!(conclusion(&told), Standing::Concluded { conclusion: Conclusion::Failure, .. }));
    let all = [accepted(None)];
    let told = Told { accepted: &all, ..told };
    assert!(matches!(conclusion(&told), Standing::Concluded { conclusion: Conclusion::Success, .. }));
}

fn combinations() -> Vec<(bool, Taken, bool, Doubt)> {
    let mut all = Vec::new();
    for gates in [true, false] {
        for taken in TAKEN {
            for backfill in [true, false] {
                all.extend(Doubt::ALL.map(|doubt| (gates, taken, backfill, doubt)));
            }
        }
    }
    all
}

fn acceptances(taken: Taken) -> Vec<crate::github::text::Acceptance> {
    match taken {
        Taken::Nothing => Vec::new(),
        Taken::One => vec![accepted(Some(Metric::P99))],
        Taken::Both => vec![accepted(Some(Metric::P99)), accepted(Some(Metric::Capacity))],
        Taken::All => vec![accepted(None)],
    }
}

fn states() -> Vec<State<'static>> {
    let running = State::Running { stage: Some(Stage::Staircase), left: None, done: Some(0.4) };
    let ended = ENDS.map(|end| State::Unmeasured { end, why: None });
    [State::Queued, running, State::Measured].into_iter().chain(ended).collect()
}

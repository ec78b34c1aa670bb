//! Checks as GitHub shows them.

use std::fmt::Write as _;
use std::time::Duration;

use plimsoll_domain::comparison::{Metric, Verdict};
use plimsoll_domain::job::Stage;
use plimsoll_domain::policy::Doubt;

use super::fixture::{accepted, comparison, images, project, readable, run, settled, told};
use crate::github::text::{Backfill, Links, State, Told, Unmeasured, check, check_name};
use crate::store::github::checks::{Conclusion, Kind};

fn shown(told: &Told<'_>) -> String {
    let check = check(told);
    let buttons: Vec<&str> = check.actions.iter().map(|action| action.identifier).collect();
    let conclusion = check.conclusion.map_or("–", Conclusion::name);
    let mut out = format!("{} · {conclusion} · {}\n", check.status.name(), check.title);
    let _ = writeln!(out, "{} · {buttons:?}\n\n{}", check.details_url.unwrap_or_default(), check.summary);
    if let Some(text) = check.text {
        let _ = writeln!(out, "\n=== text\n{text}");
    }
    readable(&out)
}

#[test]
fn regressed() {
    let (project, comparison, images) = (project(), comparison(Verdict::Regressed), images());
    let told = Told { comparison: Some(&comparison), chart: Some(&images), ..told(&project) };
    insta::assert_snapshot!(shown(&told), @r#"
    completed · failure · Regressed: P99 +54 % (allowed +10 %), capacity −38 % (allowed −5 %)
    https://plimsoll.acme.dev/sentiment/compare/run-1...run-2 · ["run_again", "accept"]

    P99 at 48 workers rose from **261 ms** to **402 ms** (+54 %, interval +47 to +61 %; allowed +10 %) against v1.9.1. Capacity fell from **286 TPS** to **176 TPS** (−38 %, interval −40 to −37 %; allowed −5 %).

    | Gated metric | Baseline | This | Change | Interval | Allowed | Verdict |
    |:--|--:|--:|--:|--:|--:|:--|
    | P99 at 48 workers, ms | 261 | **402** | **+54 %** ▲ worse | +47 to +61 % | +10 % | **▲ regressed** |
    | Capacity, TPS | 286 | **176** | **−38 %** ▼ worse | −40 to −37 % | −5 % | **▼ regressed** |
    | Error rate, % | 0.00300 | 0.00300 | 0.000 pp, within noise | −0.005 to +0.006 pp | +0.1 pp | ● pass |

    <picture><source media="(prefers-color-scheme: dark)" srcset="https://plimsoll.acme.dev/charts/run-2/staircase.svg?against=run-1&amp;theme=dark&amp;signature=0b"><img width="540" height="500" alt="TPS and P99 against workers, of 8d1e07b and of v1.9.1. Capacity 176 TPS, before 286 TPS. P99 at 48 workers 402 ms, before 261 ms." src="https://plimsoll.acme.dev/charts/run-2/staircase.svg?against=run-1&amp;theme=light&amp;signature=0a"></picture>

    **Why**
    1. The thread pool is the limit: all 10 threads are busy from 10 workers on.
    2. The GPU has room: 61 % busy, before 92 %.
    3. One request alone takes 42.2 ms, as before.

    **What to do:** give the pool back its 64 threads. Or take it on: `/plimsoll accept p99 "reason"`.

    [Comparison](https://plimsoll.acme.dev/sentiment/compare/run-1...run-2) · [Snapshot](https://plimsoll.acme.dev/sentiment/snapshots/run-2) · [Methodology](https://plimsoll.acme.dev/methodology) · [History](https://plimsoll.acme.dev/sentiment/history)

    === text
    | Observed metric | Baseline | This | Change | Interval |
    |:--|--:|--:|--:|--:|
    | P50 at 48 workers, ms | 182 | 271 | +49 % ▲ worse | +45 to +53 % |
    | TPS at 48 workers | 260 | 175 | −33 % ▼ worse | −34 to −31 % |
    | One request alone, ms | 42.0 | 42.2 | +0.5 %, within noise | −1.6 to +2.6 % |

    Baseline: v1.9.1, the merge base, one run.
    "#);
}

#[test]
fn regressed_and_accepted_in_part_and_whole() {
    let (project, comparison) = (project(), comparison(Verdict::Regressed));
    let part = [accepted(Some(Metric::P99))];
    let told = Told { comparison: Some(&comparison), accepted: &part, ..told(&project) };
    insta::assert_snapshot!(shown(&told).lines().take(8).collect::<Vec<_>>().join("\n"), @r#"
    completed · failure · Regressed: capacity −38 % (allowed −5 %)
    https://plimsoll.acme.dev/sentiment/compare/run-1...run-2 · ["run_again", "accept"]

    P99 at 48 workers rose from **261 ms** to **402 ms** (+54 %, interval +47 to +61 %; allowed +10 %) against v1.9.1. Capacity fell from **286 TPS** to **176 TPS** (−38 %, interval −40 to −37 %; allowed −5 %).

    **Accepted** (P99) by octocat, 25 Nov 2025: “the new model is worth it”<br>
    Still open: capacity.
    "#);
    let whole = [accepted(None)];
    insta::assert_snapshot!(shown(&Told { accepted: &whole, ..told }), @r#"
    completed · success · Regressed, accepted by octocat: the new model is worth it
    https://plimsoll.acme.dev/sentiment/compare/run-1...run-2 · ["run_again"]

    P99 at 48 workers rose from **261 ms** to **402 ms** (+54 %, interval +47 to +61 %; allowed +10 %) against v1.9.1. Capacity fell from **286 TPS** to **176 TPS** (−38 %, interval −40 to −37 %; allowed −5 %).

    **Accepted** by octocat, 25 Nov 2025: “the new model is worth it”

    | Gated metric | Baseline | This | Change | Interval | Allowed | Verdict |
    |:--|--:|--:|--:|--:|--:|:--|
    | P99 at 48 workers, ms | 261 | **402** | **+54 %** ▲ worse | +47 to +61 % | +10 % | **▲ regressed**, accepted |
    | Capacity, TPS | 286 | **176** | **−38 %** ▼ worse | −40 to −37 % | −5 % | **▼ regressed**, accepted |
    | Error rate, % | 0.00300 | 0.00300 | 0.000 pp, within noise | −0.005 to +0.006 pp | +0.1 pp | ● pass |

    [Chart: TPS and P99 against workers](https://plimsoll.acme.dev/sentiment/compare/run-1...run-2#staircase)

    **Why**
    1. The thread pool is the limit: all 10 threads are busy from 10 workers on.
    2. The GPU has room: 61 % busy, before 92 %.
    3. One request alone takes 42.2 ms, as before.

    **What to do:** nothing: it was taken on for this commit.

    [Comparison](https://plimsoll.acme.dev/sentiment/compare/run-1...run-2) · [Snapshot](https://plimsoll.acme.dev/sentiment/snapshots/run-2) · [Methodology](https://plimsoll.acme.dev/methodology) · [History](https://plimsoll.acme.dev/sentiment/history)

    === text
    | Observed metric | Baseline | This | Change | Interval |
    |:--|--:|--:|--:|--:|
    | P50 at 48 workers, ms | 182 | 271 | +49 % ▲ worse | +45 to +53 % |
    | TPS at 48 workers | 260 | 175 | −33 % ▼ worse | −34 to −31 % |
    | One request alone, ms | 42.0 | 42.2 | +0.5 %, within noise | −1.6 to +2.6 % |

    Baseline: v1.9.1, the merge base, one run.
    "#);
}

#[test]
fn pass() {
    let (project, comparison, images) = (project(), comparison(Verdict::Pass), images());
    let told = Told { comparison: Some(&comparison), chart: Some(&images), ..told(&project) };
    insta::assert_snapshot!(shown(&told), @r#"
    completed · success · No regression against v1.9.1
    https://plimsoll.acme.dev/sentiment/compare/run-1...run-2 · ["run_again"]

    No regression against v1.9.1: P99 −1.5 % (−6.0 to +3.2 %), capacity +0.7 % (−1.4 to +2.8 %).

    | Gated metric | Baseline | This | Change | Interval | Allowed | Verdict |
    |:--|--:|--:|--:|--:|--:|:--|
    | P99 at 48 workers, ms | 261 | 257 | −1.5 %, within noise | −6.0 to +3.2 % | +10 % | ● pass |
    | Capacity, TPS | 286 | 288 | +0.7 %, within noise | −1.4 to +2.8 % | −5 % | ● pass |
    | Error rate, % | 0.00300 | 0.00400 | +0.001 pp, within noise | −0.004 to +0.007 pp | +0.1 pp | ● pass |

    <picture><source media="(prefers-color-scheme: dark)" srcset="https://plimsoll.acme.dev/charts/run-2/staircase.svg?against=run-1&amp;theme=dark&amp;signature=0b"><img width="540" height="500" alt="TPS and P99 against workers, of 8d1e07b and of v1.9.1. Capacity 288 TPS, before 286 TPS. P99 at 48 workers 257 ms, before 261 ms." src="https://plimsoll.acme.dev/charts/run-2/staircase.svg?against=run-1&amp;theme=light&amp;signature=0a"></picture>

    [Comparison](https://plimsoll.acme.dev/sentiment/compare/run-1...run-2) · [Snapshot](https://plimsoll.acme.dev/sentiment/snapshots/run-2) · [Methodology](https://plimsoll.acme.dev/methodology) · [History](https://plimsoll.acme.dev/sentiment/history)

    === text
    | Observed metric | Baseline | This | Change | Interval |
    |:--|--:|--:|--:|--:|
    | P50 at 48 workers, ms | 182 | 180 | −1.1 %, within noise | −3.0 to +1.0 % |

    Baseline: v1.9.1, the merge base, one run.
    "#);
}

#[test]
fn inconclusive_as_the_policy_says() {
    let (project, comparison) = (project(), comparison(Verdict::Inconclusive));
    let told = Told { comparison: Some(&comparison), ..told(&project) };
    insta::assert_snapshot!(shown(&told), @r#"
    completed · failure · Inconclusive: the policy blocks in doubt
    https://plimsoll.acme.dev/sentiment/compare/run-1...run-2 · ["run_again"]

    Too noisy to say: P99 +8.0 % (−2.8 to +20 %; allowed +10 %). Measure again, or for longer. Too few requests to tell the error rate.

    | Gated metric | Baseline | This | Change | Interval | Allowed | Verdict |
    |:--|--:|--:|--:|--:|--:|:--|
    | P99 at 48 workers, ms | 187 | 202 | +8.0 %, undecided | −2.8 to +20 % | +10 % | **◇ undecided** |
    | Error rate, % | 0 | 0.00200 | – | – | +0.1 pp | **◇ undecided** |
    | Capacity, TPS | 512 | 506 | −1.2 %, within noise | −3.4 to +1.1 % | −5 % | ● pass |

    [Chart: TPS and P99 against workers](https://plimsoll.acme.dev/sentiment/compare/run-1...run-2#staircase)

    **What to do:** measure both revisions again on the same host, or for longer. Until then the policy blocks (`when_in_doubt = "fail"`).

    [Comparison](https://plimsoll.acme.dev/sentiment/compare/run-1...run-2) · [Snapshot](https://plimsoll.acme.dev/sentiment/snapshots/run-2) · [Methodology](https://plimsoll.acme.dev/methodology) · [History](https://plimsoll.acme.dev/sentiment/history)

    === text
    Baseline: v1.9.1, the merge base, one run.
    "#);
    let lenient = shown(&Told { doubt: Doubt::Pass, ..told });
    insta::assert_snapshot!(lenient.lines().next().unwrap(), @"completed · success · Inconclusive: not judged, the policy lets it pass in doubt");
}

#[test]
fn invalid() {
    let (project, comparison) = (project(), comparison(Verdict::Invalid));
    insta::assert_snapshot!(shown(&Told { comparison: Some(&comparison), ..told(&project) }), @r#"
    completed · failure · Invalid: the policy blocks in doubt
    https://plimsoll.acme.dev/sentiment/compare/run-1...run-2 · ["run_again"]

    Not comparable: the load generator used 93 % CPU from step 50 on. Run it from a second host or lower the rate.

    **What to do:** run it again once that is done. This is no verdict on your change. Until then the policy blocks (`when_in_doubt = "fail"`).

    [Comparison](https://plimsoll.acme.dev/sentiment/compare/run-1...run-2) · [Snapshot](https://plimsoll.acme.dev/sentiment/snapshots/run-2) · [Methodology](https://plimsoll.acme.dev/methodology#when-a-run-is-invalid) · [History](https://plimsoll.acme.dev/sentiment/history)

    === text
    Baseline: v1.9.1, the merge base, one run.
    "#);
}

#[test]
fn no_baseline_that_is_and_is_not_being_measured() {
    let (project, comparison) = (project(), comparison(Verdict::NoBaseline));
    let told = Told { comparison: Some(&comparison), ..told(&project) };
    insta::assert_snapshot!(shown(&told), @r#"
    completed · failure · No baseline: the policy blocks in doubt
    https://plimsoll.acme.dev/sentiment/snapshots/run-2 · ["run_again"]

    Nothing to compare with yet on A10 ×1: P99 at 48 workers **257 ms**, capacity **288 TPS**.

    | Measured | This |
    |:--|--:|
    | P99 at 48 workers, ms | 257 |
    | Capacity, TPS | 288 |
    | Error rate, % | 0.00400 |

    [Chart: TPS and P99 against workers](https://plimsoll.acme.dev/sentiment/snapshots/run-2#staircase)

    **What to do:** measure the baseline’s revision with the same plan on the same testbed. Until then the policy blocks (`when_in_doubt = "fail"`).

    [Snapshot](https://plimsoll.acme.dev/sentiment/snapshots/run-2) · [Methodology](https://plimsoll.acme.dev/methodology#what-is-compared-with-what) · [History](https://plimsoll.acme.dev/sentiment/history)
    "#);
    let backfill = Some(Backfill { run: run(9), left: Some(Duration::from_secs(26 * 60)) });
    insta::assert_snapshot!(shown(&Told { backfill, ..told }), @r#"
    in_progress · – · No baseline yet, it is being measured, about 26 min left
    https://plimsoll.acme.dev/sentiment/snapshots/run-2 · []

    Nothing to compare with yet on A10 ×1: P99 at 48 workers **257 ms**, capacity **288 TPS**. The baseline is being measured, about 26 min left.

    | Measured | This |
    |:--|--:|
    | P99 at 48 workers, ms | 257 |
    | Capacity, TPS | 288 |
    | Error rate, % | 0.00400 |

    [Chart: TPS and P99 against workers](https://plimsoll.acme.dev/sentiment/snapshots/run-2#staircase)

    **What to do:** nothing. The check waits for the baseline and then turns by itself.

    [Snapshot](https://plimsoll.acme.dev/sentiment/snapshots/run-2) · [Methodology](https://plimsoll.acme.dev/methodology#what-is-compared-with-what) · [History](https://plimsoll.acme.dev/sentiment/history)
    "#);
}

#[test]
fn a_report_that_may_not_decide() {
    let (project, comparison) = (project(), comparison(Verdict::Pass));
    let told = Told { comparison: Some(&comparison), gates: false, ..told(&project) };
    let lines: Vec<String> = shown(&told).lines().filter(|line| !line.starts_with('|')).map(str::to_owned).collect();
    insta::assert_snapshot!(lines.join("\n"), @r#"
    completed · action_required · Pass, but this report may not decide: nobody vouches for where it comes from
    https://plimsoll.acme.dev/sentiment/compare/run-1...run-2 · ["run_again"]

    No regression against v1.9.1: P99 −1.5 % (−6.0 to +3.2 %), capacity +0.7 % (−1.4 to +2.8 %).


    [Chart: TPS and P99 against workers](https://plimsoll.acme.dev/sentiment/compare/run-1...run-2#staircase)

    **What to do:** let the workflow prove who it is (`permissions: id-token: write`): a report that comes with a mere token is shown and decides nothing.

    [Comparison](https://plimsoll.acme.dev/sentiment/compare/run-1...run-2) · [Snapshot](https://plimsoll.acme.dev/sentiment/snapshots/run-2) · [Methodology](https://plimsoll.acme.dev/methodology) · [History](https://plimsoll.acme.dev/sentiment/history)

    === text

    Baseline: v1.9.1, the merge base, one run.
    "#);
}

#[test]
fn queued_running_and_ended_without_a_snapshot() {
    let project = project();
    let base = told(&project);
    insta::assert_snapshot!(shown(&Told { state: State::Queued, ..base }), @r#"
    queued · – · Waits for a runner
    https://plimsoll.acme.dev/sentiment/runs/run-2 · []

    Waits for a runner.

    [Run](https://plimsoll.acme.dev/sentiment/runs/run-2) · [Methodology](https://plimsoll.acme.dev/methodology) · [History](https://plimsoll.acme.dev/sentiment/history)
    "#);
    let left = Some(Duration::from_secs(12 * 60));
    let running = State::Running { stage: Some(Stage::Staircase), left, done: Some(0.4) };
    insta::assert_snapshot!(shown(&Told { state: running, ..base }), @r#"
    in_progress · – · Staircase, 40 % done, about 12 min left
    https://plimsoll.acme.dev/sentiment/runs/run-2 · []

    Being measured: staircase, 40 % done, about 12 min left.

    [Run](https://plimsoll.acme.dev/sentiment/runs/run-2) · [Methodology](https://plimsoll.acme.dev/methodology) · [History](https://plimsoll.acme.dev/sentiment/history)
    "#);
    let lost = State::Unmeasured { end: Unmeasured::Expired, why: Some("its runner gpu-7 was lost three times") };
    insta::assert_snapshot!(shown(&Told { state: lost, ..base }), @r#"
    completed · failure · Not measured in time (its runner gpu-7 was lost three times): the policy blocks in doubt
    https://plimsoll.acme.dev/sentiment/runs/run-2 · ["run_again"]

    Not measured in time: its runner gpu-7 was lost three times.

    **What to do:** look at the run, then run it again. This is no verdict on your change. Until then the policy blocks (`when_in_doubt = "fail"`).

    [Run](https://plimsoll.acme.dev/sentiment/runs/run-2) · [Methodology](https://plimsoll.acme.dev/methodology) · [History](https://plimsoll.acme.dev/sentiment/history)
    "#);
}

#[test]
fn not_measured_and_a_fork_that_waits() {
    let project = project();
    let (skipped, waits) = (
        settled(Conclusion::Success, "not measured: no matching path"),
        settled(Conclusion::ActionRequired, "A maintainer must approve"),
    );
    let base = Told { links: Links { run: None, ..told(&project).links }, state: State::Queued, ..told(&project) };
    insta::assert_snapshot!(shown(&Told { settled: Some(&skipped), ..base }), @r#"
    completed · success · not measured: no matching path
     · ["run_again"]

    Why: not measured: no matching path.

    [Methodology](https://plimsoll.acme.dev/methodology) · [History](https://plimsoll.acme.dev/sentiment/history)
    "#);
    insta::assert_snapshot!(shown(&Told { settled: Some(&waits), ..base }), @r#"
    completed · action_required · A maintainer must approve
     · ["approve"]

    Why: A maintainer must approve.

    [Methodology](https://plimsoll.acme.dev/methodology) · [History](https://plimsoll.acme.dev/sentiment/history)
    "#);
}

#[test]
fn what_is_no_pull_request_is_accepted_by_the_button() {
    let (project, comparison) = (project(), comparison(Verdict::Regressed));
    let told = Told { comparison: Some(&comparison), kind: Kind::Tag, ..told(&project) };
    let summary = check(&told).summary;
    assert!(
        summary.contains("Or take it on by the button *Accept*.") && !summary.contains("/plimsoll accept"),
        "{summary}"
    );
    assert_eq!(check_name(&project, Kind::Tag), "plimsoll/sentiment release");
    for kind in [Kind::Branch, Kind::PullRequest, Kind::MergeGroup] {
        assert_eq!(check_name(&project, kind), "plimsoll/sentiment");
    }
}

#[test]
fn a_server_without_a_public_address_links_nothing() {
    let (project, comparison) = (project(), comparison(Verdict::Regressed));
    let links = Links { server: None, run: Some(run(2)) };
    let check = check(&Told { comparison: Some(&comparison), links, ..told(&project) });
    assert_eq!(check.details_url, None);
    assert!(!check.summary.contains("]("), "{}", check.summary);
}

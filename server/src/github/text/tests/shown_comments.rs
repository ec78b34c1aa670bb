//! Comments as GitHub shows them.

use std::time::Duration;

use plimsoll_domain::comparison::Verdict;
use plimsoll_domain::job::Stage;

use super::fixture::{accepted, at, comparison, images, project, readable, run, settled, told};
use crate::github::text::{Backfill, Earlier, Links, PullTold, State, Told, comment};
use crate::store::github::checks::Conclusion;

fn shown(newest: Told<'_>) -> String {
    of(&PullTold { newest, previous: None, earlier: &[] })
}

fn of(told: &PullTold<'_>) -> String {
    readable(&comment(told))
}

fn earlier() -> [Earlier; 2] {
    let push = |label: &str, n, conclusion, title: &str| Earlier {
        label: label.to_owned(),
        run: Some(run(n)),
        conclusion,
        title: title.to_owned(),
        at: at("2025-11-25T14:06:00Z"),
    };
    [
        push("5af80d3", 4, Some(Conclusion::Failure), "Inconclusive: the policy blocks in doubt"),
        push("84f0c27", 3, None, ""),
    ]
}

#[test]
fn regressed() {
    let (project, comparison, images, earlier) = (project(), comparison(Verdict::Regressed), images(), earlier());
    let newest = Told { comparison: Some(&comparison), chart: Some(&images), ..told(&project) };
    insta::assert_snapshot!(of(&PullTold { newest, previous: None, earlier: &earlier }), @r#"
    <!-- plimsoll:sentiment -->
    ### ▲ Regressed: `8d1e07b` against `3f2c91a` (v1.9.1) on A10 ×1

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

    <details><summary>Observed metrics, baseline, earlier pushes</summary>

    | Observed metric | Baseline | This | Change | Interval |
    |:--|--:|--:|--:|--:|
    | P50 at 48 workers, ms | 182 | 271 | +49 % ▲ worse | +45 to +53 % |
    | TPS at 48 workers | 260 | 175 | −33 % ▼ worse | −34 to −31 % |
    | One request alone, ms | 42.0 | 42.2 | +0.5 %, within noise | −1.6 to +2.6 % |

    Baseline: v1.9.1, the merge base, one run.

    - [`5af80d3`](https://plimsoll.acme.dev/sentiment/runs/run-4) ✕ Inconclusive: the policy blocks in doubt, 25 Nov 2025, 14:06 UTC
    - [`84f0c27`](https://plimsoll.acme.dev/sentiment/runs/run-3) ○ still open when the next came, 25 Nov 2025, 14:06 UTC
    </details>
    "#);
}

#[test]
fn accepted_by_somebody() {
    let (project, comparison) = (project(), comparison(Verdict::Regressed));
    let whole = [accepted(None)];
    let told = Told { comparison: Some(&comparison), accepted: &whole, ..told(&project) };
    insta::assert_snapshot!(shown(told), @r#"
    <!-- plimsoll:sentiment -->
    ### ▲ Regressed, accepted: `8d1e07b` against `3f2c91a` (v1.9.1) on A10 ×1

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

    <details><summary>Observed metrics, baseline</summary>

    | Observed metric | Baseline | This | Change | Interval |
    |:--|--:|--:|--:|--:|
    | P50 at 48 workers, ms | 182 | 271 | +49 % ▲ worse | +45 to +53 % |
    | TPS at 48 workers | 260 | 175 | −33 % ▼ worse | −34 to −31 % |
    | One request alone, ms | 42.0 | 42.2 | +0.5 %, within noise | −1.6 to +2.6 % |

    Baseline: v1.9.1, the merge base, one run.
    </details>
    "#);
}

#[test]
fn pass() {
    let (project, comparison, images) = (project(), comparison(Verdict::Pass), images());
    insta::assert_snapshot!(shown(Told { comparison: Some(&comparison), chart: Some(&images), ..told(&project) }), @r#"
    <!-- plimsoll:sentiment -->
    ### ● Pass: `8d1e07b` against `3f2c91a` (v1.9.1) on A10 ×1

    No regression against v1.9.1: P99 −1.5 % (−6.0 to +3.2 %), capacity +0.7 % (−1.4 to +2.8 %).

    | Gated metric | Baseline | This | Change | Interval | Allowed | Verdict |
    |:--|--:|--:|--:|--:|--:|:--|
    | P99 at 48 workers, ms | 261 | 257 | −1.5 %, within noise | −6.0 to +3.2 % | +10 % | ● pass |
    | Capacity, TPS | 286 | 288 | +0.7 %, within noise | −1.4 to +2.8 % | −5 % | ● pass |
    | Error rate, % | 0.00300 | 0.00400 | +0.001 pp, within noise | −0.004 to +0.007 pp | +0.1 pp | ● pass |

    <picture><source media="(prefers-color-scheme: dark)" srcset="https://plimsoll.acme.dev/charts/run-2/staircase.svg?against=run-1&amp;theme=dark&amp;signature=0b"><img width="540" height="500" alt="TPS and P99 against workers, of 8d1e07b and of v1.9.1. Capacity 288 TPS, before 286 TPS. P99 at 48 workers 257 ms, before 261 ms." src="https://plimsoll.acme.dev/charts/run-2/staircase.svg?against=run-1&amp;theme=light&amp;signature=0a"></picture>

    [Comparison](https://plimsoll.acme.dev/sentiment/compare/run-1...run-2) · [Snapshot](https://plimsoll.acme.dev/sentiment/snapshots/run-2) · [Methodology](https://plimsoll.acme.dev/methodology) · [History](https://plimsoll.acme.dev/sentiment/history)

    <details><summary>Observed metrics, baseline</summary>

    | Observed metric | Baseline | This | Change | Interval |
    |:--|--:|--:|--:|--:|
    | P50 at 48 workers, ms | 182 | 180 | −1.1 %, within noise | −3.0 to +1.0 % |

    Baseline: v1.9.1, the merge base, one run.
    </details>
    "#);
}

#[test]
fn inconclusive() {
    let (project, comparison) = (project(), comparison(Verdict::Inconclusive));
    insta::assert_snapshot!(shown(Told { comparison: Some(&comparison), ..told(&project) }), @r#"
    <!-- plimsoll:sentiment -->
    ### ◇ Inconclusive: `8d1e07b` against `3f2c91a` (v1.9.1) on A10 ×1

    Too noisy to say: P99 +8.0 % (−2.8 to +20 %; allowed +10 %). Measure again, or for longer. Too few requests to tell the error rate.

    | Gated metric | Baseline | This | Change | Interval | Allowed | Verdict |
    |:--|--:|--:|--:|--:|--:|:--|
    | P99 at 48 workers, ms | 187 | 202 | +8.0 %, undecided | −2.8 to +20 % | +10 % | **◇ undecided** |
    | Error rate, % | 0 | 0.00200 | – | – | +0.1 pp | **◇ undecided** |
    | Capacity, TPS | 512 | 506 | −1.2 %, within noise | −3.4 to +1.1 % | −5 % | ● pass |

    [Chart: TPS and P99 against workers](https://plimsoll.acme.dev/sentiment/compare/run-1...run-2#staircase)

    **What to do:** measure both revisions again on the same host, or for longer. Until then the policy blocks (`when_in_doubt = "fail"`).

    [Comparison](https://plimsoll.acme.dev/sentiment/compare/run-1...run-2) · [Snapshot](https://plimsoll.acme.dev/sentiment/snapshots/run-2) · [Methodology](https://plimsoll.acme.dev/methodology) · [History](https://plimsoll.acme.dev/sentiment/history)

    <details><summary>Baseline</summary>

    Baseline: v1.9.1, the merge base, one run.
    </details>
    "#);
}

#[test]
fn invalid() {
    let (project, comparison) = (project(), comparison(Verdict::Invalid));
    insta::assert_snapshot!(shown(Told { comparison: Some(&comparison), ..told(&project) }), @r#"
    <!-- plimsoll:sentiment -->
    ### ○ Invalid: `8d1e07b` on A10 ×1 is not comparable

    Not comparable: the load generator used 93 % CPU from step 50 on. Run it from a second host or lower the rate.

    **What to do:** run it again once that is done. This is no verdict on your change. Until then the policy blocks (`when_in_doubt = "fail"`).

    [Comparison](https://plimsoll.acme.dev/sentiment/compare/run-1...run-2) · [Snapshot](https://plimsoll.acme.dev/sentiment/snapshots/run-2) · [Methodology](https://plimsoll.acme.dev/methodology#when-a-run-is-invalid) · [History](https://plimsoll.acme.dev/sentiment/history)

    <details><summary>Baseline</summary>

    Baseline: v1.9.1, the merge base, one run.
    </details>
    "#);
}

#[test]
fn no_baseline_that_is_being_measured() {
    let (project, comparison) = (project(), comparison(Verdict::NoBaseline));
    let backfill = Some(Backfill { run: run(9), left: Some(Duration::from_secs(26 * 60)) });
    insta::assert_snapshot!(shown(Told { comparison: Some(&comparison), backfill, ..told(&project) }), @r#"
    <!-- plimsoll:sentiment -->
    ### – No baseline: `8d1e07b` on A10 ×1

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
fn running_with_the_verdict_before_it_folded() {
    let (project, comparison, earlier) = (project(), comparison(Verdict::Regressed), earlier());
    let left = Some(Duration::from_secs(12 * 60));
    let state = State::Running { stage: Some(Stage::Stability), left, done: Some(0.7) };
    let previous = Told { comparison: Some(&comparison), ..told(&project) };
    let newest =
        Told { state, label: "c47d2e9", links: Links { run: Some(run(5)), ..previous.links }, ..told(&project) };
    insta::assert_snapshot!(of(&PullTold { newest, previous: Some(previous), earlier: &earlier[..1] }), @r#"
    <!-- plimsoll:sentiment -->
    ### ◌ Being measured: `c47d2e9`

    Being measured: stability, 70 % done, about 12 min left.

    [Run](https://plimsoll.acme.dev/sentiment/runs/run-5) · [Methodology](https://plimsoll.acme.dev/methodology) · [History](https://plimsoll.acme.dev/sentiment/history)

    <details><summary>Before: 8d1e07b</summary>

    ▲ Regressed: `8d1e07b` against `3f2c91a` (v1.9.1) on A10 ×1

    P99 at 48 workers rose from **261 ms** to **402 ms** (+54 %, interval +47 to +61 %; allowed +10 %) against v1.9.1. Capacity fell from **286 TPS** to **176 TPS** (−38 %, interval −40 to −37 %; allowed −5 %).

    | Gated metric | Baseline | This | Change | Interval | Allowed | Verdict |
    |:--|--:|--:|--:|--:|--:|:--|
    | P99 at 48 workers, ms | 261 | **402** | **+54 %** ▲ worse | +47 to +61 % | +10 % | **▲ regressed** |
    | Capacity, TPS | 286 | **176** | **−38 %** ▼ worse | −40 to −37 % | −5 % | **▼ regressed** |
    | Error rate, % | 0.00300 | 0.00300 | 0.000 pp, within noise | −0.005 to +0.006 pp | +0.1 pp | ● pass |

    [Comparison](https://plimsoll.acme.dev/sentiment/compare/run-1...run-2) · [Snapshot](https://plimsoll.acme.dev/sentiment/snapshots/run-2) · [Methodology](https://plimsoll.acme.dev/methodology) · [History](https://plimsoll.acme.dev/sentiment/history)
    </details>

    <details><summary>Earlier pushes</summary>

    - [`5af80d3`](https://plimsoll.acme.dev/sentiment/runs/run-4) ✕ Inconclusive: the policy blocks in doubt, 25 Nov 2025, 14:06 UTC
    </details>
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
    insta::assert_snapshot!(shown(Told { settled: Some(&skipped), ..base }), @r#"
    <!-- plimsoll:sentiment -->
    ### – Not measured: no matching path: `8d1e07b`

    Why: not measured: no matching path.

    [Methodology](https://plimsoll.acme.dev/methodology) · [History](https://plimsoll.acme.dev/sentiment/history)
    "#);
    insta::assert_snapshot!(shown(Told { settled: Some(&waits), ..base }), @r#"
    <!-- plimsoll:sentiment -->
    ### ◇ A maintainer must approve: `8d1e07b`

    Why: A maintainer must approve.

    [Methodology](https://plimsoll.acme.dev/methodology) · [History](https://plimsoll.acme.dev/sentiment/history)
    "#);
}

#[test]
fn the_marker_comes_first_so_that_the_comment_is_found_again() {
    let project = project();
    assert!(shown(told(&project)).starts_with("<!-- plimsoll:sentiment -->\n### "));
}

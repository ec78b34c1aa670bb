//! What counts where, with the times given by hand.

use plimsoll_domain::outcome::ErrorKind;
use plimsoll_domain::report::{Step, StepRole};
use plimsoll_runner::load::{Finished, Nanos, Recorder, StepPlan};

const MS: Nanos = 1_000_000;

fn plan(duration_ms: u64) -> StepPlan {
    StepPlan {
        role: StepRole::Planned,
        workers: 2,
        duration_ms,
        longest_ms: 2 * duration_ms,
        ramp_ms: 0,
        min_successes: 0,
        trimmed: true,
        by_hand: false,
    }
}

fn recorder() -> (Recorder, usize, usize) {
    let mut recorder = Recorder::new(60_000_000);
    let (a, b) = (recorder.add_slot(), recorder.add_slot());
    (recorder, a, b)
}

/// A request from `from` to `to` ms.
fn request(recorder: &mut Recorder, slot: usize, from: u64, to: u64) {
    recorder.issue(slot, from * MS);
    finish(recorder, slot, from, to, Ok(()));
}

fn finish(recorder: &mut Recorder, slot: usize, from: u64, to: u64, result: Result<(), ErrorKind>) {
    let (issued, end) = (from * MS, to * MS);
    recorder.finish(slot, &Finished { issued, first_byte: Some(end), end, busy_until: end, result });
}

fn finals(recorder: &mut Recorder, now: u64) -> Vec<Step> {
    recorder.take_final(now * MS).into_iter().map(|(_, record)| record.into_step()).collect()
}

#[test]
fn latency_is_by_issue_and_throughput_by_completion() {
    let (mut recorder, a, b) = recorder();
    recorder.begin(plan(10_000), 0);
    // The measured part is 1 s to 9 s.
    request(&mut recorder, a, 100, 900); // before it
    request(&mut recorder, a, 950, 1_050); // ends in it
    request(&mut recorder, b, 1_000, 2_000); // in it
    request(&mut recorder, a, 8_999, 9_001); // starts in it
    request(&mut recorder, b, 9_000, 9_100); // after it
    let step = finals(&mut recorder, 10_000).remove(0);
    assert_eq!((step.measured_from_ms, step.measured_to_ms), (1_000, 9_000));
    assert_eq!((step.outcomes.ok, step.completed.ok), (2, 2));
    assert_eq!(step.latency.max_us(), Some(1_000_447)); // 1 s, in a bin of three digits
    // 50 ms, 1 s and 1 ms of the three that overlap it.
    assert_eq!(step.completed.busy_us, 1_051_000);
    assert_eq!(step.windows.len(), 10);
    assert_eq!(step.windows.iter().map(|window| window.ok).collect::<Vec<_>>(), [1, 1, 1, 0, 0, 0, 0, 0, 0, 2]);
    assert_eq!((step.slice_ms, step.slices.len()), (1_000, 8));
    assert_eq!(step.slices.iter().map(|slice| slice.len()).collect::<Vec<_>>(), [1, 0, 0, 0, 0, 0, 0, 1]);
}

#[test]
fn a_step_waits_for_its_own_requests_while_the_next_one_runs() {
    let (mut recorder, a, b) = recorder();
    recorder.begin(plan(1_000), 0);
    recorder.issue(a, 500 * MS);
    recorder.begin(plan(1_000), 1_000 * MS);
    request(&mut recorder, b, 1_200, 1_300);
    assert!(finals(&mut recorder, 2_000).is_empty(), "a request of the first step is open");
    finish(&mut recorder, a, 500, 2_500, Ok(()));
    let steps = finals(&mut recorder, 2_500);
    assert_eq!(steps.len(), 2);
    // The long one is the first step's latency, nobody's completion, and busy in both.
    assert_eq!((steps[0].outcomes.ok, steps[0].completed.ok, steps[0].completed.busy_us), (1, 0, 400_000));
    assert_eq!((steps[1].outcomes.ok, steps[1].completed.ok, steps[1].completed.busy_us), (1, 1, 900_000));
    assert!(steps[0].latency.max_us() >= Some(2_000_000));
}

#[test]
fn failures_are_counted_by_kind_and_censored_at_the_timeout() {
    let (mut recorder, a, _) = recorder();
    recorder.begin(plan(10_000), 0);
    for (at, kind) in [(2_000, ErrorKind::Http5xx), (3_000, ErrorKind::Http5xx), (4_000, ErrorKind::Reset)] {
        recorder.issue(a, at * MS);
        finish(&mut recorder, a, at, at + 5, Err(kind));
    }
    request(&mut recorder, a, 5_000, 5_010);
    let step = finals(&mut recorder, 10_000).remove(0);
    assert_eq!((step.outcomes.ok, step.outcomes.errors[&ErrorKind::Http5xx], step.completed.failed), (1, 2, 3));
    assert_eq!((step.latency.len(), step.latency_censored.len()), (1, 4));
    assert!(step.latency_censored.max_us() >= Some(60_000_000) && step.latency.max_us() < Some(11_000));
    assert_eq!(step.windows[4].errors[&ErrorKind::Reset], 1);
}

#[test]
fn a_pause_after_a_failed_connect_is_busy_time() {
    let (mut recorder, a, _) = recorder();
    recorder.begin(plan(10_000), 0);
    recorder.issue(a, 8_890 * MS);
    let end = 8_891 * MS;
    let result = Err(ErrorKind::ConnectRefused);
    recorder.finish(a, &Finished { issued: 8_890 * MS, first_byte: None, end, busy_until: end + 200 * MS, result });
    let step = finals(&mut recorder, 10_000).remove(0);
    assert_eq!(step.completed.busy_us, 110_000, "up to the end of the measured part");
}

#[test]
fn the_end_of_the_run_cuts_what_is_open() {
    let (mut recorder, a, b) = recorder();
    recorder.begin(plan(10_000), 0);
    recorder.issue(a, 2_000 * MS);
    recorder.issue(b, 500 * MS);
    let step = recorder.cut(5_000 * MS).remove(0).1.into_step();
    assert_eq!((step.duration_ms, step.measured_from_ms, step.measured_to_ms), (5_000, 1_000, 5_000));
    // The one from the ramp-up is in nobody's outcomes, but it kept a worker busy.
    assert_eq!((step.outcomes.cut, step.oldest_cut_us), (1, Some(3_000_000)));
    assert_eq!(step.completed.busy_us, 3_000_000 + 4_000_000);
}

#[test]
fn a_step_that_ends_before_its_measured_part_measures_nothing() {
    let (mut recorder, a, _) = recorder();
    recorder.begin(plan(10_000), 0);
    request(&mut recorder, a, 100, 200);
    let step = recorder.cut(300 * MS).remove(0).1.into_step();
    assert_eq!((step.measured_from_ms, step.measured_to_ms, step.duration_ms), (300, 300, 300));
    assert_eq!((step.outcomes.ok, step.tps()), (0, None));
}

/// Carries out a step of one worker whose requests take `each_ms`, asking for 100 successes.
fn extended(each_ms: u64) -> Step {
    let (mut recorder, a, _) = recorder();
    recorder.begin(StepPlan { min_successes: 100, ..plan(10_000) }, 0);
    let mut at = 0;
    while recorder.running().is_some_and(|[_, _, end]| at * MS < end) {
        request(&mut recorder, a, at, at + each_ms);
        at += each_ms;
    }
    recorder.advance(at * MS);
    finals(&mut recorder, at + 1).remove(0)
}

#[test]
fn a_step_extends_itself_for_enough_successes_and_no_further_than_twice() {
    let enough = extended(50);
    assert_eq!((enough.duration_ms, enough.measured_to_ms), (10_000, 9_000));
    // 80 in 8 s: a little more than a quarter is missing.
    let short = extended(100);
    assert!((12_000..14_000).contains(&short.duration_ms), "{}", short.duration_ms);
    assert!(short.outcomes.ok >= 100, "{}", short.outcomes.ok);
    assert_eq!(short.measured_to_ms, short.duration_ms - 1_000);
    // Every completion between the planned and the new end counts.
    assert!((short.tps().unwrap() - 10.0).abs() < 0.2, "{:?}", short.tps());
    let hopeless = extended(1_000);
    assert_eq!(hopeless.duration_ms, 20_000);
}

#[test]
fn a_step_of_requests_longer_than_itself_goes_on_while_earlier_ones_succeed() {
    let slow = |result| {
        let (mut recorder, a, b) = recorder();
        recorder.begin(StepPlan { min_successes: 100, ..plan(10_000) }, 0);
        recorder.issue(a, 500 * MS);
        recorder.issue(b, 1_500 * MS);
        finish(&mut recorder, a, 500, 8_500, result);
        recorder.advance(10_000 * MS);
        recorder.running().unwrap()[2] / MS
    };
    assert_eq!(slow(Ok(())), 20_000);
    assert_eq!(slow(Err(ErrorKind::Http5xx)), 10_000);
}

#[test]
fn an_extension_keeps_to_its_bound() {
    let (mut recorder, a, _) = recorder();
    recorder.begin(StepPlan { min_successes: 1_000, longest_ms: 11_000, ..plan(10_000) }, 0);
    request(&mut recorder, a, 2_000, 2_100);
    recorder.advance(9_500 * MS);
    assert_eq!(recorder.running().unwrap().map(|at| at / MS), [1_000, 10_000, 11_000]);
}

#[test]
fn live_figures_cover_the_last_seconds() {
    let (mut recorder, a, _) = recorder();
    recorder.begin(plan(100_000), 0);
    assert_eq!(recorder.recent(1_000 * MS).tps, None);
    for second in 1..20 {
        (0..10).for_each(|i| request(&mut recorder, a, second * 1_000 + i * 10, second * 1_000 + i * 10 + 10));
        recorder.issue(a, second * 1_000 * MS);
        finish(&mut recorder, a, second * 1_000, second * 1_000 + 1, Err(ErrorKind::Http429));
        let recent = recorder.recent((second + 1) * 1_000 * MS);
        assert_eq!(recent.errors, second);
        if second > 5 {
            assert_eq!(recent.tps, Some(10.0));
        }
    }
}

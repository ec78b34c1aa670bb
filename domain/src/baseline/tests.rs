use super::*;

fn at(second: i64) -> Timestamp {
    Timestamp::from_second(1_764_000_000 + second).unwrap()
}

/// A commit that is easy to tell: `c(1)` is `1111…`.
fn c(digit: u32) -> CommitSha {
    char::from_digit(digit, 16).unwrap().to_string().repeat(40).parse().unwrap()
}

fn run(id: u128, second: i64, revision: Revision) -> Measured {
    Measured { run_id: RunId(uuid::Uuid::from_u128(id)), revision, started_at: at(second), accepted: true }
}

fn tag(name: &str) -> Revision {
    Revision { tag: Some(name.to_owned()), ..Revision::default() }
}

fn commit(digit: u32) -> Revision {
    Revision { commit: Some(c(digit)), ..Revision::default() }
}

/// The ids of the chosen runs, and why.
fn chosen(candidate: &Revision, second: i64, earlier: &[Measured]) -> Option<(Vec<u128>, String)> {
    let choice = choose(candidate, at(second), earlier)?;
    Some((choice.run_ids.iter().map(|id| id.0.as_u128()).collect(), choice.because))
}

fn ids(candidate: &Revision, second: i64, earlier: &[Measured]) -> Vec<u128> {
    chosen(candidate, second, earlier).map(|(ids, _)| ids).unwrap_or_default()
}

#[test]
fn releases_go_by_semantic_order() {
    let tags = ["v1.9.0", "v1.10.0", "v2.0.0-rc.1", "model-v1.9.5", "v1.2", "nightly"];
    let earlier: Vec<Measured> = tags.iter().zip(1..).map(|(name, i)| run(i, i as i64, tag(name))).collect();
    for (name, expected) in [
        ("v2.0.0", 2),          // not the release candidate, and 1.10 comes after 1.9
        ("v2.0.0-rc.2", 3),     // of a pre-release, the one before it
        ("v1.9.7", 1),          // a patch of an older line; not the model's tags
        ("1.10.1", 2),          // the v is no prefix
        ("v1.10.0+build.7", 1), // build metadata is no order
        ("v1.3.0", 5),          // two parts read as three
        ("model-v2.0.0", 4),
        ("model/v2.0.0", 6), // no release of that name: the latest accepted run
        ("nightly-2", 6),
        ("2025.01.02", 6), // leading zeros: a date
    ] {
        assert_eq!(ids(&tag(name), 100, &earlier), [expected], "{name}");
    }
    assert_eq!(chosen(&tag("v2.0.0"), 100, &earlier).unwrap().1, "the previous release");
    // Never a later version or a pre-release by way of time.
    assert_eq!(ids(&tag("v1.0.0"), 100, &earlier), [6]);
    assert_eq!(ids(&tag("v1.0.0"), 100, &earlier[..3]), Vec::<u128>::new());
}

#[test]
fn a_pull_request_goes_by_ancestry() {
    let candidate = Revision {
        commit: Some(c(9)),
        pull_request: Some(7),
        merge_base: Some(c(4)),
        ancestors: vec![c(8), c(4), c(3), c(2)],
        ..Revision::default()
    };
    let mut earlier = vec![run(2, 1, commit(2)), run(3, 2, commit(3)), run(5, 9, commit(5))];
    let far = "the nearest measured ancestor, 3 commits back".to_owned();
    assert_eq!(chosen(&candidate, 100, &earlier), Some((vec![3], far)));
    // The merge base wins over a nearer ancestor, whether or not it was accepted.
    earlier.push(Measured { accepted: false, ..run(4, 3, commit(4)) });
    earlier.push(run(8, 4, commit(8)));
    assert_eq!(chosen(&candidate, 100, &earlier), Some((vec![4], "the merge base".to_owned())));
    // Shortened commits are the same commits; a dirty checkout is not its commit.
    let short = Revision { commit: Some("4444444".parse().unwrap()), ..Revision::default() };
    assert_eq!(ids(&candidate, 100, &[run(4, 3, short)]), [4]);
    assert_eq!(ids(&candidate, 100, &[run(4, 3, Revision { dirty: true, ..commit(4) }), run(2, 1, commit(2))]), [2]);
    // Nothing of its history: the latest accepted run that is no pull request.
    let foreign = [run(5, 9, commit(5)), run(6, 10, Revision { pull_request: Some(1), ..commit(6) })];
    assert_eq!(chosen(&candidate, 100, &foreign), Some((vec![5], "the latest accepted run before it".to_owned())));
}

#[test]
fn an_ancestor_measured_later_is_an_ancestor_all_the_same() {
    let candidate = Revision { merge_base: Some(c(4)), ancestors: vec![c(3)], ..commit(9) };
    assert_eq!(ids(&candidate, 100, &[run(4, 200, commit(4)), run(5, 1, commit(5))]), [4]);
    assert_eq!(ids(&candidate, 100, &[run(3, 200, commit(3)), run(5, 1, commit(5))]), [3]);
    // Any other run, and a release, must have been there before.
    assert_eq!(ids(&candidate, 100, &[run(5, 200, commit(5))]), Vec::<u128>::new());
    assert_eq!(ids(&tag("v1.1.0"), 100, &[run(1, 200, tag("v1.0.0"))]), Vec::<u128>::new());
    // Measured again later, a revision keeps the baseline it had, and did not get one from the future.
    let own = [run(1, 1, tag("a")), run(2, 300, tag("b")), run(3, 200, tag("a"))];
    assert_eq!(ids(&tag("b"), 100, &own), [1]);
}

#[test]
fn a_dirty_checkout_is_no_release() {
    let dirty = Revision { dirty: true, ..tag("v1.1.0") };
    assert_eq!(ids(&tag("v1.2.0"), 100, &[run(1, 1, tag("v1.0.0")), run(2, 2, dirty)]), [1]);
}

#[test]
fn a_commit_of_the_default_branch_goes_by_ancestry_too() {
    let candidate = Revision { merge_base: Some(c(9)), ancestors: vec![c(8), c(7)], ..commit(9) };
    let earlier = [run(9, 1, commit(9)), run(8, 2, commit(8)), run(1, 3, commit(1))];
    assert_eq!(chosen(&candidate, 100, &earlier), Some((vec![8], "the commit before it".to_owned())));
    // A version tag on it asks for the release instead.
    let release = Revision { tag: Some("v1.1.0".to_owned()), ..candidate };
    assert_eq!(ids(&release, 100, &[earlier[1].clone(), run(1, 1, tag("v1.0.0"))]), [1]);
    assert_eq!(ids(&release, 100, &earlier), [8]);
}

#[test]
fn a_revision_is_never_its_own_baseline() {
    let earlier = [run(1, 1, tag("pool-10")), run(2, 2, tag("pool-64")), run(3, 3, tag("pool-8"))];
    assert_eq!(ids(&tag("pool-64"), 100, &earlier), [1]);
    assert_eq!(ids(&tag("pool-10"), 100, &earlier), Vec::<u128>::new());
    assert_eq!(ids(&tag("pool-4"), 100, &earlier), [3]);
    // Runs at the same time or later do not count.
    assert_eq!(ids(&tag("pool-4"), 3, &earlier), [2]);
    assert_eq!(choose(&tag("a"), at(0), &[]), None);
}

#[test]
fn runs_without_names_are_compared_by_time_and_not_pooled() {
    let none = Revision::default();
    let earlier = [run(1, 1, none.clone()), run(2, 2, none.clone())];
    assert_eq!(ids(&none, 100, &earlier), [2]);
}

#[test]
fn up_to_five_accepted_runs_are_pooled_newest_first() {
    let mut earlier: Vec<Measured> = (1..=7).map(|i| run(i, i as i64, tag("v1.0.0"))).collect();
    earlier[6].accepted = false;
    assert_eq!(ids(&tag("v1.1.0"), 100, &earlier), [6, 5, 4, 3, 2]);
    earlier.reverse();
    assert_eq!(ids(&tag("v1.1.0"), 100, &earlier), [6, 5, 4, 3, 2]);
}

#[test]
fn what_was_not_accepted_is_skipped() {
    let earlier = [run(1, 1, tag("v1.0.0")), Measured { accepted: false, ..run(2, 2, tag("v1.1.0")) }];
    assert_eq!(ids(&tag("v1.2.0"), 100, &earlier), [1]);
    assert_eq!(ids(&tag("main"), 100, &earlier), [1]);
}

use super::*;

fn request(revision: Wanted) -> RunRequest {
    RunRequest {
        project: "sentiment".parse().unwrap(),
        revision,
        plan: None,
        plan_commit: None,
        profile: None,
        labels: BTreeMap::new(),
        priority: None,
        supersedes: None,
        run_id: None,
    }
}

fn tagged(tag: &str) -> Wanted {
    Wanted { tag: Some(tag.to_owned()), ..Wanted::default() }
}

#[test]
fn states_lead_where_the_drawing_says() {
    let next = |from: State| State::ALL.into_iter().filter(|to| from.may_become(*to)).collect::<Vec<_>>();
    use State::*;
    assert_eq!(next(Queued), [Leased, Done, Cancelled, Expired]);
    assert_eq!(next(Leased), [Queued, Running, Done, Failed, Cancelled, Expired]);
    assert_eq!(next(Running), [Queued, Done, Failed, Cancelled, Expired]);
    assert_eq!(next(Expired), [Done]);
    for over in [Done, Failed, Cancelled] {
        assert_eq!(next(over), [], "{over:?}");
    }
}

#[test]
fn a_request_names_what_git_could_know() {
    assert!(request(Wanted::default()).check().is_err());
    for good in ["v1.0.0", "model-v1.2", "feature/über", "a.b", "release/2026.11"] {
        assert_eq!(request(tagged(good)).check(), Ok(()), "{good}");
    }
    for bad in [
        "",
        "--upload-pack=touch",
        "a..b",
        "a b",
        "a\nb",
        "x^{tree}",
        "@",
        "a/.b",
        "a//b",
        "a.lock",
        "a/",
        "a.",
        "é:x",
        "HEAD@{1}",
    ] {
        assert!(request(tagged(bad)).check().is_err(), "{bad:?}");
    }
}

#[test]
fn a_plan_lies_below_the_checkout() {
    let with = |plan: &str| RunRequest { plan: Some(plan.to_owned()), ..request(tagged("v1")) };
    assert_eq!(with("bench/plimsoll.toml").check(), Ok(()));
    for bad in ["/etc/passwd", "../x", "a/../../x", "", ".git/config", "a\\b", "./x", "a//b"] {
        assert!(with(bad).check().is_err(), "{bad:?}");
    }
}

#[test]
fn pull_requests_go_before_releases_before_the_rest() {
    let pull = Wanted { pull_request: Some(7), ..tagged("v1") };
    assert_eq!(request(pull).priority(), Priority::PullRequest);
    assert_eq!(request(tagged("v1")).priority(), Priority::Release);
    let branch = Wanted { branch: Some("main".to_owned()), ..Wanted::default() };
    assert_eq!(request(branch).priority(), Priority::Normal);
    let mut all = [Priority::PullRequest, Priority::Backfill, Priority::Release, Priority::Normal];
    all.sort_by_key(|priority| priority.rank());
    assert_eq!(all, [Priority::Backfill, Priority::Normal, Priority::Release, Priority::PullRequest]);
}

#[test]
fn live_events_read_back_and_unknown_fields_of_a_request_are_refused() {
    let event = LiveEvent {
        seq: 3,
        at: Timestamp::UNIX_EPOCH,
        what: Live::State { state: State::Expired, attempt: 3, runner: None, reason: Some("runner lost".to_owned()) },
    };
    let json = serde_json::to_value(&event).unwrap();
    assert_eq!(json["type"], "state");
    assert_eq!(serde_json::from_value::<LiveEvent>(json).unwrap(), event);
    assert!(event.what.is_last());
    let odd = r#"{"project":"a","revision":{"tag":"v1"},"command":"rm"}"#;
    assert!(serde_json::from_str::<RunRequest>(odd).is_err());
}

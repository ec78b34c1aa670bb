//! Verdicts as uploads get them: which run is compared with, and by which policy.

use plimsoll_domain::finding::Finding;
use plimsoll_domain::policy::Policy;
use plimsoll_domain::report::{SERVICE_GONE, Status};
use plimsoll_domain::synthetic::Synthetic;

use crate::app::{App, release, unpinned};

#[tokio::test]
async fn a_release_is_compared_with_the_accepted_release_before_it() {
    let app = App::new().await;
    let first = release("v1.9.0", 0).report();
    let second = release("v1.10.0", 1).report();
    app.upload(&first).await;
    let passed = app.upload(&second).await.json;
    assert_eq!(passed["comparison"]["baseline"]["run_ids"][0], first.run_id.to_string());
    assert_ne!(passed["comparison"]["verdict"], "regressed", "the same code");

    let slow = Synthetic { service_ms: 84.0, ..release("v1.11.0", 2) }.report();
    let judged = app.upload(&slow).await.json;
    assert_eq!(judged["comparison"]["verdict"], "regressed");
    // 1.10 is after 1.9, unlike in the alphabet.
    assert_eq!(judged["comparison"]["baseline"]["run_ids"][0], second.run_id.to_string());

    // A regressed release is nobody's baseline.
    let next = app.upload(&release("v1.12.0", 3).report()).await.json;
    assert_eq!(next["comparison"]["baseline"]["run_ids"][0], second.run_id.to_string());

    // The stored verdict is the one that was answered, whatever came later.
    let stored = app.get(&format!("/api/v1/snapshots/{}/comparison", slow.run_id)).await.json;
    assert_eq!(stored, judged["comparison"]);
}

#[tokio::test]
async fn a_service_that_dies_under_load_is_regressed_and_nobody_s_baseline() {
    let app = App::new().await;
    let first = release("v1.9.0", 0).report();
    app.upload(&first).await;
    let mut died = release("v1.10.0", 1).report();
    // It never came to the soak, so no load says what it compares with.
    died.phases.truncate(3);
    (died.status, died.load_choice) = (Status::Failed, None);
    died.findings.push(Finding::notice(SERVICE_GONE, "the service stopped answering at 50 workers: 9 × reset"));
    let judged = app.upload(&died).await.json;
    assert_eq!(judged["comparison"]["verdict"], "regressed", "{judged}");
    assert_eq!(judged["comparison"]["baseline"]["run_ids"][0], first.run_id.to_string());
    let next = app.upload(&release("v1.11.0", 2).report()).await.json;
    assert_eq!(next["comparison"]["baseline"]["run_ids"][0], first.run_id.to_string());
}

#[tokio::test]
async fn only_what_compares_is_a_baseline() {
    let app = App::new().await;
    app.upload(&unpinned(&release("v1.0.0", 0))).await;
    for other in [
        Synthetic { gpu: "L20".to_owned(), ..release("v1.1.0", 1) },
        Synthetic { stability_workers: 30, ..release("v1.1.0", 2) },
        Synthetic { staircase: vec![5, 10, 20, 50], ..release("v1.1.0", 3) },
        Synthetic { project: "other".to_owned(), ..release("v1.1.0", 4) },
    ] {
        let answer = app.upload(&unpinned(&other)).await.json;
        assert_eq!(answer["comparison"]["verdict"], "no_baseline", "{answer}");
    }
}

#[tokio::test]
async fn the_projects_policy_decides_from_then_on() {
    let app = App::new().await;
    let lenient = Policy { p99_increase: 5.0, capacity_decrease: 0.9, error_rate_points: 0.5, ..Policy::default() };
    let put = app.put("/api/v1/projects/sentiment/policy", serde_json::to_string(&lenient).unwrap()).await;
    assert_eq!(put.status.as_u16(), 200, "{put:?}");
    app.upload(&release("v1.0.0", 0).report()).await;
    let slow = Synthetic { service_ms: 84.0, ..release("v1.1.0", 1) };
    let judged = app.upload(&slow.report()).await.json;
    assert_eq!(judged["comparison"]["verdict"], "pass", "{judged}");
    assert_eq!(judged["comparison"]["policy"], serde_json::to_value(&lenient).unwrap());

    let strict = serde_json::to_string(&Policy::default()).unwrap();
    app.put("/api/v1/projects/sentiment/policy", strict).await;
    let slow = Synthetic { service_ms: 126.0, ..release("v1.2.0", 2) };
    assert_eq!(app.upload(&slow.report()).await.json["comparison"]["verdict"], "regressed");
}

#[tokio::test]
async fn the_first_accepted_snapshot_pins_the_load() {
    let app = App::new().await;
    let first = unpinned(&release("v1.0.0", 1));
    let path = format!(
        "/api/v1/projects/sentiment/pinned-load?plan={}&testbed={}",
        first.plan_digest,
        first.testbed.fingerprint()
    );
    assert_eq!(app.get(&path).await.status.as_u16(), 404);
    let pull = Synthetic { pull_request: Some(7), tag: None, stability_workers: 12, ..release("", 0) };
    app.upload(&unpinned(&pull)).await;
    assert_eq!(app.get(&path).await.json["workers"], 12, "better than nothing");
    app.upload(&first).await;
    app.upload(&unpinned(&Synthetic { stability_workers: 48, ..release("v1.1.0", 2) })).await;
    let pinned = app.get(&path).await.json;
    assert_eq!((&pinned["workers"], &pinned["run_id"]), (&24.into(), &first.run_id.to_string().into()));
    let shown = app.get(&format!("/api/v1/snapshots/{}", first.run_id)).await.json;
    assert_eq!(pinned["capacity_workers"], shown["figures"]["capacity"]["at_workers"]);
}

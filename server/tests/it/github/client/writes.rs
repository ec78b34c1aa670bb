//! What a repository is told, within what GitHub takes.

use plimsoll_server::github::text::{Action, CheckText, Status};
use plimsoll_server::github::{CheckWrite, Error};
use plimsoll_server::store::github::checks::Conclusion;
use uuid::Uuid;

use super::super::fake::FakeGitHub;
use super::sha;

pub(super) fn text(status: Status) -> CheckText {
    CheckText {
        status,
        conclusion: None,
        title: "Waits for a runner".to_owned(),
        summary: "Nothing is measured yet.".to_owned(),
        text: None,
        details_url: None,
        actions: Vec::new(),
    }
}

#[tokio::test]
async fn a_check_goes_its_way_and_not_back() {
    let github = FakeGitHub::start().await;
    let (id, place) = github.repository("octo/ranker");
    let head = sha(&github.model().push(id, "faster", &[("a", Some("1"))]));
    let client = github.client();
    let repo = client.at(&place);
    let queued = text(Status::Queued);
    let check =
        |text| CheckWrite { name: "plimsoll/ranker", head: &head, external_id: Uuid::nil(), started_at: None, text };
    let run = repo.create_check(&check(&queued)).await.unwrap();
    let running = text(Status::InProgress);
    let started_at = Some(jiff::Timestamp::now());
    repo.update_check(run, &CheckWrite { started_at, ..check(&running) }).await.unwrap();
    let ended = CheckText {
        conclusion: Some(Conclusion::ActionRequired),
        title: "P99 rose by 20 %".to_owned(),
        text: Some("| metric |".to_owned()),
        details_url: Some("https://plimsoll.example/runs/1".to_owned()),
        actions: vec![Action::RUN_AGAIN, Action::ACCEPT],
        ..text(Status::Completed)
    };
    repo.update_check(run, &check(&ended)).await.unwrap();
    let told = github.model().repo(id).latest(head.as_str(), "plimsoll/ranker").unwrap().clone();
    assert_eq!(
        (told.id, told.status.as_str(), told.conclusion.as_deref()),
        (run, "completed", Some("action_required"))
    );
    assert_eq!((told.title.as_str(), told.summary.as_str()), ("P99 rose by 20 %", "Nothing is measured yet."));
    assert_eq!((told.text.as_str(), told.writes), ("| metric |", 3));
    assert_eq!(told.details_url.as_deref(), Some("https://plimsoll.example/runs/1"));
    assert_eq!(told.actions, ["run_again", "accept"]);
    assert_eq!(repo.find_check(&head, "plimsoll/ranker", Uuid::nil()).await.unwrap(), Some(run));
    let refused = repo.update_check(run, &check(&running)).await.unwrap_err();
    assert!(matches!(refused, Error::Refused { status: 422, .. }), "{refused}");
    assert_eq!(repo.update_check(1, &check(&ended)).await.unwrap_err(), Error::Missing);
    let unknown = sha(&"0".repeat(40));
    let refused = repo.create_check(&CheckWrite { head: &unknown, ..check(&ended) }).await.unwrap_err();
    assert!(refused.to_string().contains("No commit found for SHA"), "{refused}");
    let writes = github.take_writes();
    assert_eq!(
        writes,
        [
            "POST check-runs plimsoll/ranker queued → 201".to_owned(),
            format!("PATCH check-runs/{run} plimsoll/ranker in_progress → 200"),
            format!("PATCH check-runs/{run} plimsoll/ranker completed action_required → 200"),
            format!("PATCH check-runs/{run} plimsoll/ranker in_progress → 422"),
            "PATCH check-runs/1 plimsoll/ranker completed action_required → 404".to_owned(),
            "POST check-runs plimsoll/ranker completed action_required → 422".to_owned(),
        ]
    );
    github.end();
}

#[tokio::test]
async fn a_text_is_too_long_by_its_bytes() {
    let github = FakeGitHub::start().await;
    let (id, place) = github.repository("octo/ranker");
    let head = sha(&github.model().push(id, "faster", &[("a", Some("1"))]));
    let number = github.model().open_pull(id, "faster", "mona");
    let client = github.client();
    let repo = client.at(&place);
    let create = async |change: fn(&mut CheckText, String), long: String| {
        let mut text = text(Status::Queued);
        change(&mut text, long);
        let check =
            CheckWrite { name: "plimsoll/r", head: &head, external_id: Uuid::nil(), started_at: None, text: &text };
        repo.create_check(&check).await
    };
    let of_check: [fn(&mut CheckText, String); 2] =
        [|check, long| check.summary = long, |check, long| check.text = Some(long)];
    for change in of_check {
        create(change, "é".repeat(32_767)).await.unwrap();
        assert_eq!(create(change, "é".repeat(32_768)).await.unwrap_err(), Error::TooLong);
    }
    let comment = repo.create_comment(number, &"é".repeat(32_768)).await.unwrap();
    assert_eq!(repo.create_comment(number, &"é".repeat(32_769)).await.unwrap_err(), Error::TooLong);
    assert_eq!(repo.update_comment(comment, &"x".repeat(65_537)).await.unwrap_err(), Error::TooLong);
    let buttons = CheckText { actions: vec![Action::RUN_AGAIN; 4], ..text(Status::Queued) };
    let check =
        CheckWrite { name: "plimsoll/r", head: &head, external_id: Uuid::nil(), started_at: None, text: &buttons };
    let refused = repo.create_check(&check).await.unwrap_err();
    assert!(refused.to_string().contains("No more than 3"), "{refused}");
    assert_eq!(github.take_writes().len(), 8);
    github.end();
}

#[tokio::test]
async fn the_buttons_fit() {
    let github = FakeGitHub::start().await;
    let (id, place) = github.repository("octo/ranker");
    let head = sha(&github.model().push(id, "faster", &[("a", Some("1"))]));
    let actions = vec![Action::RUN_AGAIN, Action::ACCEPT, Action::APPROVE];
    let buttons = CheckText { actions, ..text(Status::Queued) };
    let check = CheckWrite { name: "p", head: &head, external_id: Uuid::nil(), started_at: None, text: &buttons };
    github.client().at(&place).create_check(&check).await.unwrap();
    github.take_writes();
    github.end();
}

#[tokio::test]
async fn a_comment_is_written_changed_and_removed() {
    let github = FakeGitHub::start().await;
    let (id, place) = github.repository("octo/ranker");
    github.model().push(id, "faster", &[("a", Some("1"))]);
    let number = github.model().open_pull(id, "faster", "mona");
    let client = github.client();
    let repo = client.at(&place);
    let comment = repo.create_comment(number, "one").await.unwrap();
    repo.update_comment(comment, "two").await.unwrap();
    let ours: Vec<_> =
        github.model().repo(id).ours(number).into_iter().map(|one| (one.body.clone(), one.edits)).collect();
    assert_eq!(ours, [("two".to_owned(), 1)]);
    repo.delete_comment(comment).await.unwrap();
    repo.delete_comment(comment).await.unwrap();
    assert_eq!(repo.update_comment(comment, "three").await.unwrap_err(), Error::Missing);
    assert!(repo.comments(number).await.unwrap().is_empty());
    assert_eq!(github.take_writes().len(), 5);
    github.end();
}

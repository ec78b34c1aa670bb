//! Whatever goes wrong on the way: one latest check, one comment, the right verdict.

use std::time::Duration;

use super::super::actor::Site;
use super::super::fake::Fault;
use super::{same, send_from, slower};

/// Opened, told, measured and told, with a fault on the way: how it ends all the same.
async fn despite(on: &str, fault: Fault, times: usize) {
    let site = Site::new().await;
    site.baseline().await;
    site.github.fail(on, fault, times);
    let (_, head) = site.opened("feature").await;
    for _ in 0..=times * 2 {
        site.send().await;
        site.hurry().await;
    }
    site.measured(&head, slower()).await;
    for _ in 0..=times * 2 {
        site.send().await;
        site.hurry().await;
    }
    site.send().await;
    assert_eq!(site.check_runs(&head), ["plimsoll/ranker failure"], "{on} {fault:?}");
    assert_eq!(site.comments().len(), 1, "{on} {fault:?}");
    site.github.take_writes();
    site.end().await;
}

#[tokio::test]
async fn what_was_accepted_without_an_answer_is_found_again() {
    despite("POST /check-runs", Fault::Lost, 1).await;
    despite("POST /comments", Fault::Lost, 2).await;
}

#[tokio::test]
async fn what_was_not_accepted_is_sent_again() {
    despite("POST /check-runs", Fault::Broken, 2).await;
    despite("PATCH", Fault::Broken, 2).await;
    despite("POST", Fault::Unauthorized, 1).await;
}

#[tokio::test]
async fn a_limit_holds_up_the_whole_installation() {
    let site = Site::new().await;
    site.github.fail("POST /check-runs", Fault::Limited(600), 1);
    let (_, head) = site.opened("feature").await;
    let (_, other) = site.opened("other").await;
    site.send().await;
    site.github.take_writes();
    site.hurry_rows().await;
    site.send().await;
    assert_eq!(site.github.take_writes(), [""; 0], "before the time that GitHub asked for");
    site.hurry().await;
    site.send().await;
    for head in [head, other] {
        assert_eq!(site.check_runs(&head), ["plimsoll/ranker queued"]);
    }
    assert_eq!(site.comments().len(), 2);
    site.github.take_writes();
    site.end().await;
}

impl Site {
    /// Only the rows' own waits end.
    async fn hurry_rows(&self) {
        let sql = "update github_writes set next_at = now() where done_at is null and failed_at is null";
        sqlx::query(sql).execute(&self.server.pool).await.unwrap();
    }
}

#[tokio::test]
async fn a_missing_permission_is_named_and_the_check_is_told_all_the_same() {
    let site = Site::new().await;
    site.github.fail("/comments", Fault::Forbidden, 100);
    let (_, head) = site.opened("feature").await;
    site.send().await;
    assert_eq!(site.check_runs(&head), ["plimsoll/ranker queued"]);
    let given_up = site.given_up().await;
    assert!(given_up.len() == 1 && given_up[0].contains("pull_requests"), "{given_up:?}");
    let asked = site.github.requests().len();
    site.hurry().await;
    site.send().await;
    assert_eq!(site.github.requests().len(), asked, "not asked again");
    site.github.heal();
    site.measured(&head, same()).await;
    site.send().await;
    assert_eq!(site.comments().len(), 1, "the next change is told again");
    site.github.take_writes();
    site.end().await;
}

#[tokio::test]
async fn a_deleted_comment_is_made_anew_and_somebody_else_s_is_left_alone() {
    let site = Site::new().await;
    let (number, head) = site.opened("feature").await;
    let theirs = site.github.model().comment(site.id, number, "mona", "<!-- plimsoll:ranker -->\nmine");
    site.send().await;
    assert_eq!(site.comments().len(), 1);
    site.github.model().repo(site.id).comments.retain(|id, _| *id == theirs);
    site.measured(&head, same()).await;
    site.send().await;
    assert_eq!(site.comments().len(), 1);
    assert_eq!(site.github.model().repositories[&site.id].comments[&theirs].body, "<!-- plimsoll:ranker -->\nmine");
    site.github.take_writes();
    site.end().await;
}

#[tokio::test]
async fn a_text_that_is_too_long_does_not_keep_the_conclusion() {
    despite("PATCH /check-runs", Fault::TooLong, 1).await;
    despite("PATCH /comments", Fault::TooLong, 1).await;
}

#[tokio::test]
async fn an_installation_that_is_gone_is_told_nothing() {
    let site = Site::new().await;
    let (_, head) = site.opened("feature").await;
    let gone = "update github_installations set suspended = true";
    sqlx::query(gone).execute(&site.server.pool).await.unwrap();
    site.send().await;
    assert_eq!(site.given_up().await, ["the App does not reach the repository any more"]);
    assert_eq!(site.check_runs(&head), [""; 0]);
    site.end().await;
}

#[tokio::test]
async fn two_servers_and_a_restart_between_commit_and_send_tell_once() {
    let site = Site::new().await;
    site.baseline().await;
    let other = site.server.beside_with(site.github.settings()).await;
    let mut heads = Vec::new();
    for branch in ["one", "two", "three"] {
        heads.push(site.opened(branch).await.1);
    }
    site.github.fail("POST /check-runs", Fault::Late(Duration::from_millis(100)), 3);
    tokio::join!(send_from(&site.server), send_from(&other), send_from(&other));
    for head in &heads {
        assert_eq!(site.check_runs(head), ["plimsoll/ranker queued"]);
        site.measured(head, same()).await;
    }
    // Committed by one server, sent by another.
    send_from(&other).await;
    for head in &heads {
        assert_eq!(site.check_runs(head), ["plimsoll/ranker success"]);
    }
    assert_eq!(site.comments().len(), 3);
    site.github.take_writes();
    site.end().await;
}

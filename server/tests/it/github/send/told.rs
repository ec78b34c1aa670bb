//! A check from queued to its conclusion, and the one comment.

use super::super::actor::Site;
use super::{same, slower};

#[tokio::test]
async fn a_pull_request_is_told_from_the_queue_to_the_verdict() {
    for (of, conclusion, title) in [(slower(), "failure", "Regressed"), (same(), "success", "No regression against")] {
        let site = Site::new().await;
        site.baseline().await;
        let (_, head) = site.opened("feature").await;
        site.send().await;
        assert_eq!(site.check_runs(&head), ["plimsoll/ranker queued"]);
        let comments = site.comments();
        assert_eq!(comments.len(), 1);
        assert!(comments[0].starts_with("<!-- plimsoll:ranker -->\n### "), "{comments:?}");
        site.take().await;
        site.measured(&head, of).await;
        site.send().await;
        assert_eq!(site.check_runs(&head), [format!("plimsoll/ranker {conclusion}")]);
        let shown = site.github.model().repositories[&site.id].latest(&head, "plimsoll/ranker").unwrap().clone();
        assert!(shown.title.starts_with(title), "{}", shown.title);
        let after = site.comments();
        assert_eq!(after.len(), 1);
        assert_ne!(after, comments, "edited in place");
        assert_eq!(site.github.take_writes().len(), 4, "a check and a comment, each made once and changed once");
        // What changed nothing is not told.
        sqlx::query("update github_writes set done_at = null, next_at = now()")
            .execute(&site.server.pool)
            .await
            .unwrap();
        site.send().await;
        site.end().await;
    }
}

#[tokio::test]
async fn the_newest_head_wins_whichever_ends_first() {
    let site = Site::new().await;
    site.baseline().await;
    let (number, first) = site.opened("feature").await;
    site.take().await;
    site.send().await;
    let second = site.github.model().push(site.id, "feature", &[("src/app.py", Some("better"))]);
    site.tell(site.pull_event(number, "synchronize")).await;
    site.measured(&second, same()).await;
    site.measured(&first, slower()).await;
    site.send().await;
    assert_eq!(site.check_runs(&second), ["plimsoll/ranker success"]);
    let comments = site.comments();
    assert_eq!(comments.len(), 1);
    let headline = comments[0].lines().nth(1).unwrap();
    assert!(headline.starts_with(&format!("### ● Pass: `{}`", &second[..7])), "{headline}");
    site.github.take_writes();
    site.end().await;
}

#[tokio::test]
async fn a_check_that_another_took_the_place_of_is_cancelled_once() {
    let site = Site::new().await;
    let (number, head) = site.opened("feature").await;
    site.send().await;
    site.tell(site.pull_event(number, "closed")).await;
    site.send().await;
    site.tell(site.pull_event(number, "reopened")).await;
    site.send().await;
    let shown = site.check_runs(&head);
    assert_eq!(shown.last().unwrap(), "plimsoll/ranker queued", "{shown:?}");
    assert!(shown[..shown.len() - 1].iter().all(|line| line == "plimsoll/ranker cancelled"), "{shown:?}");
    assert_eq!(site.comments().len(), 1);
    site.github.take_writes();
    site.end().await;
}

#[tokio::test]
async fn the_merge_queue_is_answered_in_time_and_a_verdict_stays() {
    let site = Site::new().await;
    let (_, head) = site.opened("feature").await;
    site.send().await;
    let late = "update github_checks set deadline = now() - interval '1 second'";
    sqlx::query(late).execute(&site.server.pool).await.unwrap();
    site.send().await;
    assert_eq!(site.check_runs(&head), ["plimsoll/ranker timed_out"]);
    site.measured(&head, same()).await;
    site.send().await;
    assert_eq!(site.check_runs(&head), ["plimsoll/ranker timed_out"], "it was answered");
    site.github.take_writes();
    site.end().await;
}

#[tokio::test]
async fn what_goes_on_is_told_again_after_a_while() {
    let site = Site::new().await;
    let (_, head) = site.opened("feature").await;
    site.send().await;
    site.take().await;
    site.send().await;
    assert_eq!(site.check_runs(&head), ["plimsoll/ranker queued"], "not long enough");
    let before = "update github_checks set told_at = now() - interval '50 seconds'";
    sqlx::query(before).execute(&site.server.pool).await.unwrap();
    site.send().await;
    assert_eq!(site.check_runs(&head), ["plimsoll/ranker in_progress"]);
    site.github.take_writes();
    site.end().await;
}

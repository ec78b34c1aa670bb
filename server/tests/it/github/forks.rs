//! Pull requests from forks: nothing of them runs before somebody approved of just this head.

use plimsoll_server::store::github::pulls;
use plimsoll_server::tasks::github::pulls::{again, approve};

use super::actor::{Site, commit, short};

/// A fork's pull request, opened.
async fn opened(site: &Site, fork: Option<i64>) -> (i64, String) {
    let (number, head) = site.pull("theirs", "src/app.py");
    site.github.model().repo(site.id).pulls.get_mut(&number).unwrap().head_repository = fork;
    assert_eq!(site.tell(site.pull_event(number, "opened")).await, "ranker: waits for approval");
    (number, head)
}

#[tokio::test]
async fn a_fork_waits_for_approval_also_when_its_repository_is_gone() {
    for fork in [Some(99), None] {
        let site = Site::new().await;
        let (number, head) = opened(&site, fork).await;
        for action in ["synchronize", "reopened", "ready_for_review"] {
            assert_eq!(site.tell(site.pull_event(number, action)).await, "ranker: waits for approval");
        }
        assert_eq!(site.runs().await, [""; 0]);
        assert_eq!(site.checks().await, [format!("pull_request {} action_required", short(&head))]);
        let refused = again(&site.server.state, &site.known().await, number, None, None, "github mona").await;
        assert!(refused.unwrap_err().to_string().contains("approve"));
        assert_eq!(site.runs().await, [""; 0]);
    }
}

#[tokio::test]
async fn an_approval_is_for_one_head_and_gone_with_the_next_push() {
    let site = Site::new().await;
    let (number, head) = opened(&site, Some(99)).await;
    let repository = site.known().await;
    let allow = |head: String| {
        let (state, repository) = (&site.server.state, &repository);
        async move { approve(state, repository, number, &commit(&head), "github mona").await }
    };
    allow(head.clone()).await.unwrap();
    allow(head.clone()).await.unwrap();
    assert_eq!(site.runs().await, [format!("pull 1 queued {}", short(&head))]);
    let approved =
        [format!("(pull_request {} action_required)", short(&head)), format!("pull_request {} run", short(&head))];
    assert_eq!(site.checks().await, approved);
    let next = site.github.model().push(site.id, "theirs", &[("src/app.py", Some("worse"))]);
    assert_eq!(site.tell(site.pull_event(number, "synchronize")).await, "ranker: waits for approval");
    assert_eq!(site.runs().await, [format!("pull 1 cancelled {}", short(&head))]);
    assert_eq!(site.checks().await.last().unwrap(), &format!("pull_request {} action_required", short(&next)));
    assert!(allow(head.clone()).await.unwrap_err().to_string().contains("newer head"));
    // Nor does it count for a head that was pushed and not heard of yet.
    let unheard = site.github.model().push(site.id, "theirs", &[("src/app.py", Some("worst"))]);
    assert!(allow(next).await.is_err());
    // And back to what was approved once.
    site.github.model().repo(site.id).pulls.get_mut(&number).unwrap().head = head;
    assert_eq!(site.tell(site.pull_event(number, "synchronize")).await, "ranker: waits for approval");
    assert!(allow(unheard).await.is_err());
    assert_eq!(site.runs().await.len(), 1);
    let acts: Vec<String> = sqlx::query_scalar("select subject from audit where action = 'pull.approve'")
        .fetch_all(&site.server.pool)
        .await
        .unwrap();
    assert_eq!(acts, ["octo/ranker#1", "octo/ranker#1"]);
}

#[tokio::test]
async fn a_head_is_seen_no_earlier_than_github_says_it_was_pushed() {
    let site = Site::new().await;
    let ahead: jiff::Timestamp = "2099-01-01T00:00:00Z".parse().unwrap();
    site.github.model().clock = Some(ahead);
    let (number, _) = opened(&site, Some(99)).await;
    let known = pulls::get(&site.server.pool, site.id, number).await.unwrap().unwrap();
    assert_eq!(known.head_seen_at, ahead);
}

#[tokio::test]
async fn a_fork_that_changes_nothing_of_ours_need_not_wait() {
    let site = Site::new().await;
    let (number, head) = site.pull("words", "docs/a.md");
    site.github.model().repo(site.id).pulls.get_mut(&number).unwrap().head_repository = None;
    site.tell(site.pull_event(number, "opened")).await;
    assert_eq!(site.checks().await, [format!("pull_request {} success", short(&head))]);
}

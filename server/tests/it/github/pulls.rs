//! What a pull request starts.

use plimsoll_server::store::github::checks::{self, Conclusion, Kind, Settled};
use plimsoll_server::store::github::pulls;
use plimsoll_server::tasks::github::pulls::refresh;
use plimsoll_server::tasks::github::start::{self, Head, StartRequest, Started};

use super::actor::{PROJECT, Site, commit, short, slug};

#[tokio::test]
async fn a_pull_request_is_measured_by_the_plan_of_the_default_branch_against_its_merge_base() {
    let site = Site::new().await;
    let base = site.github.model().repositories[&site.id].branches["main"].clone();
    let (number, head) = site.pull("faster", "src/app.py");
    // A draft as well: whoever wrote it wants to know.
    site.github.model().repo(site.id).pulls.get_mut(&number).unwrap().draft = true;
    let tip = site.github.model().push(site.id, "main", &[("docs/a.md", Some("1"))]);
    site.tell(site.pull_event(number, "opened")).await;
    assert_eq!(site.runs().await, [format!("pull 1 queued {}", short(&head))]);
    assert_eq!(site.checks().await, [format!("pull_request {} run", short(&head))]);
    let asked: (i16, Option<String>, Option<String>, serde_json::Value) =
        sqlx::query_as("select priority, profile, plan_commit, revision from jobs")
            .fetch_one(&site.server.pool)
            .await
            .unwrap();
    let revision = serde_json::json!({ "commit": head, "pull_request": 1, "merge_base": base });
    assert_eq!(asked, (30, Some("pr".to_owned()), Some(tip), revision));
    let comments = "select count(*) from github_writes where comment_pull = 1 and lane = $1";
    let comments = sqlx::query_scalar::<_, i64>(comments).bind(format!("{}#1", site.id));
    assert_eq!(comments.fetch_one(&site.server.pool).await.unwrap(), 1);
    site.github.end();
}

#[tokio::test]
async fn changes_that_are_not_ours_are_told_so() {
    let site = Site::new().await;
    let (number, head) = site.pull("words", "docs/a.md");
    for action in ["opened", "reopened", "ready_for_review"] {
        assert_eq!(site.tell(site.pull_event(number, action)).await, "ranker: no matching path");
    }
    assert_eq!(site.runs().await, [""; 0]);
    assert_eq!(site.checks().await, [format!("pull_request {} success", short(&head))]);
    let check = checks::newest(&site.server.pool, &slug(PROJECT), &commit(&head), false).await.unwrap().unwrap();
    assert_eq!(check.settled.unwrap().title, "not measured: no matching path");
}

#[tokio::test]
async fn a_file_that_is_moved_away_counts_by_its_old_name() {
    let site = Site::new().await;
    let event = {
        let mut model = site.github.model();
        model.push(site.id, "main", &[("src/app.py", Some("the service"))]);
        model.push(site.id, "move", &[("src/app.py", None), ("old/app.py", Some("the service"))]);
        let number = model.open_pull(site.id, "move", "mona");
        model.pull_event(site.id, number, "opened")
    };
    site.tell(event).await;
    assert_eq!(site.runs().await.len(), 1);
}

#[tokio::test]
async fn a_newer_push_cancels_the_older_run_also_when_it_changes_nothing_of_ours() {
    let site = Site::new().await;
    let (number, first) = site.pull("faster", "src/app.py");
    site.tell(site.pull_event(number, "opened")).await;
    let second = site.github.model().push(site.id, "faster", &[("src/app.py", Some("2"))]);
    site.tell(site.pull_event(number, "synchronize")).await;
    site.take().await;
    let third = site.github.model().push(site.id, "faster", &[("src/app.py", None), ("docs/a.md", Some("3"))]);
    site.tell(site.pull_event(number, "synchronize")).await;
    let [first, second, third] = [&first, &second, &third].map(|sha| short(sha));
    assert_eq!(site.runs().await, [format!("pull 1 cancelled {first}"), format!("pull 1 stopping {second}")]);
    let checks = [("cancelled", first), ("cancelled", second), ("success", third)];
    assert_eq!(site.checks().await, checks.map(|(how, head)| format!("pull_request {head} {how}")));
    assert_eq!(site.to_be_told().await, checks.map(|(_, head)| format!("pull_request {head}")));
}

#[tokio::test]
async fn closing_cancels_and_reopening_starts_anew() {
    let site = Site::new().await;
    let (number, head) = site.pull("faster", "src/app.py");
    site.tell(site.pull_event(number, "opened")).await;
    site.github.model().repo(site.id).pulls.get_mut(&number).unwrap().open = false;
    assert_eq!(site.tell(site.pull_event(number, "closed")).await, "closed: 1 runs cancelled");
    let head = short(&head);
    assert_eq!(site.checks().await, [format!("pull_request {head} cancelled")]);
    site.github.model().repo(site.id).pulls.get_mut(&number).unwrap().open = true;
    site.tell(site.pull_event(number, "reopened")).await;
    assert_eq!(site.runs().await, ["cancelled", "queued"].map(|state| format!("pull 1 {state} {head}")));
    assert_eq!(site.checks().await, [format!("(pull_request {head} cancelled)"), format!("pull_request {head} run")]);
}

#[tokio::test]
async fn another_base_is_another_comparison_and_never_a_way_around_it() {
    let site = Site::new().await;
    let (number, head) = site.pull("faster", "src/app.py");
    site.tell(site.pull_event(number, "opened")).await;
    // A branch that has the change already.
    site.github.model().repo(site.id).branches.insert("has-it".to_owned(), head.clone());
    let point_at = |base: &str| {
        site.github.model().repo(site.id).pulls.get_mut(&number).unwrap().base_ref = base.to_owned();
        let (event, mut payload) = site.pull_event(number, "edited");
        payload["changes"] = serde_json::json!({ "base": { "ref": { "from": "x" } } });
        (event, payload)
    };
    site.tell(point_at("has-it")).await;
    let head = short(&head);
    assert_eq!(site.runs().await, ["cancelled", "queued"].map(|state| format!("pull 1 {state} {head}")));
    assert_eq!(site.checks().await[1..], [format!("pull_request {head} run")], "not settled without a run");
    let base = "select revision ->> 'merge_base' from jobs where state = 'queued'";
    let base = || async { sqlx::query_scalar::<_, String>(base).fetch_one(&site.server.pool).await.unwrap() };
    assert_eq!(short(&base().await), head);
    site.tell(point_at("main")).await;
    assert_eq!(site.runs().await.len(), 3);
    assert_ne!(short(&base().await), head);
}

#[tokio::test]
async fn of_several_with_one_head_the_check_stands_for_that_into_the_default_branch() {
    let site = Site::new().await;
    let (first, head) = site.pull("faster", "src/app.py");
    let second = {
        let mut model = site.github.model();
        let main = model.repositories[&site.id].branches["main"].clone();
        model.repo(site.id).branches.insert("other".to_owned(), main);
        let second = model.open_pull(site.id, "faster", "mona");
        model.repo(site.id).pulls.get_mut(&first).unwrap().base_ref = "other".to_owned();
        second
    };
    site.tell(site.pull_event(first, "opened")).await;
    assert_eq!(site.runs().await, [format!("pull 1 queued {}", short(&head))]);
    site.tell(site.pull_event(second, "opened")).await;
    assert_eq!(site.tell(site.pull_event(first, "reopened")).await, "its head is judged for #2");
    assert_eq!(site.runs().await.len(), 2);
    // Once it is gone the other one counts again.
    site.github.model().repo(site.id).pulls.get_mut(&second).unwrap().open = false;
    site.tell(site.pull_event(second, "closed")).await;
    let newest = checks::newest(&site.server.pool, &slug(PROJECT), &commit(&head), false).await.unwrap().unwrap();
    assert_eq!((newest.pull_request, newest.settled), (Some(first), None));
}

#[tokio::test]
async fn run_again_is_a_new_check_unless_one_is_under_way() {
    let site = Site::new().await;
    let (number, head) = site.pull("words", "docs/a.md");
    site.tell(site.pull_event(number, "opened")).await;
    let again = || async {
        let check = checks::newest(&site.server.pool, &slug(PROJECT), &commit(&head), false).await.unwrap().unwrap();
        start::again(&site.server.state, &check, "github mona").await.map(|outcome| outcome.to_string())
    };
    let outcome = again().await.unwrap();
    assert!(outcome.starts_with("ranker: run "), "a person may want it measured: {outcome}");
    assert_eq!(again().await.unwrap(), "ranker: known already");
    let head = short(&head);
    assert_eq!(site.runs().await, [format!("pull 1 queued {head}")]);
    let checks = [format!("(pull_request {head} success)"), format!("pull_request {head} run")];
    assert_eq!(site.checks().await, checks);
    // What a person asked for stays, whatever the next event says of paths.
    assert_eq!(site.tell(site.pull_event(number, "reopened")).await, "ranker: known already");
    assert_eq!(site.checks().await, checks);
    let acts = "select actor || ' ' || action from audit where action = 'run.create'";
    let acts: Vec<String> = sqlx::query_scalar(acts).fetch_all(&site.server.pool).await.unwrap();
    assert_eq!(acts, ["github mona run.create"]);
}

#[tokio::test]
async fn an_answer_that_lags_behind_the_event_does_not_win() {
    let site = Site::new().await;
    let (number, old) = site.pull("faster", "docs/a.md");
    let new = site.github.model().push(site.id, "faster", &[("src/app.py", Some("2"))]);
    let (event, mut payload) = site.pull_event(number, "synchronize");
    payload["pull_request"]["updated_at"] = "2099-01-01T00:00:00Z".into();
    site.github.model().repo(site.id).pulls.get_mut(&number).unwrap().head = old;
    site.tell((event, payload)).await;
    assert_eq!(site.runs().await, [format!("pull 1 queued {}", short(&new))], "by what the new head changes");
    let known = pulls::get(&site.server.pool, site.id, number).await.unwrap().unwrap();
    assert_eq!(known.head_sha, commit(&new));
}

#[tokio::test]
async fn changes_beyond_what_github_lists_count() {
    let site = Site::new().await;
    for (branch, files, runs) in [("many", 301, 0), ("too-many", 3_001, 1)] {
        let names: Vec<String> = (0..files).map(|n| format!("docs/{n}.md")).collect();
        let changes: Vec<_> = names.iter().map(|name| (name.as_str(), Some(branch))).collect();
        let opened = {
            let mut model = site.github.model();
            model.push(site.id, branch, &changes);
            let number = model.open_pull(site.id, branch, "mona");
            model.pull_event(site.id, number, "opened")
        };
        site.tell(opened).await;
        assert_eq!(site.runs().await.len(), runs, "{branch}");
    }
    let checks = site.checks().await;
    assert!(checks[0].ends_with("success") && checks[1].ends_with("run"), "{checks:?}");
}

#[tokio::test]
async fn what_was_worked_out_for_another_base_is_not_used() {
    let site = Site::new().await;
    let (number, head) = site.pull("faster", "src/app.py");
    site.tell(site.pull_event(number, "opened")).await;
    let (link, commit) = (site.linked().await, commit(&head));
    let stale = |into, pull| Head {
        link: &link,
        commit: &commit,
        kind: Kind::PullRequest,
        tag: None,
        pull: Some(pull),
        into: Some(into),
        key: Some("pull 1"),
        deadline: None,
    };
    let passes = Settled { conclusion: Conclusion::Success, title: "-".to_owned(), summary: "-".to_owned() };
    for head in [stale("has-it", number), stale("main", 2)] {
        let settled = start::settle(&site.server.state, &head, &passes).await.unwrap();
        let request = StartRequest {
            head,
            branch: None,
            base: Some(&commit),
            profile: None,
            plan_commit: None,
            requested_by: start::BY_ITSELF,
            again: true,
        };
        let opened = start::open(&site.server.state, &request).await.unwrap();
        assert_eq!([settled, opened], [Started::Outrun, Started::Outrun]);
    }
    assert_eq!(site.runs().await, [format!("pull 1 queued {}", short(&head))]);
}

#[tokio::test]
async fn one_of_which_no_event_came_is_found_by_asking() {
    let site = Site::new().await;
    let (number, head) = site.pull("faster", "src/app.py");
    let repository = site.known().await;
    for _ in 0..2 {
        refresh(&site.server.state, &repository, number).await.unwrap();
    }
    assert_eq!(site.runs().await, [format!("pull 1 queued {}", short(&head))]);
    assert_eq!(refresh(&site.server.state, &repository, 99).await.unwrap().as_str(), "the pull request is gone");
    site.github.end();
}

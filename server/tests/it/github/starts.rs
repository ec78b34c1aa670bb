//! What a push and a tag start.

use plimsoll_server::store::github::checks;
use plimsoll_server::tasks::github::{pushes, start};

use super::actor::{PROJECT, Site, commit, short, slug};

#[tokio::test]
async fn a_push_to_the_default_branch_measures_its_newest_commit_if_it_matches() {
    let site = Site::new().await;
    let (first, second, events) = {
        let mut model = site.github.model();
        let before = model.repositories[&site.id].branches["main"].clone();
        let first = model.push(site.id, "main", &[("src/app.py", Some("1"))]);
        let of_first = model.push_event(site.id, "main", Some(&before));
        let second = model.push(site.id, "main", &[("docs/a.md", Some("2"))]);
        (first.clone(), second, [of_first, model.push_event(site.id, "main", Some(&first))])
    };
    for event in events {
        site.tell(event).await;
    }
    let head = short(&second);
    assert_eq!(site.runs().await, [format!("branch main queued {head}")], "not {first}, which is not the newest");
    assert_eq!(site.checks().await, [format!("branch {head} run")]);
    assert_eq!(site.to_be_told().await, [format!("branch {head}")]);
    let asked: (i16, Option<String>, Option<String>, serde_json::Value) =
        sqlx::query_as("select priority, profile, plan, labels from jobs").fetch_one(&site.server.pool).await.unwrap();
    assert_eq!(asked, (10, None, Some("plimsoll.toml".to_owned()), serde_json::json!({ "gpu": "A10" })));
    site.github.end();
}

#[tokio::test]
async fn pushes_that_change_nothing_of_ours_start_nothing() {
    let site = Site::new().await;
    let (docs, feature) = {
        let mut model = site.github.model();
        let before = model.repositories[&site.id].branches["main"].clone();
        model.push(site.id, "main", &[("docs/a.md", Some("1"))]);
        let docs = model.push_event(site.id, "main", Some(&before));
        model.push(site.id, "feature", &[("src/app.py", Some("1"))]);
        (docs, model.push_event(site.id, "feature", None))
    };
    assert_eq!(site.tell(docs).await, "ranker: no matching path");
    assert_eq!(site.tell(feature).await, "not the default branch");
    assert_eq!((site.runs().await.len(), site.checks().await.len()), (0, 0));
}

#[tokio::test]
async fn a_newer_push_takes_the_place_of_a_run_that_waits_and_not_of_one_that_goes_on() {
    let site = Site::new().await;
    let mut heads = Vec::new();
    for n in 0..3 {
        let event = {
            let mut model = site.github.model();
            let before = model.repositories[&site.id].branches["main"].clone();
            heads.push(model.push(site.id, "main", &[("src/app.py", Some(&n.to_string()))]));
            model.push_event(site.id, "main", Some(&before))
        };
        site.tell(event).await;
        if n == 0 {
            site.take().await;
        }
    }
    let [first, second, third] = [0, 1, 2].map(|n: usize| short(&heads[n]));
    let runs = [("leased", first), ("cancelled", second), ("queued", third)];
    assert_eq!(site.runs().await, runs.map(|(state, head)| format!("branch main {state} {head}")));
    let checks = [("run", first), ("cancelled", second), ("run", third)];
    assert_eq!(site.checks().await, checks.map(|(how, head)| format!("branch {head} {how}")));
}

#[tokio::test]
async fn a_history_that_was_rewritten_counts_as_matching() {
    let site = Site::new().await;
    let event = {
        let mut model = site.github.model();
        let lost = model.push(site.id, "main", &[("src/app.py", Some("1"))]);
        let (event, mut payload) = {
            let repository = model.repo(site.id);
            let other = repository.graph.commit(&[], &[("README.md", Some("anew"))]);
            repository.branches.insert("main".to_owned(), other);
            model.push_event(site.id, "main", Some(&lost))
        };
        payload["forced"] = true.into();
        (event, payload)
    };
    site.tell(event).await;
    assert_eq!(site.runs().await.len(), 1);
}

#[tokio::test]
async fn a_version_is_measured_once_whatever_announces_it() {
    let site = Site::new().await;
    let (commit, events) = {
        let mut model = site.github.model();
        let commit = model.push(site.id, "main", &[("docs/a.md", Some("1"))]);
        model.tag(site.id, "v1.2.0", &commit, true);
        let releases = ["published", "released", "created"];
        let mut events: Vec<_> =
            releases.iter().map(|action| model.release_event(site.id, "v1.2.0", action, false)).collect();
        events.extend([model.create_event(site.id, "v1.2.0"), model.tag_event(site.id, "v1.2.0")]);
        events.push(model.release_event(site.id, "v1.2.0", "created", true));
        (commit, events)
    };
    for event in &events {
        site.deliver(event).await;
    }
    site.work().await;
    let head = short(&commit);
    assert_eq!(site.runs().await, [format!("tag v1.2.0 queued {head}")]);
    assert_eq!(site.checks().await, [format!("tag {head} run")]);
    site.github.end();
}

#[tokio::test]
async fn a_tag_that_is_moved_is_measured_again_and_one_that_is_gone_is_not() {
    let site = Site::new().await;
    let tag = |annotated| {
        let mut model = site.github.model();
        let commit = model.push(site.id, "main", &[("docs/a.md", Some("1"))]);
        model.tag(site.id, "1.0.0", &commit, annotated);
        (commit, model.tag_event(site.id, "1.0.0"))
    };
    let (first, event) = tag(false);
    site.tell(event.clone()).await;
    site.take().await;
    let (second, moved) = tag(true);
    site.tell(moved.clone()).await;
    site.tell(event.clone()).await;
    let runs = [format!("tag 1.0.0 stopping {}", short(&first)), format!("tag 1.0.0 queued {}", short(&second))];
    assert_eq!(site.runs().await, runs);
    site.github.model().repo(site.id).tags.remove("1.0.0");
    assert_eq!(site.tell(moved.clone()).await, "the tag is gone");
    assert_eq!(site.runs().await, runs);
    // Moved on before its turn came, and back.
    let (third, onward) = tag(false);
    site.tell(onward).await;
    site.github.model().tag(site.id, "1.0.0", &second, false);
    site.tell(moved).await;
    assert_eq!(
        site.runs().await[1..],
        [
            format!("tag 1.0.0 cancelled {}", short(&second)),
            format!("tag 1.0.0 cancelled {}", short(&third)),
            format!("tag 1.0.0 queued {}", short(&second)),
        ]
    );
}

#[tokio::test]
async fn what_is_a_version_each_project_says() {
    let site = Site::new().await;
    site.link(site.id, "embed", &[], Some("embed/*")).await;
    let events = {
        let mut model = site.github.model();
        let commit = model.repositories[&site.id].branches["main"].clone();
        ["nightly", "embed/7", "v3.0.0-rc.1"].map(|tag| {
            model.tag(site.id, tag, &commit, false);
            model.tag_event(site.id, tag)
        })
    };
    let mut outcomes = Vec::new();
    for event in events {
        outcomes.push(site.tell(event).await);
    }
    assert_eq!(outcomes[0], "no version of a project");
    assert!(outcomes[1].starts_with("embed: run "), "{outcomes:?}");
    assert!(outcomes[2].starts_with("ranker: run "), "{outcomes:?}");
}

#[tokio::test]
async fn a_head_of_which_no_event_came_is_found_by_asking() {
    let site = Site::new().await;
    let push = |path: &str| site.github.model().push(site.id, "main", &[(path, Some("1"))]);
    let first = push("docs/a.md");
    let refresh = async || pushes::refresh(&site.server.state, &site.known().await).await.unwrap().to_string();
    assert!(refresh().await.starts_with("ranker: run "), "there is no baseline yet");
    assert_eq!(refresh().await, "ranker: known already");
    push("docs/b.md");
    assert_eq!(refresh().await, "ranker: no matching path");
    push("src/app.py");
    let last = push("docs/c.md");
    assert!(refresh().await.starts_with("ranker: run "), "one of several pushes matched");
    let heads = [("cancelled", short(&first)), ("queued", short(&last))];
    assert_eq!(site.runs().await, heads.map(|(state, head)| format!("branch main {state} {head}")));
    site.github.end();
}

#[tokio::test]
async fn a_branch_and_a_tag_are_run_again_as_they_were() {
    let site = Site::new().await;
    let (head, events) = {
        let mut model = site.github.model();
        let head = model.push(site.id, "main", &[("src/app.py", Some("1"))]);
        model.tag(site.id, "v1.0.0", &head, false);
        (head, [model.push_event(site.id, "main", None), model.tag_event(site.id, "v1.0.0")])
    };
    for event in events {
        site.tell(event).await;
    }
    let again = async |is_tag| {
        let check = checks::newest(&site.server.pool, &slug(PROJECT), &commit(&head), is_tag).await.unwrap().unwrap();
        start::again(&site.server.state, &check, "github mona").await.unwrap().to_string()
    };
    assert_eq!([again(false).await, again(true).await], ["known already", "known already"]);
    sqlx::raw_sql("update jobs set state = 'failed', finished_at = now()").execute(&site.server.pool).await.unwrap();
    for is_tag in [false, true] {
        assert!(again(is_tag).await.starts_with("run "));
        assert_eq!(again(is_tag).await, "known already");
    }
    let asked = "select supersedes || ' ' || priority || ' ' || coalesce(revision ->> 'tag', revision ->> 'branch')
                 from jobs where state = 'queued' order by 1";
    let asked: Vec<String> = sqlx::query_scalar(asked).fetch_all(&site.server.pool).await.unwrap();
    assert_eq!(asked, ["branch main 10 main", "tag v1.0.0 20 v1.0.0"]);
    let checks = site.checks().await;
    assert_eq!(checks.iter().filter(|line| line.starts_with('(')).count(), 2, "{checks:?}");
}

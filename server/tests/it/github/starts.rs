//! What a push and a tag start.

use super::actor::{Site, short};

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
    assert_eq!(site.tell(moved).await, "the tag is gone");
    assert_eq!(site.runs().await, runs);
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

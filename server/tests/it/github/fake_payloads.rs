//! The fake's deliveries are such as the server reads, and it gives an App for a manifest.

use plimsoll_server::github::events::{Event, MergeAction, PullAction, read};

use super::fake::payloads::{Delivery, signature};
use super::fake::{APP, CheckRun, FakeGitHub};

fn event((name, payload): Delivery) -> Event {
    read(name, payload.to_string().as_bytes()).expect("a payload that is read")
}

#[tokio::test]
async fn what_happens_to_branches_and_tags() {
    let github = FakeGitHub::start().await;
    let (id, place) = github.repository("octo/ranker");
    let mut model = github.model();
    let before = model.repo(id).branches["main"].clone();
    let head = model.push(id, "main", &[("a", Some("1"))]);
    let Event::Push(push) = event(model.push_event(id, "main", Some(&before))) else { panic!("a push") };
    assert_eq!((push.branch.as_str(), push.after.as_str()), ("main", head.as_str()));
    assert_eq!(push.before.map(String::from), Some(before));
    let seen = push.repository;
    assert_eq!((seen.id, seen.full_name.as_str(), seen.installation), (id, "octo/ranker", Some(place.installation)));

    let object = model.tag(id, "v1.0.0", &head, true);
    assert_eq!(model.tag_event(id, "v1.0.0").1["after"], object, "an annotated tag's own object");
    for delivery in [
        model.tag_event(id, "v1.0.0"),
        model.create_event(id, "v1.0.0"),
        model.release_event(id, "v1.0.0", "published", false),
    ] {
        let name = delivery.0;
        let Event::Tag(tag) = event(delivery) else { panic!("{name}") };
        assert_eq!((tag.tag.as_str(), tag.deleted), ("v1.0.0", false), "{name}");
        assert!(tag.commit.is_none_or(|commit| commit.as_str() == head), "{name}: never the object");
    }
    assert!(matches!(event(model.release_event(id, "v1.0.0", "created", true)), Event::Ignored(_)));
}

#[tokio::test]
async fn what_happens_to_pull_requests() {
    let github = FakeGitHub::start().await;
    let (id, _) = github.repository("octo/ranker");
    let mut model = github.model();
    let head = model.push(id, "faster", &[("a", Some("1"))]);
    let number = model.open_pull(id, "faster", "mona");
    let Event::PullRequest(pull) = event(model.pull_event(id, number, "opened")) else { panic!("a pull request") };
    assert_eq!((pull.number, pull.action, pull.head_sha.as_str()), (number, PullAction::Opened, head.as_str()));
    assert!(pull.open && !pull.fork && !pull.draft && pull.author.as_deref() == Some("mona"));
    let next = model.push(id, "faster", &[("a", Some("2"))]);
    let Event::PullRequest(pull) = event(model.pull_event(id, number, "synchronize")) else { panic!("a push to it") };
    assert_eq!((pull.action, pull.head_sha.as_str()), (PullAction::Synchronize, next.as_str()));
    model.repo(id).pulls.get_mut(&number).unwrap().merged = true;
    let Event::PullRequest(pull) = event(model.pull_event(id, number, "closed")) else { panic!("its end") };
    assert_eq!(pull.action, PullAction::Closed { merged: true });

    let Event::MergeGroup(group) = event(model.merge_group_event(id, number, &next, "checks_requested")) else {
        panic!("the queue")
    };
    assert_eq!((group.action, group.head_sha.as_str()), (MergeAction::ChecksRequested, next.as_str()));
    assert!(group.head_ref.contains(&format!("/pr-{number}-")) && group.base_ref == "main", "{group:?}");

    let comment = model.comment(id, number, "mona", "/plimsoll run");
    let Event::Comment(comment) = event(model.comment_event(id, comment)) else { panic!("a comment") };
    assert_eq!((comment.pull_request, comment.body.as_str(), comment.app_id), (number, "/plimsoll run", None));
    assert!(comment.author.is_some_and(|author| author.login == "mona" && !author.is_bot));
}

#[tokio::test]
async fn what_people_press_and_install() {
    let github = FakeGitHub::start().await;
    let (id, place) = github.repository("octo/ranker");
    let mut model = github.model();
    let head = model.repo(id).branches["main"].clone();
    let check = CheckRun { id: 5, app_id: APP, name: "p".to_owned(), head_sha: head.clone(), ..CheckRun::default() };
    model.repo(id).checks.insert(5, check);
    for button in [None, Some("accept")] {
        let Event::CheckRun(run) = event(model.check_run_event(id, 5, button, "mona")) else { panic!("{button:?}") };
        assert_eq!((run.app_id, run.check_run, run.head_sha.as_str()), (APP, 5, head.as_str()));
        assert_eq!(run.sender.unwrap().login, "mona");
    }
    let Event::CheckSuite(suite) = event(model.check_suite_event(id, &head, "mona")) else { panic!("a suite") };
    assert_eq!((suite.app_id, suite.head_sha.as_str()), (APP, head.as_str()));
    let Event::Installation(installed) = event(model.installation_event(place.installation, "created")) else {
        panic!("an installation")
    };
    assert_eq!((installed.installation, installed.account.as_str()), (place.installation, "octo"));
    assert_eq!(installed.repositories[0].full_name, "octo/ranker");
}

#[tokio::test]
async fn a_code_of_a_manifest_is_taken_once() {
    let github = FakeGitHub::start().await;
    github.model().manifest_codes.push("a-code".to_owned());
    let _ = rustls::crypto::ring::default_provider().install_default();
    let client = reqwest::Client::builder().user_agent("a test").build().unwrap();
    let ask = async || {
        let url = format!("{}/app-manifests/a-code/conversions", github.api_url());
        client.post(url).send().await.unwrap()
    };
    let given = ask().await;
    assert_eq!(given.status(), 201);
    let app: serde_json::Value = given.json().await.unwrap();
    assert_eq!(app["id"], APP);
    assert!(app["pem"].as_str().is_some_and(|pem| pem.contains("PRIVATE KEY")), "{app}");
    assert_eq!(ask().await.status(), 404);
    github.end();
}

#[test]
fn a_signature_is_of_the_body() {
    // printf '{}' | openssl dgst -sha256 -hmac "the secret of the fake's webhooks"
    assert_eq!(signature(b"{}"), "sha256=4bac75a1a9ce201054df10011bd2920f783bb9e432178567ce51f4695bb0477e");
}

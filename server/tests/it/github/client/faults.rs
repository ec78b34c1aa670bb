//! What may go wrong, told apart, and nothing sent twice.

use std::time::{Duration, Instant};

use plimsoll_server::github::text::Status;
use plimsoll_server::github::{CheckWrite, Client, Error, Identity};
use uuid::Uuid;

use super::super::fake::{FakeGitHub, Fault};
use super::writes::text;
use super::{count, sha};

const CREATE: &str = "POST /check-runs";

#[tokio::test]
async fn a_write_whose_answer_is_lost_is_found_and_not_repeated() {
    let github = FakeGitHub::start().await;
    let (id, place) = github.repository("octo/ranker");
    let head = sha(&github.model().push(id, "faster", &[("a", Some("1"))]));
    let within = Duration::from_millis(500);
    let client = Client::new(Identity { within, ..github.identity() }).unwrap();
    let repo = client.at(&place);
    for (fault, done) in [(Fault::Lost, true), (Fault::Late(within * 2), true), (Fault::Broken, false)] {
        let external_id = Uuid::now_v7();
        let queued = text(Status::Queued);
        let check = CheckWrite { name: "plimsoll/ranker", head: &head, external_id, started_at: None, text: &queued };
        let before = count(&github, CREATE);
        github.fail(CREATE, fault, 1);
        let failed = repo.create_check(&check).await.unwrap_err();
        assert!(matches!(failed, Error::Unreachable(_)) && failed.passes(), "{fault:?}: {failed}");
        answered(&github, before).await;
        let found = repo.find_check(&head, "plimsoll/ranker", external_id).await.unwrap();
        assert_eq!(found.is_some(), done, "{fault:?}");
        assert_eq!(count(&github, CREATE), before + 1, "{fault:?}");
    }
    assert_eq!(github.take_writes().len(), 3);
    github.end();
}

/// Waits until the request of this number is done, whoever still listens.
async fn answered(github: &FakeGitHub, number: usize) {
    let done = async {
        while github.requests().iter().filter(|one| one.fits(CREATE)).nth(number).is_none_or(|one| one.status.is_none())
        {
            tokio::time::sleep(Duration::from_millis(2)).await;
        }
    };
    tokio::time::timeout(Duration::from_secs(20), done).await.expect("it is done at last");
}

#[tokio::test]
async fn each_failure_says_what_helps() {
    let github = FakeGitHub::start().await;
    let (id, place) = github.repository("octo/ranker");
    github.model().push(id, "faster", &[("a", Some("1"))]);
    let number = github.model().open_pull(id, "faster", "mona");
    let client = github.client();
    for (fault, expected) in [
        (Fault::Forbidden, Error::Forbidden { permission: Some("pull_requests: write".to_owned()) }),
        (Fault::Missing, Error::Missing),
        (Fault::TooLong, Error::TooLong),
        (Fault::Limited(7), Error::Limited { retry_after: Duration::from_secs(7) }),
        (Fault::Broken, Error::Unreachable("it answers 502".to_owned())),
    ] {
        github.fail("POST /comments", fault, 1);
        assert_eq!(client.at(&place).create_comment(number, "x").await.unwrap_err(), expected, "{fault:?}");
    }
    assert_eq!(github.take_writes().len(), 5, "each was sent once");
    assert!(github.model().repo(id).comments.is_empty());
    github.end();
}

#[tokio::test]
async fn the_permission_that_is_missing_is_the_one_that_github_names() {
    let github = FakeGitHub::start().await;
    let (id, place) = github.repository("octo/ranker");
    let head = sha(&github.model().push(id, "faster", &[("a", Some("1"))]));
    github.model().permissions.insert("checks".to_owned(), "read".to_owned());
    github.model().permissions.remove("contents");
    let client = github.client();
    let repo = client.at(&place);
    let queued = text(Status::Queued);
    let check = CheckWrite { name: "p", head: &head, external_id: Uuid::nil(), started_at: None, text: &queued };
    let missing = |name: &str| Error::Forbidden { permission: Some(name.to_owned()) };
    assert_eq!(repo.create_check(&check).await.unwrap_err(), missing("checks: write"));
    assert_eq!(repo.file("plimsoll.toml", "main").await.unwrap_err(), missing("contents: read"));
    assert_eq!(repo.find_check(&head, "p", Uuid::nil()).await.unwrap(), None);
    github.take_writes();
    github.end();
}

#[tokio::test]
async fn limits_of_both_kinds_say_how_long() {
    let github = FakeGitHub::start().await;
    let (id, place) = github.repository("octo/ranker");
    github.model().push(id, "faster", &[("a", Some("1"))]);
    let number = github.model().open_pull(id, "faster", "mona");
    let client = github.client();
    let repo = client.at(&place);
    github.model().writes_left = Some(1);
    github.model().retry_after = 30;
    repo.create_comment(number, "one").await.unwrap();
    let limited = Error::Limited { retry_after: Duration::from_secs(30) };
    assert_eq!(repo.create_comment(number, "two").await.unwrap_err(), limited);
    assert_eq!(repo.comments(number).await.unwrap().len(), 1, "reading goes on");
    github.model().requests_left = Some(0);
    let Err(Error::Limited { retry_after }) = repo.comments(number).await else { panic!("not limited") };
    assert!((20..=30).contains(&retry_after.as_secs()), "{retry_after:?}");
    github.take_writes();
    github.end();
}

#[tokio::test]
async fn no_answer_and_one_without_an_end_are_not_waited_for() {
    let github = FakeGitHub::start().await;
    let (_, place) = github.repository("octo/ranker");
    let within = Duration::from_millis(400);
    let client = Client::new(Identity { within, ..github.identity() }).unwrap();
    client.at(&place).open_pulls().await.unwrap();
    let begun = Instant::now();
    github.fail("GET /pulls", Fault::Silent, 1);
    let repo = client.at(&place);
    let (failed, ()) = tokio::join!(repo.open_pulls(), github.heard("GET /pulls", 2));
    assert_eq!(failed.unwrap_err(), Error::Unreachable("nothing came within 400ms".to_owned()));
    assert!(begun.elapsed() < Duration::from_secs(5), "{:?}", begun.elapsed());
    let patient = github.client();
    github.fail("GET /pulls", Fault::Endless, 1);
    let failed = patient.at(&place).open_pulls().await.unwrap_err();
    assert_eq!(failed, Error::Unreachable("an answer of more than 16 MiB".to_owned()));
    github.end();
}

#[tokio::test]
async fn nobody_listening_is_told_too() {
    let github = FakeGitHub::start().await;
    let (_, place) = github.repository("octo/ranker");
    let taken = tokio::net::TcpListener::bind("127.0.0.1:0").await.unwrap();
    let api_url = format!("http://{}", taken.local_addr().unwrap());
    drop(taken);
    let client = Client::new(Identity { api_url, ..github.identity() }).unwrap();
    let failed = client.at(&place).open_pulls().await.unwrap_err();
    assert!(matches!(&failed, Error::Unreachable(why) if why.contains("refused")), "{failed}");
    github.end();
}

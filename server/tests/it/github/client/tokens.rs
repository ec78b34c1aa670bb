//! Who the client says that it is.

use std::time::{Duration, Instant};

use futures_util::future::join_all;
use plimsoll_server::github::{Client, Error, Identity, Place};

use super::super::fake::{APP, FakeGitHub, Fault, KEY_PKCS1, OTHER_KEY, SLUG};
use super::count;

const TOKENS: &str = "POST /access_tokens";

#[tokio::test]
async fn the_app_signs_with_either_form_of_its_key_and_with_no_other() {
    let github = FakeGitHub::start().await;
    let about = github.client().about().await.unwrap();
    assert_eq!((about.id, about.slug.as_str(), about.permissions["checks"].as_str()), (APP, SLUG, "write"));
    assert!(about.events.contains(&"check_run".to_owned()));
    let older = Client::new(Identity { private_key: KEY_PKCS1.into(), ..github.identity() }).unwrap();
    assert_eq!(older.about().await.unwrap(), about);
    for wrong in [
        Identity { private_key: OTHER_KEY.into(), ..github.identity() },
        Identity { app_id: APP + 1, ..github.identity() },
    ] {
        let refused = Client::new(wrong).unwrap().about().await.unwrap_err();
        assert!(matches!(refused, Error::Refused { status: 401, .. }), "{refused}");
    }
    github.end();
}

#[tokio::test]
async fn a_token_is_asked_for_once_however_many_wait_for_it() {
    let github = FakeGitHub::start().await;
    let (_, place) = github.repository("octo/ranker");
    let (_, other) = github.repository("other/ranker");
    let client = github.client();
    let asked = join_all((0..20).map(async |_| client.at(&place).branch("main").await)).await;
    assert!(asked.into_iter().all(|branch| branch.unwrap().is_some()));
    assert_eq!(count(&github, TOKENS), 1);
    client.at(&other).branch("main").await.unwrap();
    assert_eq!(count(&github, TOKENS), 2, "each installation has its own");
    let mixed = Place { installation: other.installation, ..place };
    assert_eq!(client.at(&mixed).pull(1).await.unwrap_err(), Error::Missing);
    github.end();
}

#[tokio::test]
async fn a_token_that_github_refuses_is_renewed_once_for_all() {
    let github = FakeGitHub::start().await;
    let (_, place) = github.repository("octo/ranker");
    let client = github.client();
    client.at(&place).branch("main").await.unwrap();
    github.model().forget_tokens();
    let asked = join_all((0..20).map(async |_| client.at(&place).open_pulls().await)).await;
    assert!(asked.into_iter().all(|pulls| pulls.unwrap().is_empty()));
    assert_eq!(count(&github, TOKENS), 2);
    // Twice is too much: the App has lost its place.
    github.fail("GET /pulls", Fault::Unauthorized, 2);
    let refused = client.at(&place).open_pulls().await.unwrap_err();
    assert!(matches!(refused, Error::Refused { status: 401, .. }), "{refused}");
    client.at(&place).open_pulls().await.unwrap();
    github.end();
}

#[tokio::test]
async fn a_token_is_renewed_before_it_ends() {
    let github = FakeGitHub::start().await;
    let (_, place) = github.repository("octo/ranker");
    github.model().token_life(Duration::from_secs(2));
    let client = github.client();
    let renewed = async {
        while count(&github, TOKENS) < 3 {
            client.at(&place).open_pulls().await.unwrap();
        }
    };
    tokio::time::timeout(Duration::from_secs(60), renewed).await.unwrap();
    let refused = github.requests().iter().filter(|request| request.status == Some(401)).count();
    assert_eq!(refused, 0, "it was used to the end");
    assert!(github.requests().len() > 6, "it was renewed for each request");
    github.end();
}

#[tokio::test]
async fn an_installation_that_is_gone_or_suspended_has_no_token() {
    let github = FakeGitHub::start().await;
    let (id, place) = github.repository("octo/ranker");
    let client = github.client();
    let gone = Place { installation: 12, ..place.clone() };
    assert_eq!(client.at(&gone).branch("main").await.unwrap_err(), Error::Missing);
    github.model().installations.get_mut(&place.installation).unwrap().suspended = true;
    let refused = client.at(&place).branch("main").await.unwrap_err();
    assert_eq!(refused.to_string(), "GitHub refuses (403): This installation has been suspended");
    let listed = client.installations().await.unwrap();
    assert!(listed[0].suspended && listed[0].id == place.installation && listed[0].account == "octo", "{listed:?}");
    github.model().installations.get_mut(&place.installation).unwrap().suspended = false;
    let listed = client.repositories(place.installation).await.unwrap();
    assert_eq!((listed[0].id, listed[0].full_name.as_str()), (id, "octo/ranker"));
    github.end();
}

#[tokio::test]
async fn nobody_waits_longer_for_a_token_than_for_a_request_of_their_own() {
    let github = FakeGitHub::start().await;
    let (_, place) = github.repository("octo/ranker");
    let within = Duration::from_millis(300);
    let client = Client::new(Identity { within, ..github.identity() }).unwrap();
    github.fail(TOKENS, Fault::Silent, usize::MAX);
    let begun = Instant::now();
    let asked = join_all((0..40).map(async |_| client.at(&place).branch("main").await)).await;
    // One after the other it would take twelve seconds.
    assert!(begun.elapsed() < Duration::from_secs(6), "{:?}", begun.elapsed());
    assert!(asked.iter().all(|one| matches!(one, Err(Error::Unreachable(_)))), "{asked:?}");
    github.heal();
    client.at(&place).branch("main").await.unwrap();
    github.end();
}

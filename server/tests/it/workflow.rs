//! Workflows as callers, by tokens signed with a key of a real server of keys, and what a report may decide by who brings
//! it.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use axum::Router;
use axum::http::StatusCode;
use axum::response::Redirect;
use jsonwebtoken::jwk::{Jwk, JwkSet};
use jsonwebtoken::{Algorithm, EncodingKey, Header, encode, get_current_timestamp};
use plimsoll_domain::report::Report;
use plimsoll_domain::synthetic::Synthetic;
use plimsoll_server::access::Scope;
use plimsoll_server::state::Settings;
use plimsoll_server::store;
use plimsoll_server::store::github::links::{self, NewLink};
use plimsoll_server::store::github::repositories::{self, Seen};
use plimsoll_server::store::projects::Visibility;
use serde_json::{Value, json};

use crate::app::{App, TOKEN, release};

const AUDIENCE: &str = "https://plimsoll.example";
const REPOSITORY: i64 = 9_007_199_254_740_993;
const SHA: &str = "0123456789abcdef0123456789abcdef01234567";
const BASE: &str = "89abcdef0123456789abcdef0123456789abcdef";

/// Who gives out identity tokens. It counts how often its keys are asked for.
struct Issuer {
    url: String,
    asked: Arc<AtomicUsize>,
    key: EncodingKey,
}

impl Issuer {
    async fn start() -> Self {
        let key = EncodingKey::from_rsa_pem(include_bytes!("github/fake/key.pkcs1.pem")).unwrap();
        let mut jwk = Jwk::from_encoding_key(&key, Algorithm::RS256).unwrap();
        jwk.common.key_id = Some("one".to_owned());
        let keys = serde_json::to_string(&JwkSet { keys: vec![jwk] }).unwrap();
        let asked = Arc::new(AtomicUsize::new(0));
        let count = Arc::clone(&asked);
        let answer = move || async move {
            count.fetch_add(1, Ordering::Relaxed);
            keys.clone()
        };
        Self { url: served(Router::new().fallback(answer)).await, asked, key }
    }

    fn claims(&self) -> Value {
        let now = get_current_timestamp();
        json!({
            "iss": self.url, "aud": AUDIENCE, "sub": "repo:acme/sentiment:pull_request",
            "iat": now, "nbf": now - 10, "exp": now + 300,
            "repository": "acme/sentiment", "repository_id": REPOSITORY.to_string(), "repository_owner": "acme",
            "sha": SHA, "run_id": "4711", "run_attempt": "1", "event_name": "pull_request",
            "ref": "refs/pull/128/merge", "ref_type": "branch", "actor": "somebody",
        })
    }

    fn token(&self, change: &[(&str, Value)]) -> String {
        let mut claims = self.claims();
        for (name, value) in change {
            claims[*name] = value.clone();
        }
        self.sign("one", &claims)
    }

    fn sign(&self, kid: &str, claims: &Value) -> String {
        let header = Header { kid: Some(kid.to_owned()), ..Header::new(Algorithm::RS256) };
        encode(&header, claims, &self.key).unwrap()
    }

    /// A server that believes it, with the project `sentiment` measured from the repository.
    async fn app(&self) -> App {
        let app = trusting(&self.url).await;
        link(&app, "sentiment").await;
        app
    }
}

async fn served(router: Router) -> String {
    let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await.unwrap();
    let url = format!("http://{}", listener.local_addr().unwrap());
    tokio::spawn(async move { axum::serve(listener, router).await });
    url
}

async fn trusting(issuer: &str) -> App {
    let (public_url, oidc_issuer) = (Some(AUDIENCE.to_owned()), Some(issuer.to_owned()));
    App::with(Settings { public_url, oidc_issuer, ..Settings::default() }).await
}

async fn link(app: &App, project: &str) {
    let project = project.parse().unwrap();
    store::projects::ensure(&app.pool, &project, Visibility::Public).await.unwrap();
    repositories::install(&app.pool, 1, "acme").await.unwrap();
    let seen =
        Seen { id: REPOSITORY, installation: 1, full_name: "acme/sentiment", default_branch: None, private: true };
    repositories::put(&app.pool, seen).await.unwrap();
    let new = NewLink {
        project: &project,
        repository: REPOSITORY,
        plan: "plimsoll.toml",
        paths: &[],
        tags: None,
        labels: &Default::default(),
        queue_minutes: 60,
        created_by: "a test",
    };
    links::put(&app.pool, &new).await.unwrap();
}

fn pull_request(seed: u64) -> Report {
    let of = Synthetic {
        commit: Some(SHA.to_owned()),
        pull_request: Some(128),
        merge_base: Some(BASE.to_owned()),
        seed,
        ..Synthetic { tag: None, ..release("", 3) }
    };
    of.report()
}

async fn upload(app: &App, token: &str, report: &Report) -> crate::app::Answer {
    app.ask_by(token, "POST", "/api/v1/snapshots", &serde_json::from_str::<Value>(&report.to_json()).unwrap()).await
}

async fn stored(app: &App, report: &Report) -> (bool, bool, Option<String>) {
    let sql = "select gates, accepted, brought_by from snapshots where run_id = $1";
    sqlx::query_as(sql).bind(report.run_id.0).fetch_one(&app.pool).await.unwrap()
}

#[tokio::test]
async fn a_workflow_uploads_for_the_projects_of_its_repository_and_no_more() {
    let issuer = Issuer::start().await;
    let app = issuer.app().await;
    let token = issuer.token(&[]);
    let report = pull_request(1);
    let sent = upload(&app, &token, &report).await;
    assert_eq!((sent.status, &sent.json["gates"]), (StatusCode::CREATED, &json!(true)), "{sent:?}");
    let by = Some("workflow acme/sentiment run 4711".to_owned());
    assert_eq!(stored(&app, &report).await, (true, true, by));

    let mut elsewhere = pull_request(2);
    elsewhere.project = "other".parse().unwrap();
    let refused = upload(&app, &token, &elsewhere).await;
    assert_eq!(refused.status, StatusCode::FORBIDDEN, "{refused:?}");
    assert!(refused.json["detail"].as_str().unwrap().contains("project other"), "{refused:?}");
    let policy = app.ask_by(&token, "PUT", "/api/v1/projects/sentiment/policy", &json!({})).await;
    assert_eq!(policy.status, StatusCode::FORBIDDEN, "{policy:?}");
    let claim = app.ask_by(&token, "POST", "/api/v1/agent/claim", &json!({})).await;
    assert_eq!(claim.status, StatusCode::FORBIDDEN, "{claim:?}");
    assert_eq!(issuer.asked.load(Ordering::Relaxed), 1, "the keys are kept");
}

#[tokio::test]
async fn what_github_did_not_say_to_this_server_is_refused_with_the_reason() {
    let issuer = Issuer::start().await;
    let app = issuer.app().await;
    let now = get_current_timestamp();
    let other_key = EncodingKey::from_rsa_pem(include_bytes!("github/fake/other.pem")).unwrap();
    let rs256 = Header { kid: Some("one".to_owned()), ..Header::new(Algorithm::RS256) };
    let forged = encode(&rs256, &issuer.claims(), &other_key).unwrap();
    let hs256 = Header { kid: Some("one".to_owned()), ..Header::new(Algorithm::HS256) };
    // The public key as a secret: an old trick.
    let secret = EncodingKey::from_secret(include_bytes!("github/fake/key.public.pem"));
    let mixed = encode(&hs256, &issuer.claims(), &secret).unwrap();
    let nameless = encode(&Header::new(Algorithm::RS256), &issuer.claims(), &issuer.key).unwrap();
    let mut without = issuer.claims();
    without.as_object_mut().unwrap().remove("nbf");
    for (token, status, why) in [
        (forged, 401, "not signed by the key"),
        (mixed, 401, "RS256"),
        (nameless, 401, "names no key"),
        (issuer.sign("two", &issuer.claims()), 401, "has no key of the name"),
        (issuer.sign("one", &without), 401, "has no nbf"),
        (issuer.token(&[("aud", json!("https://other.example"))]), 401, "another address"),
        (issuer.token(&[("aud", json!(format!("{AUDIENCE}.evil.example")))]), 401, "another address"),
        (issuer.token(&[("iss", json!("https://token.actions.githubusercontent.com"))]), 401, "given by another"),
        (issuer.token(&[("exp", json!(now - 120)), ("iat", json!(now - 400))]), 401, "expired"),
        (issuer.token(&[("nbf", json!(now + 120))]), 401, "not valid yet"),
        (issuer.token(&[("iat", json!(now + 3_600)), ("exp", json!(now + 3_900))]), 401, "times"),
        (issuer.token(&[("exp", json!(now + 86_400))]), 401, "times"),
        (issuer.token(&[("sha", json!("not a commit"))]), 401, "commit"),
        (issuer.token(&[("repository_id", json!("1"))]), 403, "no project here is measured from"),
        ("eyJhbGciOiJub25lIn0.e30.".to_owned(), 401, "is not taken"),
        (format!("eyJ{}.e30.x", "A".repeat(20_000)), 401, "too long"),
    ] {
        let refused = upload(&app, &token, &pull_request(1)).await;
        let detail = refused.json["detail"].as_str().unwrap_or_default();
        assert_eq!((refused.status.as_u16(), detail.contains(why)), (status, true), "{why}: {refused:?}");
    }
    assert_eq!(app.rows().await[2], 0, "nothing is stored");
    // Whatever keys strangers name.
    assert_eq!(issuer.asked.load(Ordering::Relaxed), 1);
}

#[tokio::test]
async fn keys_come_from_the_issuer_itself_within_bounds() {
    let true_issuer = Issuer::start().await;
    let elsewhere = format!("{}/.well-known/jwks", true_issuer.url);
    let moved = served(Router::new().fallback(move || async move { Redirect::to(&elsewhere) }));
    let huge = served(Router::new().fallback(|| async { " ".repeat(1 << 20) }));
    for issuer in [moved.await, huge.await, "http://127.0.0.1:9".to_owned()] {
        let app = trusting(&issuer).await;
        link(&app, "sentiment").await;
        let answer = upload(&app, &true_issuer.token(&[("iss", json!(issuer))]), &pull_request(1)).await;
        assert_eq!(answer.status, StatusCode::SERVICE_UNAVAILABLE, "{answer:?}");
        assert!(answer.headers.contains_key("retry-after"), "{answer:?}");
    }
    assert_eq!(true_issuer.asked.load(Ordering::Relaxed), 0);
    // Nothing can be made out to a server that has no address.
    let app = App::with(Settings { oidc_issuer: Some(true_issuer.url.clone()), ..Settings::default() }).await;
    let answer = upload(&app, &true_issuer.token(&[]), &pull_request(1)).await;
    assert_eq!(answer.status, StatusCode::UNAUTHORIZED);
    assert!(answer.json["detail"].as_str().unwrap().contains("PLIMSOLL_PUBLIC_URL"), "{answer:?}");
}

#[tokio::test]
async fn a_pull_request_s_report_by_a_mere_token_is_shown_and_decides_nothing() {
    let issuer = Issuer::start().await;
    let app = issuer.app().await;
    let report = pull_request(1);
    let sent = upload(&app, TOKEN, &report).await;
    assert_eq!((sent.status, &sent.json["gates"]), (StatusCode::CREATED, &json!(false)), "{sent:?}");
    assert!(sent.json["gates_not_because"].as_str().unwrap().contains("upload and no more"), "{sent:?}");
    assert_eq!(stored(&app, &report).await, (false, false, Some("token PLIMSOLL_TOKENS".to_owned())));
    let again = upload(&app, TOKEN, &report).await;
    assert_eq!((again.status, &again.json["gates"]), (StatusCode::OK, &json!(false)), "{again:?}");
    assert!(again.json["gates_not_because"].is_string(), "{again:?}");
    let shown = app.get(&format!("/api/v1/snapshots/{}", report.run_id)).await;
    assert_eq!((&shown.json["gates"], &shown.json["accepted"]), (&json!(false), &json!(false)), "{shown:?}");

    // Nor is it what another is compared with, not even its own commit's descendant.
    let next = |seed| {
        let commit = Some("ffffffffffffffffffffffffffffffffffffffff".to_owned());
        Synthetic { commit, ancestors: vec![SHA.to_owned()], seed, ..Synthetic { tag: None, ..release("", 4) } }
            .report()
    };
    assert_eq!(app.upload(&next(11)).await.json["comparison"]["verdict"], "no_baseline");
    // Of the same commit by the workflow itself it is.
    let vouched = pull_request(2);
    assert_eq!(upload(&app, &issuer.token(&[]), &vouched).await.json["gates"], true);
    let compared = app.upload(&next(12)).await.json["comparison"]["baseline"]["run_ids"].clone();
    assert_eq!(compared, json!([vouched.run_id]));
}

#[tokio::test]
async fn only_a_runner_brings_what_a_check_waits_for() {
    let issuer = Issuer::start().await;
    let app = issuer.app().await;
    let report = pull_request(1);
    let wanted = json!({
        "run_id": report.run_id, "project": "sentiment", "revision": { "commit": SHA, "pull_request": 128 },
    });
    let asked = app.ask("POST", "/api/v1/runs", &wanted).await;
    assert!(asked.status.is_success(), "{asked:?}");
    sqlx::query(
        "insert into github_checks (id, project, repository, head_sha, kind, pull_request, run_id)
         values ($1, 'sentiment', $2, $3, 'pull_request', 128, $1)",
    )
    .bind(report.run_id.0)
    .bind(REPOSITORY)
    .bind(SHA)
    .execute(&app.pool)
    .await
    .unwrap();
    for token in [TOKEN.to_owned(), issuer.token(&[])] {
        let refused = upload(&app, &token, &report).await;
        assert_eq!(refused.status, StatusCode::FORBIDDEN, "{refused:?}");
        assert!(refused.json["detail"].as_str().unwrap().contains("a check on GitHub waits"), "{refused:?}");
    }
    let agent = app.token(Scope::Agent, Some("sentiment")).await;
    let sent = upload(&app, &agent, &report).await;
    assert_eq!((sent.status, &sent.json["gates"]), (StatusCode::CREATED, &json!(true)), "{sent:?}");
}

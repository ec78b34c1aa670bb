//! Runs as they are followed, and runners that wait, over two servers on one database.

use axum::http::StatusCode;
use plimsoll_domain::job::{Ending, Live, LiveEvent, Stage, State};
use plimsoll_server::access::{Caller, Scope, session};
use plimsoll_server::store::projects::{Visibility, set_visibility};
use plimsoll_server::store::sessions::SignedIn;
use plimsoll_server::store::{members, tokens};
use plimsoll_server::tasks::hub::{MAX_STREAMS, MAX_STREAMS_EACH};
use serde_json::{Value, json};
use uuid::Uuid;

use super::actor::{Actor, ask, end_lease, report_of};
use super::stream::Stream;
use crate::app::{App, release};

fn seqs(events: &[LiveEvent]) -> Vec<u64> {
    events.iter().map(|event| event.seq).collect()
}

#[tokio::test]
async fn what_happens_through_one_server_is_streamed_by_the_other_until_the_verdict() {
    let one = App::new().await;
    let two = one.beside().await;
    let runner = Actor::new();
    let id = ask(&one, "v1.0.0", json!({})).await;
    let reader = one.token(Scope::Read, Some("sentiment")).await;
    let mut stream = Stream::with(&two, id, "authorization", &format!("Bearer {reader}")).await.unwrap();
    assert!(matches!(stream.next().await.unwrap().what, Live::State { state: State::Queued, .. }));
    // The stream waits already, and is woken.
    let (leased, job) = tokio::join!(stream.next(), runner.claim(&one));
    let (leased, job) = (leased.unwrap(), job.unwrap());
    assert!(matches!(&leased.what, Live::State { state: State::Leased, runner: Some(name), .. } if name == "gpu-1"));
    let (running, _) = tokio::join!(stream.next(), runner.beat(&one, &job, Stage::Smoke));
    let (running, progress) = (running.unwrap(), stream.next().await.unwrap());
    assert!(matches!(running.what, Live::State { state: State::Running, .. }));
    assert!(matches!(&progress.what, Live::Progress(at) if at.tps == Some(178.4)));
    one.upload(&report_of(id, &release("v1.0.0", 0))).await;
    let rest = stream.rest().await;
    assert_eq!(seqs(&rest), [5, 6]);
    assert!(matches!(rest[0].what, Live::State { state: State::Done, .. }));
    assert!(matches!(&rest[1].what, Live::Verdict { path, .. } if *path == format!("/sentiment/snapshots/{id}")));
}

#[tokio::test]
async fn a_stream_is_resumed_without_gap_or_repetition() {
    let app = App::new().await;
    let two = app.beside().await;
    let runner = Actor::new();
    let id = ask(&app, "v1.0.0", json!({})).await;
    let job = runner.claim(&app).await.unwrap();
    let mut seen = Vec::new();
    for round in 0..6 {
        // Each time from another server, and cut in the middle.
        let mut stream = Stream::open(if round % 2 == 0 { &app } else { &two }, id, seen.len() as u64).await;
        runner.beat(&app, &job, Stage::Staircase).await;
        seen.push(stream.next().await.unwrap());
    }
    runner.end(&app, &job, plimsoll_domain::job::Ending::Failed).await;
    seen.extend(Stream::open(&two, id, seen.len() as u64).await.rest().await);
    // queued, leased, running, six times progress, failed
    assert_eq!(seqs(&seen), (1..=10).collect::<Vec<_>>());
    assert!(seen.last().unwrap().what.is_last());
    assert_eq!(Stream::open(&app, id, 10).await.rest().await, []);
    let odd = axum::http::Request::get(format!("/api/v1/runs/{id}/events")).header("last-event-id", "x");
    assert_eq!(app.send(odd.body(axum::body::Body::empty()).unwrap()).await.status, StatusCode::BAD_REQUEST);
}

#[tokio::test]
async fn a_run_that_was_given_up_and_measured_after_all_is_told_to_its_end() {
    let app = App::new().await;
    let id = ask(&app, "v1.0.0", json!({})).await;
    sqlx::query("update jobs set max_attempts = 1").execute(&app.pool).await.unwrap();
    Actor::new().claim(&app).await.unwrap();
    end_lease(&app, id).await;
    plimsoll_server::tasks::leases::run_once(&app.state).await.unwrap();
    let first = Stream::open(&app, id, 0).await.rest().await;
    assert!(matches!(first.last().unwrap().what, Live::State { state: State::Expired, .. }), "{first:?}");
    app.upload(&report_of(id, &release("v1.0.0", 0))).await;
    let whole = Stream::open(&app, id, 0).await.rest().await;
    assert_eq!(seqs(&whole), [1, 2, 3, 4, 5]);
    assert!(matches!(whole[4].what, Live::Verdict { .. }));
}

#[tokio::test]
async fn a_stream_goes_on_when_the_listening_connection_is_cut() {
    let one = App::new().await;
    let two = one.beside().await;
    let runner = Actor::new();
    let id = ask(&one, "v1.0.0", json!({})).await;
    let mut stream = Stream::open(&two, id, 1).await;
    let job = runner.claim(&one).await.unwrap();
    stream.next().await.unwrap();
    let cut = "select count(pg_terminate_backend(pid)) from pg_stat_activity
               where application_name = 'plimsoll listener' and datname = current_database()";
    for stage in [Stage::Smoke, Stage::WarmUp, Stage::Staircase] {
        // The first time it may still be about to connect.
        let mut killed: i64 = 0;
        for _ in 0..1_000 {
            killed = sqlx::query_scalar(cut).fetch_one(&one.pool).await.unwrap();
            if killed > 0 || stage != Stage::Smoke {
                break;
            }
            tokio::time::sleep(std::time::Duration::from_millis(5)).await;
        }
        assert!(killed > 0 || stage != Stage::Smoke, "nobody listens");
        let told =
            async { while !matches!(stream.next().await.unwrap().what, Live::Progress(at) if at.stage == stage) {} };
        tokio::join!(told, runner.beat(&one, &job, stage));
    }
}

#[tokio::test]
async fn what_waits_ends_when_the_server_stops() {
    let app = App::new().await;
    let id = ask(&app, "v1.0.0", json!({"labels": {"gpu": "L20"}})).await;
    let mut stream = Stream::open(&app, id, 0).await;
    stream.next().await.unwrap();
    let drain = async {
        until_claiming(&app, None).await;
        app.state.drain();
    };
    let runner = Actor::new();
    let (claim, rest, ()) = tokio::join!(runner.claim_answer(&app, 30), stream.rest(), drain);
    assert_eq!((claim.status, rest), (StatusCode::NO_CONTENT, Vec::new()));
    assert_eq!(Actor::new().claim_answer(&app, 30).await.status, StatusCode::NO_CONTENT);
}

#[tokio::test]
async fn no_more_streams_than_are_allowed() {
    let app = App::new().await;
    let id = ask(&app, "v1.0.0", json!({})).await;
    let mut streams = Vec::new();
    for _ in 0..MAX_STREAMS {
        streams.push(Stream::open(&app, id, 0).await);
    }
    let path = format!("/api/v1/runs/{id}/events");
    let refused = app.get(&path).await;
    assert_eq!((refused.status, refused.kind.as_str()), (StatusCode::SERVICE_UNAVAILABLE, "application/problem+json"));
    assert!(refused.headers.contains_key("retry-after"));
    streams.pop();
    Stream::open(&app, id, 0).await.next().await.unwrap();
}

#[tokio::test]
async fn nobody_takes_the_places_of_all_others() {
    let app = App::new().await;
    let id = ask(&app, "v1.0.0", json!({})).await;
    let [one, two] = [app.token(Scope::Read, None).await, app.token(Scope::Read, None).await];
    let follow = async |token: &str| Stream::with(&app, id, "authorization", &format!("Bearer {token}")).await;
    let mut streams = Vec::new();
    for _ in 0..MAX_STREAMS_EACH {
        streams.push(follow(&one).await.unwrap());
    }
    assert_eq!(follow(&one).await.err(), Some(StatusCode::TOO_MANY_REQUESTS));
    streams.push(follow(&two).await.unwrap());
    streams.remove(0);
    follow(&one).await.unwrap();
}

#[tokio::test]
async fn a_stream_ends_when_its_reader_may_not_go_on() {
    let app = App::new().await;
    let id = ask(&app, "v1.0.0", json!({})).await;
    let project = "sentiment".parse().unwrap();
    let [stays, revoked] = [app.token(Scope::Read, None).await, app.token(Scope::Read, None).await];
    let grant = plimsoll_server::access::Grant { scope: Scope::Read, project: None };
    members::put(&app.pool, "ada", &grant, "a test").await.unwrap();
    let ada = SignedIn::Member("ada".to_owned());
    let cookie = session::begin(&app.state, &Caller::anonymous(), ada).await.unwrap();

    let bearer = |token: &str| ("authorization", format!("Bearer {token}"));
    let readers = [
        bearer(&stays),
        bearer(&revoked),
        ("cookie", format!("plimsoll={}", cookie.value())),
        ("accept", "text/event-stream".to_owned()),
    ];
    let mut streams = Vec::new();
    for (header, value) in &readers {
        let mut stream = Stream::with(&app, id, header, value).await.unwrap();
        stream.next().await.unwrap();
        streams.push(stream);
    }
    let token = tokens::by_name(&app.pool, &revoked[..8]).await.unwrap().unwrap();
    assert!(tokens::revoke(&app.pool, token.id).await.unwrap());
    sqlx::raw_sql("delete from sessions").execute(&app.pool).await.unwrap();
    set_visibility(&app.pool, &project, Visibility::Private).await.unwrap();

    Actor::new().claim(&app).await.unwrap();
    let mut told = Vec::new();
    for stream in &mut streams {
        told.push(stream.next().await.is_some());
    }
    assert_eq!(told, [true, false, false, false]);
}

#[tokio::test]
async fn a_waiting_runner_gets_what_another_server_is_asked_for() {
    let one = App::new().await;
    let two = one.beside().await;
    let runner = Actor::new();
    let asks = async {
        until_claiming(&one, None).await;
        ask(&one, "v1.0.0", json!({})).await
    };
    let claim = tokio::time::timeout(std::time::Duration::from_secs(10), runner.claim_answer(&two, 30));
    let (claim, id) = tokio::join!(claim, asks);
    assert_eq!(claim.expect("it was not woken").json["run_id"], id.to_string());
}

#[tokio::test]
async fn of_two_requests_of_one_runner_the_newer_gets_the_job() {
    let one = App::new().await;
    let two = one.beside().await;
    let runner = Actor::new();
    let newer = async {
        let first = until_claiming(&one, None).await;
        let asks = async {
            until_claiming(&one, Some(first)).await;
            ask(&one, "v1.0.0", json!({})).await
        };
        tokio::join!(runner.claim_answer(&two, 30), asks)
    };
    // The older one asks again as soon as there is a job, and learns that it was replaced.
    let (older, (newer, id)) = tokio::join!(runner.claim_answer(&one, 30), newer);
    assert_eq!(older.status, StatusCode::NO_CONTENT);
    assert_eq!((&newer.json["run_id"], &newer.json["attempt"]), (&id.to_string().into(), &1.into()));
}

/// Until a runner's request, other than `but`, is known to the database.
async fn until_claiming(app: &App, but: Option<Uuid>) -> Uuid {
    for _ in 0..1_000 {
        let claim: Option<Option<Uuid>> =
            sqlx::query_scalar("select claim from runners").fetch_optional(&app.pool).await.unwrap();
        if let Some(claim) = claim.flatten().filter(|claim| Some(*claim) != but) {
            return claim;
        }
        tokio::time::sleep(std::time::Duration::from_millis(5)).await;
    }
    panic!("no runner asks");
}

#[tokio::test]
async fn only_who_has_a_scope_for_the_project_is_told_who_asked_and_on_which_host() {
    let app = App::new().await;
    let (runner, id) = (Actor::new(), ask(&app, "v1.0.0", json!({})).await);
    runner.end(&app, &runner.claim(&app).await.unwrap(), Ending::Failed).await;
    let reader = app.token(Scope::Read, Some("sentiment")).await;
    let elsewhere = app.token(Scope::Admin, Some("other")).await;
    for (token, told) in [(None, false), (Some(&elsewhere), false), (Some(&reader), true)] {
        let get = async |path: &str| match token {
            Some(token) => app.ask_by(token, "GET", path, &Value::Null).await.json,
            None => app.get(path).await.json,
        };
        let single = get(&format!("/api/v1/runs/{id}")).await;
        let list = get("/api/v1/runs").await;
        for run in [&single, &list[0]] {
            assert_eq!((&run["state"], &run["reason"]), (&json!("failed"), &json!("the service did not start")));
            let run = run.as_object().unwrap();
            assert_eq!((run.contains_key("runner"), run.contains_key("requested_by")), (told, told), "{token:?}");
        }
        let stream = match token {
            Some(token) => Stream::with(&app, id, "authorization", &format!("Bearer {token}")).await.unwrap(),
            None => Stream::open(&app, id, 0).await,
        };
        let events = stream.rest().await;
        let names: Vec<Option<&str>> = events
            .iter()
            .map(|event| match &event.what {
                Live::State { runner, .. } => runner.as_deref(),
                _ => None,
            })
            .collect();
        assert_eq!(names, [None, told.then_some("gpu-1"), told.then_some("gpu-1")]);
    }
}

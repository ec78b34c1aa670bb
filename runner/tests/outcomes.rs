//! How requests end, against a real server that misbehaves on demand. Single requests: no timing decides a test.

mod support;

use std::net::SocketAddr;
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::Duration;

use plimsoll_domain::outcome::ErrorKind;
use plimsoll_domain::plan::{Assertion, Expect};
use plimsoll_domain::report::{Step, StepRole};
use plimsoll_runner::load::http::Limits;
use plimsoll_runner::load::{Clock, Endpoint, Engine, Event, Probe, StepPlan, Transport};
use plimsoll_runner::protocol::{Json, Target};
use plimsoll_runner::spec::Requests;
use serde_json::json;
use support::{Reply, Server, ok, status};

/// An engine with short timeouts for the service at `address`.
fn engine(address: SocketAddr, keep_alive: bool, expect: Expect) -> Engine {
    engine_of(vec![address], keep_alive, expect)
}

fn engine_of(addresses: Vec<SocketAddr>, keep_alive: bool, expect: Expect) -> Engine {
    let address = addresses[0];
    let requests = Requests {
        url: format!("http://{address}/predict").parse().unwrap(),
        method: "POST".to_owned(),
        headers: vec![],
        bodies: vec![b"{}".to_vec(), b"[1]".to_vec()],
    };
    let target: Arc<dyn Target> = Arc::new(Json::new(&requests, keep_alive, expect).unwrap());
    let transport = Transport {
        endpoint: Endpoint { addresses, tls: None, connect_timeout: Duration::from_millis(300) },
        response_timeout: Duration::from_millis(300),
        keep_alive,
        limits: Limits { body: 10_000, keep: target.wants_body() },
    };
    Engine::start(target, transport, Clock::start()).unwrap()
}

fn any() -> Expect {
    Expect { status: 200, json: Default::default() }
}

async fn probe(engine: &Engine, number: u64) -> Probe {
    engine.probe(number).await.unwrap().await.unwrap()
}

/// The outcome of one request that the server answers with `reply`, and what is said about it.
async fn outcome(reply: Reply, expect: Expect) -> (Option<ErrorKind>, String) {
    let server = Server::start(10, Duration::ZERO, move |_| reply.clone());
    match probe(&engine(server.address, true, expect), 0).await.result {
        Ok(()) => (None, String::new()),
        Err(fault) => (Some(fault.kind), fault.reason),
    }
}

#[tokio::test]
async fn each_way_to_fail_has_its_kind() {
    let head = "HTTP/1.1 200 OK\r\ncontent-length: 10\r\n\r\n".to_owned();
    let half = format!("{head}abc");
    for (reply, kind, said) in [
        (Reply::Reset(String::new()), ErrorKind::Reset, "the connection broke"),
        (Reply::Close(String::new()), ErrorKind::Reset, "closed before an answer began"),
        (Reply::Close("HTTP/1.1 200 OK\r\nconte".to_owned()), ErrorKind::Reset, "inside the answer's head"),
        (Reply::Close(half.clone()), ErrorKind::Reset, "closed after 3 bytes of the answer's body of 10"),
        (Reply::Reset(half.clone()), ErrorKind::Reset, ""),
        (Reply::Bytes("SSH-2.0-x\r\n\r\n".to_owned()), ErrorKind::Reset, "not HTTP"),
        (Reply::Stall(String::new()), ErrorKind::ResponseTimeout, "no complete answer within 300 ms"),
        (Reply::Stall(half), ErrorKind::ResponseTimeout, "within 300 ms"),
        (status(429, "slow down"), ErrorKind::Http429, "status 429 instead of 200; the body is slow down"),
        (status(404, ""), ErrorKind::Http4xx, "status 404 instead of 200; the body is empty"),
        (status(500, "{}"), ErrorKind::Http5xx, "status 500"),
        (status(201, "{}"), ErrorKind::BadOutput, "status 201"),
        (status(302, "{}"), ErrorKind::BadOutput, "status 302"),
        (ok(&"x".repeat(10_001)), ErrorKind::BadOutput, "longer than 10000 bytes"),
    ] {
        let shown = format!("{reply:?}").chars().take(80).collect::<String>();
        let (is, reason) = outcome(reply, any()).await;
        assert_eq!(is, Some(kind), "{shown}: {reason}");
        assert!(reason.contains(said), "{shown}: {reason}");
    }
}

#[tokio::test]
async fn outputs_are_asserted() {
    let expect = || Expect {
        status: 200,
        json: [("/label".to_owned(), Assertion::Equals(json!("positive")))].into_iter().collect(),
    };
    assert_eq!(outcome(ok(r#"{"label":"positive"}"#), expect()).await.0, None);
    for (body, said) in [
        (r#"{"label":"negative"}"#, r#"/label is "negative", expected "positive""#),
        (r#"{"score":1}"#, "nothing at /label"),
        (r#"{"label":"#, "not JSON"),
        ("", "not JSON"),
    ] {
        let (kind, reason) = outcome(ok(body), expect()).await;
        assert_eq!(kind, Some(ErrorKind::BadOutput), "{body}");
        assert!(reason.contains(said), "{body}: {reason}");
    }
}

#[tokio::test]
async fn nobody_listening_is_refused() {
    let listener = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
    let address = listener.local_addr().unwrap();
    drop(listener);
    let fault = probe(&engine(address, true, any()), 0).await.result.unwrap_err();
    assert_eq!(fault.kind, ErrorKind::ConnectRefused);
    assert!(fault.reason.contains(&address.to_string()), "{}", fault.reason);
}

#[tokio::test]
async fn a_full_backlog_is_a_connect_timeout() {
    let socket = tokio::net::TcpSocket::new_v4().unwrap();
    socket.bind("127.0.0.1:0".parse().unwrap()).unwrap();
    let listener = socket.listen(1).unwrap();
    let address = listener.local_addr().unwrap();
    // Filled until the kernel drops the next handshake.
    let mut waiting = Vec::new();
    while let Ok(stream) = std::net::TcpStream::connect_timeout(&address, Duration::from_millis(200)) {
        waiting.push(stream);
        assert!(waiting.len() < 100, "the backlog never fills");
    }
    let fault = probe(&engine(address, true, any()), 0).await.result.unwrap_err();
    assert_eq!((fault.kind, fault.reason.as_str()), (ErrorKind::ConnectTimeout, "no connection within 300 ms"));
}

#[tokio::test]
async fn an_idle_connection_that_the_server_closed_is_no_error() {
    let Reply::Bytes(answer) = ok("{}") else { unreachable!() };
    let server = Server::start(10, Duration::ZERO, move |_| Reply::Close(answer.clone()));
    let engine = engine(server.address, true, any());
    for number in 0..5 {
        // The server has closed the connection of the request before.
        while server.closed.load(Ordering::Relaxed) < number {
            tokio::task::yield_now().await;
        }
        assert_eq!(probe(&engine, number).await.result, Ok(()));
    }
    assert_eq!(server.connections.load(Ordering::Relaxed), 5);
}

#[tokio::test]
async fn connections_are_kept_or_not_as_the_plan_says() {
    for (keep_alive, connections) in [(true, 1), (false, 6)] {
        let server = Server::start(10, Duration::ZERO, |_| ok("{}"));
        let engine = engine(server.address, keep_alive, any());
        for number in 0..6 {
            assert_eq!(probe(&engine, number).await.result, Ok(()));
        }
        assert_eq!(server.connections.load(Ordering::Relaxed), connections, "keep-alive {keep_alive}");
    }
}

#[tokio::test]
async fn an_answer_without_length_ends_with_its_connection() {
    let chunked = "HTTP/1.1 200 OK\r\ntransfer-encoding: chunked\r\n\r\n2\r\n{}\r\n0\r\n\r\n".to_owned();
    for (reply, connections) in [
        (Reply::Close("HTTP/1.1 200 OK\r\n\r\n{}".to_owned()), 3),
        (Reply::Bytes("HTTP/1.0 200 OK\r\ncontent-length: 2\r\n\r\n{}".to_owned()), 3),
        (Reply::Bytes("HTTP/1.1 200 OK\r\ncontent-length: 2\r\nconnection: close\r\n\r\n{}".to_owned()), 3),
        (Reply::Bytes("HTTP/1.1 100 Continue\r\n\r\nHTTP/1.1 200 OK\r\ncontent-length: 2\r\n\r\n{}".to_owned()), 1),
        (Reply::Bytes(chunked), 1),
    ] {
        let server = Server::start(10, Duration::ZERO, move |_| reply.clone());
        let expect =
            Expect { status: 200, json: [(String::new(), Assertion::Equals(json!({})))].into_iter().collect() };
        let engine = engine(server.address, true, expect);
        for number in 0..3 {
            assert_eq!(probe(&engine, number).await.result, Ok(()));
        }
        assert_eq!(server.connections.load(Ordering::Relaxed), connections);
    }
}

#[tokio::test]
async fn an_address_that_swallows_everything_leaves_time_for_the_next() {
    // Nobody accepts: once its queue is full, the kernel answers no further connection.
    let full = tokio::net::TcpSocket::new_v4().unwrap();
    full.bind("127.0.0.1:0".parse().unwrap()).unwrap();
    let full = full.listen(1).unwrap();
    let silent = full.local_addr().unwrap();
    let mut queued = Vec::new();
    while queued.len() < 50
        && let Ok(connection) =
            tokio::time::timeout(Duration::from_millis(200), tokio::net::TcpStream::connect(silent)).await
    {
        queued.push(connection.unwrap());
    }
    assert!(queued.len() < 50, "the queue of {silent} is never full");
    let alone = probe(&engine(silent, true, any()), 0).await.result.unwrap_err();
    assert_eq!((alone.kind, alone.reason.as_str()), (ErrorKind::ConnectTimeout, "no connection within 300 ms"));
    let server = Server::start(10, Duration::ZERO, |_| ok("{}"));
    let engine = engine_of(vec![silent, server.address], true, any());
    assert_eq!(probe(&engine, 0).await.result, Ok(()));
}

/// A short step of `workers`.
async fn step(engine: &mut Engine, workers: u32) -> Step {
    let plan = StepPlan {
        role: StepRole::Planned,
        workers,
        duration_ms: 400,
        longest_ms: 400,
        ramp_ms: 0,
        min_successes: 0,
        trimmed: true,
        by_hand: false,
    };
    drop(engine.begin(plan).await.unwrap());
    loop {
        match engine.event().await.unwrap() {
            Event::Ended { .. } => drop(engine.cut().await.unwrap()),
            Event::Final { record, .. } => return record.into_step(),
            _ => {}
        }
    }
}

#[tokio::test]
async fn workers_count_every_outcome_and_open_connections_again() {
    let server = Server::start(10, Duration::from_millis(2), |seen| match seen.number % 4 {
        0 => status(503, "busy"),
        1 => Reply::Reset(String::new()),
        _ => ok("{}"),
    });
    let step = step(&mut engine(server.address, true, any()), 4).await;
    let errors = &step.outcomes.errors;
    let kinds: Vec<_> = errors.keys().copied().collect();
    assert_eq!(kinds, [ErrorKind::Reset, ErrorKind::Http5xx]);
    let share = errors[&ErrorKind::Reset] as f64 / step.outcomes.finished() as f64;
    assert!((0.15..0.35).contains(&share), "{share}");
    assert!(step.connections >= errors[&ErrorKind::Reset], "{} connections", step.connections);
}

#[tokio::test]
async fn a_dead_service_is_not_hammered() {
    let listener = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
    let address = listener.local_addr().unwrap();
    drop(listener);
    let step = step(&mut engine(address, true, any()), 2).await;
    let refused = step.outcomes.errors[&ErrorKind::ConnectRefused];
    // 320 ms of two workers that wait 100 ms after each failure.
    assert!((1..=10).contains(&refused), "{refused}");
    assert_eq!((step.outcomes.ok, step.connections), (0, 0));
}

//! Clients that take their time, and clients that are many.

use std::time::Duration;

use tokio::io::AsyncWriteExt as _;
use tokio::time::{Instant, sleep};

use crate::program::{PATIENCE, Program, heard};
use crate::target::TOKEN;

/// How a client begins and never goes on.
const STALLS: [&str; 6] = [
    "",
    "G",
    "GET / HTTP/1.1\r\nHost: x\r\n",
    "PRI * HTTP/2.0\r\n",
    "GET /healthz HTTP/1.1\r\nHost: x\r\n\r\n",
    "POST /api/v1/snapshots HTTP/1.1\r\nHost: x\r\nContent-Length: 1000\r\n\r\n{\"schema\"",
];

#[tokio::test(flavor = "multi_thread")]
async fn whoever_stalls_is_let_go_and_the_others_are_served() {
    let program = Program::start(&[]).await;
    let authorized = format!(
        "POST /api/v1/snapshots HTTP/1.1\r\nHost: x\r\nAuthorization: Bearer {TOKEN}\r\nContent-Length: 1000\r\n\r\n{{"
    );
    let stalls = STALLS.iter().copied().chain([authorized.as_str()]).map(|start| {
        let program = &program;
        async move {
            let mut stream = program.connect().await;
            stream.write_all(start.as_bytes()).await.unwrap();
            let began = Instant::now();
            let answer = heard(&mut stream).await;
            assert!(began.elapsed() < PATIENCE, "{start:?} was kept");
            answer
        }
    });
    // One byte at a time is no better.
    let trickle = async {
        let mut stream = program.connect().await;
        let began = Instant::now();
        for byte in b"GET / HTTP/1.1\r\nHost: x\r\nX-Long: ".iter().chain([b'a'; 60].iter()) {
            if stream.write_all(&[*byte]).await.is_err() {
                break;
            }
            sleep(Duration::from_millis(500)).await;
        }
        assert!(began.elapsed() < PATIENCE, "a trickle was kept");
    };
    let (answers, (), ()) =
        tokio::join!(futures_util::future::join_all(stalls), trickle, async { program.is_well().await });
    assert!(answers.last().unwrap().starts_with("HTTP/1.1 4"), "{answers:?}");
}

#[tokio::test(flavor = "multi_thread")]
async fn further_connections_wait_until_one_ends() {
    let program = Program::start(&["--max-connections", "3"]).await;
    let mut idle = Vec::new();
    for _ in 0..3 {
        idle.push(program.connect().await);
    }
    let mut waits = program.connect().await;
    waits.write_all(b"GET /healthz HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n").await.unwrap();
    let answer = tokio::spawn(async move { heard(&mut waits).await });
    // The three are open as far as they can tell, and the fourth is not served beside them.
    let unanswered = tokio::time::timeout(Duration::from_secs(1), std::future::pending::<()>()).await;
    assert!(unanswered.is_err() && !answer.is_finished());
    drop(idle.pop());
    assert!(answer.await.unwrap().starts_with("HTTP/1.1 200"));
}

//! Connections: both versions of HTTP, and what is under way when the server stops.

use std::time::Duration;

use plimsoll_server::config::Config;
use plimsoll_server::serve::Server;
use secrecy::ExposeSecret as _;
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::TcpStream;
use tokio::time::{sleep, timeout};

use crate::app::{database, release};

async fn start(folder: &std::path::Path) -> Server {
    let config = Config { database_url: Some(database().await), ..Config::local(folder) };
    Server::start(config).await.expect("it starts")
}

#[tokio::test(flavor = "multi_thread")]
async fn both_versions_of_http_are_spoken() {
    // Another test may have been here before.
    let _ = rustls::crypto::ring::default_provider().install_default();
    let folder = tempfile::tempdir().unwrap();
    let server = start(folder.path()).await;
    let url = format!("{}/healthz", server.url());
    let one = reqwest::Client::builder().http1_only().build().unwrap();
    let two = reqwest::Client::builder().http2_prior_knowledge().build().unwrap();
    for (client, version) in [(one, reqwest::Version::HTTP_11), (two, reqwest::Version::HTTP_2)] {
        let answer = client.get(&url).send().await.unwrap();
        assert_eq!((answer.version(), answer.status().as_u16()), (version, 200));
    }
    server.stop().await.unwrap();
}

#[tokio::test(flavor = "multi_thread")]
async fn a_request_under_way_is_finished_when_the_server_stops() {
    let folder = tempfile::tempdir().unwrap();
    let server = start(folder.path()).await;
    let address = server.address();
    let report = release("v1.0.0", 0).report().to_json();
    let head = format!(
        "POST /api/v1/snapshots HTTP/1.1\r\nHost: x\r\nAuthorization: Bearer {}\r\nContent-Length: {}\r\n\r\n",
        server.token().expose_secret(),
        report.len()
    );
    let (begins, rest) = report.as_bytes().split_at(report.len() / 2);
    let mut upload = TcpStream::connect(address).await.unwrap();
    upload.write_all(head.as_bytes()).await.unwrap();
    upload.write_all(begins).await.unwrap();
    // An idle one does not keep the server.
    let mut idle = TcpStream::connect(address).await.unwrap();
    idle.write_all(b"GET /healthz HTTP/1.1\r\nHost: x\r\n\r\n").await.unwrap();
    let mut first = [0; 12];
    idle.read_exact(&mut first).await.unwrap();
    assert_eq!(&first, b"HTTP/1.1 200");

    let stopped = tokio::spawn(server.stop());
    let refused = async {
        while TcpStream::connect(address).await.is_ok() {
            sleep(Duration::from_millis(5)).await;
        }
    };
    timeout(Duration::from_secs(10), refused).await.expect("nobody new comes in");
    assert!(!stopped.is_finished());
    upload.write_all(rest).await.unwrap();
    let mut answer = Vec::new();
    upload.read_to_end(&mut answer).await.unwrap();
    let answer = String::from_utf8_lossy(&answer);
    assert!(answer.starts_with("HTTP/1.1 201"), "{answer}");
    stopped.await.unwrap().unwrap();
}

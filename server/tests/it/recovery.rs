//! A database that goes away under the server: 503 while it is gone, and everything as before once it is back.

use std::time::{Duration, Instant};

use plimsoll_server::config::Config;
use plimsoll_server::serve::Server;
use plimsoll_server::store;
use rustix::process::{Pid, Signal, kill_process, test_kill_process};
use secrecy::ExposeSecret as _;
use tokio::net::{TcpListener, TcpStream};
use tokio::task::JoinSet;

use crate::app::{database, release};
use crate::embedded::folder;
use crate::program::ask;

const PATIENCE: Duration = Duration::from_secs(60);

async fn get(server: &Server, path: &str) -> String {
    let address = server.address().to_string();
    let request = format!("GET {path} HTTP/1.1\r\nHost: {address}\r\nConnection: close\r\n\r\n");
    tokio::task::spawn_blocking(move || ask(&address, &request)).await.unwrap()
}

async fn upload(server: &Server, tag: &str, day: i64) -> String {
    let (address, body) = (server.address().to_string(), release(tag, day).report().to_json());
    let request = format!(
        "POST /api/v1/snapshots HTTP/1.1\r\nHost: {address}\r\nConnection: close\r\nAuthorization: Bearer {}\r\n\
         Content-Length: {}\r\n\r\n{body}",
        server.token().expose_secret(),
        body.len(),
    );
    tokio::task::spawn_blocking(move || ask(&address, &request)).await.unwrap()
}

pub(crate) fn status(answer: &str) -> &str {
    answer.strip_prefix("HTTP/1.1 ").and_then(|rest| rest.get(..3)).unwrap_or(answer)
}

/// Asks until the answer has the status; bounded.
async fn until(server: &Server, path: &str, wanted: &str) -> String {
    let deadline = Instant::now() + PATIENCE;
    loop {
        let answer = get(server, path).await;
        if status(&answer) == wanted {
            return answer;
        }
        assert!(Instant::now() < deadline, "{path} does not become {wanted}: {answer}");
        tokio::time::sleep(Duration::from_millis(50)).await;
    }
}

async fn assert_away(server: &Server) {
    until(server, "/readyz", "503").await;
    let (ready, api, page, refused, alive) = tokio::join!(
        get(server, "/readyz"),
        get(server, "/api/v1/projects"),
        get(server, "/sentiment/history"),
        upload(server, "v9.0.0", 90),
        get(server, "/healthz"),
    );
    for answer in [ready, api, page, refused] {
        assert_eq!(status(&answer), "503", "{answer}");
        assert!(answer.to_lowercase().contains("\r\nretry-after: "), "{answer}");
    }
    assert_eq!(status(&alive), "200");
}

#[tokio::test(flavor = "multi_thread")]
async fn an_embedded_postgres_that_is_killed_is_started_again() {
    let folder = folder();
    let server = Server::start(Config::local(folder.path())).await.unwrap();
    assert_eq!(status(&upload(&server, "v1.0.0", 0).await), "201");
    let cluster = server.cluster().unwrap();
    let (url, first) = (cluster.url("plimsoll"), cluster.pid().unwrap());

    // A backend that cannot end yet keeps the shared memory of the killed postmaster.
    let lingering = store::database::open(&url, 1).await.unwrap();
    let backend: i32 = sqlx::query_scalar("select pg_backend_pid()").fetch_one(&lingering).await.unwrap();
    let backend = Pid::from_raw(backend).unwrap();
    kill_process(backend, Signal::STOP).unwrap();
    kill_process(Pid::from_raw(first.cast_signed()).unwrap(), Signal::KILL).unwrap();
    assert_away(&server).await;
    assert_eq!(cluster.pid(), None, "never two on one directory");

    kill_process(backend, Signal::CONT).unwrap();
    until(&server, "/readyz", "200").await;
    assert_ne!(cluster.pid().unwrap(), first);
    assert_eq!(cluster.url("plimsoll").expose_secret(), url.expose_secret());
    // What was acknowledged is there, what was refused is not, and new reports are taken.
    assert_eq!(status(&upload(&server, "v1.0.0", 0).await), "200");
    assert_eq!(status(&upload(&server, "v9.0.0", 90).await), "201");
    // As often as it takes.
    let second = cluster.pid().unwrap();
    kill_process(Pid::from_raw(second.cast_signed()).unwrap(), Signal::KILL).unwrap();
    let deadline = Instant::now() + PATIENCE;
    while cluster.pid().is_none_or(|pid| pid == second) {
        assert!(Instant::now() < deadline, "it is not started a second time");
        tokio::time::sleep(Duration::from_millis(20)).await;
    }
    until(&server, "/readyz", "200").await;
    let third = Pid::from_raw(cluster.pid().unwrap().cast_signed()).unwrap();
    server.stop().await.unwrap();
    assert!(test_kill_process(third).is_err(), "it ends with its owner");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_stop_ends_the_attempts_to_start_postgres_again() {
    let folder = folder();
    let server = Server::start(Config::local(folder.path())).await.unwrap();
    let cluster = server.cluster().unwrap();
    let lingering = store::database::open(&cluster.url("plimsoll"), 1).await.unwrap();
    let backend: i32 = sqlx::query_scalar("select pg_backend_pid()").fetch_one(&lingering).await.unwrap();
    let backend = Pid::from_raw(backend).unwrap();
    kill_process(backend, Signal::STOP).unwrap();
    kill_process(Pid::from_raw(cluster.pid().unwrap().cast_signed()).unwrap(), Signal::KILL).unwrap();
    until(&server, "/readyz", "503").await;
    server.stop().await.unwrap();
    kill_process(backend, Signal::CONT).unwrap();
    // Nobody holds the directory any more, and what was killed is recovered.
    let again = Server::start(Config::local(folder.path())).await;
    let again = match again {
        Ok(server) => server,
        // The backend has not gone yet.
        Err(error) => {
            assert!(error.to_string().contains("shared memory"), "{error}");
            let deadline = Instant::now() + PATIENCE;
            while test_kill_process(backend).is_ok() {
                assert!(Instant::now() < deadline, "the backend stays");
                tokio::time::sleep(Duration::from_millis(20)).await;
            }
            Server::start(Config::local(folder.path())).await.unwrap()
        }
    };
    again.stop().await.unwrap();
}

#[tokio::test(flavor = "multi_thread")]
async fn a_killed_backend_is_survived() {
    let folder = folder();
    let server = Server::start(Config::local(folder.path())).await.unwrap();
    assert_eq!(status(&upload(&server, "v1.0.0", 0).await), "201");
    let cluster = server.cluster().unwrap();
    let postmaster = cluster.pid();
    let watch = store::database::open(&cluster.url("plimsoll"), 1).await.unwrap();
    let backend: i32 = sqlx::query_scalar("select pg_backend_pid()").fetch_one(&watch).await.unwrap();
    // Postgres throws all its other backends out and recovers.
    kill_process(Pid::from_raw(backend).unwrap(), Signal::KILL).unwrap();
    until(&server, "/readyz", "200").await;
    let deadline = Instant::now() + PATIENCE;
    // Requests that meet the recovery are answered with 503, and none with 500.
    loop {
        let answer = upload(&server, "v1.1.0", 1).await;
        match status(&answer) {
            "200" | "201" => break,
            "503" => assert!(Instant::now() < deadline, "{answer}"),
            _ => panic!("{answer}"),
        }
    }
    assert_eq!(status(&upload(&server, "v1.0.0", 0).await), "200");
    assert_eq!(cluster.pid(), postmaster, "it is the same postmaster");
    server.stop().await.unwrap();
}

/// A database behind a network that can be cut.
pub(crate) struct Link {
    pub(crate) address: std::net::SocketAddr,
    pub(crate) to: std::net::SocketAddr,
    carried: JoinSet<()>,
}

impl Link {
    pub(crate) async fn to(to: std::net::SocketAddr) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let mut link = Self { address: listener.local_addr().unwrap(), to, carried: JoinSet::new() };
        link.carry(listener);
        link
    }

    fn carry(&mut self, listener: TcpListener) {
        let to = self.to;
        self.carried.spawn(async move {
            let mut streams = JoinSet::new();
            while let Ok((mut from, _)) = listener.accept().await {
                streams.spawn(async move {
                    if let Ok(mut onward) = TcpStream::connect(to).await {
                        let _ = tokio::io::copy_bidirectional(&mut from, &mut onward).await;
                    }
                });
            }
        });
    }

    pub(crate) async fn cut(&mut self) {
        self.carried.shutdown().await;
    }

    pub(crate) async fn mend(&mut self) {
        let listener = TcpListener::bind(self.address).await.unwrap();
        self.carry(listener);
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_database_of_somebody_else_s_may_go_and_come_back() {
    let folder = tempfile::tempdir().unwrap();
    let url: url::Url = database().await.expose_secret().parse().unwrap();
    let to = std::net::SocketAddr::from(([127, 0, 0, 1], url.port().unwrap()));
    let mut link = Link::to(to).await;
    let mut through = url.clone();
    through.set_port(Some(link.address.port())).unwrap();
    let config = Config { database_url: Some(through.as_str().into()), ..Config::local(folder.path()) };
    let server = Server::start(config).await.unwrap();
    for day in 0..2 {
        assert_eq!(status(&upload(&server, &format!("v1.{day}.0"), day).await), "201");
        link.cut().await;
        assert_away(&server).await;
        link.mend().await;
        until(&server, "/readyz", "200").await;
        assert_eq!(status(&upload(&server, &format!("v1.{day}.0"), day).await), "200");
    }
    server.stop().await.unwrap();
}

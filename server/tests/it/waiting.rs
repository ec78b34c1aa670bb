//! A database that is not there yet when the server starts: the server waits for it. One that refuses us ends the start.

use std::io::{BufRead as _, BufReader};
use std::net::SocketAddr;
use std::process::Stdio;
use std::time::{Duration, Instant};

use plimsoll_server::config::Config;
use plimsoll_server::postgres::{Cluster, Options};
use plimsoll_server::serve::Server;
use plimsoll_server::store;
use rustix::process::{Pid, Signal, kill_process};
use secrecy::{ExposeSecret as _, SecretString};
use url::Url;

use crate::app::database;
use crate::embedded::folder;
use crate::program::{command, get, program};
use crate::recovery::{Link, status};

const PATIENCE: Duration = Duration::from_secs(60);

/// An address at which nobody listens.
fn free() -> SocketAddr {
    std::net::TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap()
}

fn port(url: &SecretString) -> u16 {
    Url::parse(url.expose_secret()).unwrap().port().unwrap()
}

async fn ask(address: SocketAddr, path: &'static str) -> String {
    tokio::task::spawn_blocking(move || get(&address.to_string(), path)).await.unwrap()
}

async fn listens(address: SocketAddr) {
    let deadline = Instant::now() + PATIENCE;
    while tokio::net::TcpStream::connect(address).await.is_err() {
        assert!(Instant::now() < deadline, "nobody listens on {address}");
        tokio::time::sleep(Duration::from_millis(20)).await;
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_postgres_that_is_started_late_is_waited_for() {
    let folder = folder();
    let options = Options { dir: folder.path().join("postgres"), durable: false };
    let first = Cluster::start(&options).unwrap();
    store::database::create(&first.url("postgres"), "late").await.unwrap();
    let mut url: Url = first.url("late").expose_secret().parse().unwrap();
    let mut link = Link::to(SocketAddr::from(([127, 0, 0, 1], port(&first.url("late"))))).await;
    drop(first);
    link.cut().await;

    url.set_port(Some(link.address.port())).unwrap();
    let listen = free();
    let local = Config::local(folder.path().join("data"));
    let config = Config { listen, database_url: Some(url.as_str().into()), ..local };
    let mut starting = tokio::spawn(Server::start(config));
    listens(listen).await;
    assert_eq!(status(&ask(listen, "/healthz").await), "200");
    for path in ["/readyz", "/", "/api/v1/projects", "/metrics"] {
        let answer = ask(listen, path).await;
        assert_eq!(status(&answer), "503", "{answer}");
        assert!(answer.contains("waits for its database"), "{answer}");
        assert!(answer.to_lowercase().contains("\r\nretry-after: "), "{answer}");
    }
    // Also when there is something that takes connections and is no Postgres that is ready.
    link.mend().await;
    link.cut().await;
    assert!(futures_util::future::poll_immediate(&mut starting).await.is_none(), "it has started without a database");

    let second = Cluster::start(&options).unwrap();
    link.to = SocketAddr::from(([127, 0, 0, 1], port(&second.url("late"))));
    link.mend().await;
    let server = tokio::time::timeout(PATIENCE, starting).await.expect("it waits on").unwrap().unwrap();
    assert_eq!(server.address(), listen);
    for path in ["/healthz", "/readyz", "/api/v1/projects"] {
        let answer = ask(listen, path).await;
        assert_eq!(status(&answer), "200", "{answer}");
    }
    server.stop().await.unwrap();
}

#[test]
fn whoever_waits_says_for_what_and_ends_when_told() {
    let folder = folder();
    let (nobody, listen) = (free(), free());
    let mut command = program();
    command.arg("serve").arg(format!("--listen={listen}")).arg("--data-dir").arg(folder.path());
    command.env("DATABASE_URL", format!("postgres://x:hidden@{nobody}/kept"));
    let mut child = command.stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::piped()).spawn().unwrap();
    let mut said = String::new();
    let mut log = BufReader::new(child.stderr.take().unwrap()).lines();
    for line in log.by_ref() {
        said.push_str(&line.unwrap());
        if said.contains("waiting for the database") {
            break;
        }
    }
    for part in [&format!("kept at {nobody}"), "Connection refused"] {
        assert!(said.contains(part), "{said}");
    }
    assert!(!said.contains("hidden"), "{said}");
    assert_eq!(status(&get(&listen.to_string(), "/healthz")), "200");
    kill_process(Pid::from_child(&child), Signal::TERM).unwrap();
    assert_eq!(child.wait().unwrap().code(), Some(0));
}

#[tokio::test(flavor = "multi_thread")]
async fn what_waiting_does_not_mend_ends_the_start() {
    let folder = folder();
    let url: Url = database().await.expose_secret().parse().unwrap();
    let changed = |change: &dyn Fn(&mut Url)| {
        let mut url = url.clone();
        change(&mut url);
        url.to_string()
    };
    let wrong = [
        (changed(&|url| url.set_password(Some("guessed")).unwrap()), "password authentication failed"),
        (changed(&|url| url.set_path("/nowhere")), "database \"nowhere\" does not exist"),
        (changed(&|url| url.set_query(Some("sslmode=require"))), "TLS"),
        ("plimsoll:guessed@127.0.0.1/plimsoll".to_owned(), "URL"),
    ];
    for (url, why) in wrong {
        let mut command = command(folder.path());
        command.env("DATABASE_URL", &url);
        let output = tokio::task::spawn_blocking(move || command.output().unwrap()).await.unwrap();
        let said = String::from_utf8_lossy(&output.stderr);
        assert_eq!(output.status.code(), Some(2), "{said}");
        assert!(said.contains(why) && said.contains("DATABASE_URL"), "{said}");
        assert!(!said.contains("guessed"), "{said}");
    }
}

//! A server embedded in another program, on a database of somebody else's.

use plimsoll_server::config::Config;
use plimsoll_server::serve::{Server, serve};

use crate::app::database;
use crate::program::get;

#[tokio::test(flavor = "multi_thread")]
async fn a_given_database_is_used_and_no_postgres_is_started() {
    let folder = tempfile::tempdir().unwrap();
    let config = Config { database_url: Some(database().await), ..Config::local(folder.path().join("data")) };
    let one = Server::start(config.clone()).await.unwrap();
    assert!(one.cluster().is_none());
    assert!(!folder.path().join("data/postgres").exists());
    // Two servers share a database.
    let two = Server::start(config).await.unwrap();
    for server in [&one, &two] {
        let address = server.address().to_string();
        let answer = tokio::task::spawn_blocking(move || get(&address, "/readyz")).await.unwrap();
        assert!(answer.starts_with("HTTP/1.1 200"), "{answer}");
    }
    one.stop().await.unwrap();
    two.stop().await.unwrap();
}

#[tokio::test]
async fn a_bad_setting_is_said_at_the_start() {
    let folder = tempfile::tempdir().unwrap();
    let local = Config::local(folder.path());
    let short = Config { tokens: vec!["guess".into()], ..local.clone() };
    assert!(Server::start(short).await.unwrap_err().to_string().contains("PLIMSOLL_TOKENS"));
    let nowhere = Config { public_url: Some("plimsoll.example".into()), ..local };
    assert!(Server::start(nowhere).await.unwrap_err().to_string().contains("plimsoll.example"));
}

#[tokio::test]
async fn it_can_be_stopped_while_it_starts() {
    let folder = tempfile::tempdir().unwrap();
    // A database that takes connections and says nothing.
    let mute = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
    let url = format!("postgres://x@{}/x", mute.local_addr().unwrap());
    let config = Config { database_url: Some(url.into()), ..Config::local(folder.path()) };
    serve(config, |_| panic!("it cannot have started"), std::future::ready(())).await.unwrap();
}

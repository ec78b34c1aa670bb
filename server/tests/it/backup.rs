//! Backup and restore as docs/operations.md shows them, with the real programs.

use std::path::{Path, PathBuf};
use std::process::Command;

use plimsoll_server::config::Config;
use plimsoll_server::serve::Server;
use secrecy::ExposeSecret as _;

use crate::app::release;
use crate::embedded::folder;
use crate::program::ask;

/// A client program of the Postgres that the tests run.
fn client(name: &str) -> PathBuf {
    let given = std::env::var_os("PG_BIN").map(PathBuf::from);
    let places = std::fs::read_dir("/usr/lib/postgresql").into_iter().flatten().flatten();
    let mut places: Vec<PathBuf> = places.map(|place| place.path().join("bin")).collect();
    places.sort();
    let found = given.into_iter().chain(places.into_iter().rev()).map(|dir| dir.join(name)).find(|path| path.exists());
    found.unwrap_or_else(|| name.into())
}

/// With the variables that the documentation sets.
fn run(data_dir: &Path, name: &str, arguments: &[&str]) {
    let postgres = data_dir.join("postgres");
    let pid_file = std::fs::read_to_string(postgres.join("data/postmaster.pid")).unwrap();
    let mut command = Command::new(client(name));
    command.env("PGHOST", postgres.join("socket")).env("PGPORT", pid_file.lines().nth(3).unwrap().trim());
    command
        .env("PGUSER", "plimsoll")
        .env("PGPASSWORD", std::fs::read_to_string(postgres.join("password")).unwrap().trim());
    let output = command.args(arguments).output().unwrap();
    assert!(output.status.success(), "{name}: {}", String::from_utf8_lossy(&output.stderr));
}

async fn send(server: &Server, method: &str, path: &str, body: &str) -> String {
    let address = server.address().to_string();
    let request = format!(
        "{method} {path} HTTP/1.1\r\nHost: plimsoll\r\nConnection: close\r\nAuthorization: Bearer {}\r\n\
         Content-Length: {}\r\n\r\n{body}",
        server.token().expose_secret(),
        body.len(),
    );
    let answer = tokio::task::spawn_blocking(move || ask(&address, &request)).await.unwrap();
    let (head, body) = answer.split_once("\r\n\r\n").unwrap();
    assert!(head.starts_with("HTTP/1.1 20"), "{answer}");
    // Of a page what is about the snapshot, not who looks at it.
    body.find("<main").map_or(body, |at| &body[at..]).to_owned()
}

#[tokio::test(flavor = "multi_thread")]
async fn a_dump_brings_back_the_same_snapshots_in_a_new_database_and_over_an_old_one() {
    let (one, two) = (folder(), folder());
    let local = |dir: &Path| Config { durable: false, ..Config::local(dir) };
    let server = Server::start(local(one.path())).await.unwrap();
    let reports = [release("v1.0.0", 0).report(), release("v1.1.0", 1).report()];
    for report in &reports {
        send(&server, "POST", "/api/v1/snapshots", &report.to_json()).await;
    }
    let paths = reports.each_ref().map(|report| format!("/api/v1/snapshots/{}", report.run_id));
    let pages = reports.each_ref().map(|report| format!("/sentiment/snapshots/{}", report.run_id));
    let mut before = Vec::new();
    for path in paths.iter().chain(&pages) {
        before.push(send(&server, "GET", path, "").await);
    }
    let dump = one.path().join("plimsoll.dump");
    let dump = dump.to_str().unwrap();
    run(one.path(), "pg_dump", &["--format=custom", "--file", dump, "plimsoll"]);

    // Into a new database of a Postgres of somebody's.
    run(one.path(), "createdb", &["restored"]);
    run(one.path(), "pg_restore", &["--exit-on-error", "--no-owner", "--dbname=restored", dump]);
    let url = server.cluster().unwrap().url("restored");
    let restored = Server::start(Config { database_url: Some(url), ..local(two.path()) }).await.unwrap();
    for (path, before) in paths.iter().chain(&pages).zip(&before) {
        assert_eq!(&send(&restored, "GET", path, "").await, before, "{path}");
    }
    // It goes on from there.
    send(&restored, "POST", "/api/v1/snapshots", &release("v1.2.0", 2).report().to_json()).await;
    restored.stop().await.unwrap();

    // Over what the embedded cluster of another host holds, while its server runs; it then starts again.
    let three = folder();
    let other = Server::start(local(three.path())).await.unwrap();
    send(&other, "POST", "/api/v1/snapshots", &release("v9.0.0", 9).report().to_json()).await;
    let over = ["--clean", "--if-exists", "--single-transaction", "--no-owner", "--dbname=plimsoll", dump];
    run(three.path(), "pg_restore", &over);
    other.stop().await.unwrap();
    let other = Server::start(local(three.path())).await.unwrap();
    for (path, before) in paths.iter().zip(&before) {
        assert_eq!(&send(&other, "GET", path, "").await, before, "{path}");
    }
    other.stop().await.unwrap();
    server.stop().await.unwrap();
}

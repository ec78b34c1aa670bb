//! The embedded Postgres on a directory of its own.

use std::fs;
use std::os::unix::fs::PermissionsExt as _;
use std::path::Path;

use plimsoll_server::postgres::{Cluster, Options, PostgresError};
use plimsoll_server::store::{self, StoreError};
use secrecy::ExposeSecret as _;
use tempfile::TempDir;

/// A folder that the user of Postgres may pass.
pub(crate) fn folder() -> TempDir {
    let folder = TempDir::new_in("/tmp").unwrap();
    fs::set_permissions(folder.path(), fs::Permissions::from_mode(0o711)).unwrap();
    folder
}

fn options(folder: &TempDir) -> Options {
    Options { dir: folder.path().join("postgres"), durable: false }
}

fn start(folder: &TempDir) -> Cluster {
    Cluster::start(&options(folder)).expect("Postgres starts")
}

#[tokio::test]
async fn a_directory_has_one_owner_and_keeps_what_is_written() {
    let folder = folder();
    let first = start(&folder);
    let mode = |path: &Path| fs::metadata(path).unwrap().permissions().mode() & 0o777;
    assert_eq!(mode(&first.dir().join("password")), 0o600);
    assert_eq!(mode(&first.dir().join("socket")), 0o700);
    let pool = store::database::open(&first.url("postgres"), 1).await.unwrap();
    sqlx::raw_sql("create table kept (x int); insert into kept values (7)").execute(&pool).await.unwrap();
    let addresses: String = sqlx::query_scalar("show listen_addresses").fetch_one(&pool).await.unwrap();
    assert_eq!(addresses, "127.0.0.1");
    pool.close().await;
    // The password is asked for.
    let address = first.url("postgres");
    let (_, place) = address.expose_secret().rsplit_once('@').unwrap();
    let refused = store::database::open(&format!("postgres://plimsoll:wrong@{place}").into(), 1).await.unwrap_err();
    let StoreError::Database(error) = &refused else { panic!("{refused}") };
    // invalid_password
    assert_eq!(error.as_database_error().and_then(|e| e.code()).as_deref(), Some("28P01"), "{refused}");

    let second = Cluster::start(&options(&folder)).expect_err("it is in use");
    assert!(matches!(&second, PostgresError::InUse { owner: Some(pid), .. } if *pid == std::process::id()), "{second}");
    assert!(second.to_string().contains("is in use by another plimsoll"), "{second}");

    first.stop();
    assert_eq!(first.pid(), None);
    drop(first);
    let third = start(&folder);
    let pool = store::database::open(&third.url("postgres"), 1).await.unwrap();
    let kept: i32 = sqlx::query_scalar("select x from kept").fetch_one(&pool).await.unwrap();
    assert_eq!(kept, 7);
}

#[test]
fn a_pid_file_that_names_somebody_else_or_nobody_is_stale() {
    let folder = folder();
    let cluster = start(&folder);
    let pid_file = cluster.dir().join("data/postmaster.pid");
    let text = fs::read_to_string(&pid_file).unwrap();
    drop(cluster);
    // As after a crash of the host, when the pid has gone to another process: this one.
    let rest = text.split_once('\n').unwrap().1;
    fs::write(&pid_file, format!("{}\n{rest}", std::process::id())).unwrap();
    drop(start(&folder));
    // As after a crash or a full disk before it was written.
    for torn in ["", "not a pid\n"] {
        fs::write(&pid_file, torn).unwrap();
        drop(start(&folder));
    }
}

#[test]
fn an_initdb_that_was_cut_short_is_done_again() {
    let folder = folder();
    let half = folder.path().join("postgres/data.new/base");
    fs::create_dir_all(&half).unwrap();
    fs::set_permissions(folder.path().join("postgres"), fs::Permissions::from_mode(0o711)).unwrap();
    // Written, but never to the disk.
    fs::write(folder.path().join("postgres/password"), "").unwrap();
    let cluster = start(&folder);
    assert!(!half.exists());
    assert_eq!(fs::read_to_string(cluster.dir().join("password")).unwrap().trim().len(), 64);
}

#[test]
fn what_cannot_work_is_said_plainly() {
    let folder = folder();
    let cluster = start(&folder);
    let dir = cluster.dir().to_owned();
    drop(cluster);
    fs::rename(dir.join("password"), folder.path().join("elsewhere")).unwrap();
    let error = Cluster::start(&options(&folder)).expect_err("no password");
    assert!(matches!(error, PostgresError::NoPassword { .. }), "{error}");

    fs::rename(folder.path().join("elsewhere"), dir.join("password")).unwrap();
    fs::write(dir.join("data/PG_VERSION"), "9\n").unwrap();
    let error = Cluster::start(&options(&folder)).expect_err("another version");
    assert!(error.to_string().contains("of Postgres 9"), "{error}");

    // Only root's Postgres runs as somebody else.
    if rustix::process::geteuid().is_root() {
        let link = folder.path().join("link");
        std::os::unix::fs::symlink(&dir, &link).unwrap();
        let foreign = folder.path().join("foreign");
        fs::create_dir(&foreign).unwrap();
        std::os::unix::fs::chown(&foreign, Some(54_321), None).unwrap();
        for (dir, why) in [(link, "is a symbolic link"), (foreign, "belongs to somebody else")] {
            let error = Cluster::start(&Options { dir, durable: false }).expect_err(why);
            assert!(matches!(error, PostgresError::Foreign { .. }) && error.to_string().contains(why), "{error}");
        }

        fs::set_permissions(folder.path(), fs::Permissions::from_mode(0o700)).unwrap();
        let error = Cluster::start(&options(&folder)).expect_err("not reachable");
        let blocked = folder.path().canonicalize().unwrap();
        assert!(error.to_string().contains(&format!("may not enter {}", blocked.display())), "{error}");
    }
}

//! Migrations keep what is there, and leave an older program beside the newer schema its work.

use std::time::Duration;

use plimsoll_domain::report::Report;
use plimsoll_server::access::hash;
use plimsoll_server::config::Config;
use plimsoll_server::serve::Server;
use plimsoll_server::store::{self, Pool};
use plimsoll_server::tasks::pack;
use sqlx::migrate::Migrator;
use sqlx::types::Json;

use crate::app::{database, release};
use crate::program::get;

static MIGRATIONS: Migrator = sqlx::migrate!("../migrations");

/// A database with the schema of an older version, or an empty one by 0.
async fn at_version(version: i64) -> (Pool, secrecy::SecretString) {
    let url = database().await;
    let pool = store::database::open(&url, 4).await.unwrap();
    sqlx::raw_sql("drop schema public cascade; create schema public").execute(&pool).await.unwrap();
    if version > 0 {
        MIGRATIONS.run_to(version, &pool).await.unwrap();
    }
    (pool, url)
}

/// What version 0.1 writes for an upload, word for word.
async fn upload_as_0_1(pool: &Pool, report: &Report) {
    let packed = pack::pack(report).unwrap();
    let figures = plimsoll_domain::figures::Figures::of(report);
    let soak = &figures.stability.as_ref().unwrap().step;
    let testbed = report.testbed.fingerprint();
    sqlx::query("insert into projects (slug, policy) values ($1, $2) on conflict (slug) do nothing")
        .bind(report.project.as_str())
        .bind(Json(plimsoll_domain::policy::Policy::default()))
        .execute(pool)
        .await
        .unwrap();
    sqlx::query(
        "insert into testbeds (fingerprint, label, facts) values ($1, $2, $3) on conflict (fingerprint) do nothing",
    )
    .bind(testbed.as_str())
    .bind(report.testbed.label())
    .bind(Json(&report.testbed))
    .execute(pool)
    .await
    .unwrap();
    sqlx::query(
        "insert into snapshots (run_id, project, testbed, plan_digest, revision, label, commit_sha, tag, branch,
             pull_request, started_at, finished_at, status, valid, accepted, figures, stability_workers, tps, p50_ms,
             p99_ms, p99_low_ms, p99_high_ms, error_rate, capacity_tps, knee_workers, capacity_at_workers)
         values ($1, $2, $3, $4, $5, $6, null, $7, null, null, $8::timestamptz, $9::timestamptz, 'complete', true, true,
             $10, $11, $12, $13, $14, null, null, $15, $16, $17, $17)
         on conflict (run_id) do nothing",
    )
    .bind(report.run_id.0)
    .bind(report.project.as_str())
    .bind(testbed.as_str())
    .bind(report.plan_digest.as_str())
    .bind(Json(&report.revision))
    .bind(report.revision.label())
    .bind(report.revision.tag.as_deref())
    .bind(sqlx::types::chrono::DateTime::from_timestamp(report.started_at.as_second(), 0).unwrap())
    .bind(sqlx::types::chrono::DateTime::from_timestamp(report.finished_at.as_second(), 0).unwrap())
    .bind(Json(&figures))
    .bind(soak.workers.cast_signed())
    .bind(soak.tps)
    .bind(soak.p50_ms)
    .bind(soak.p99_ms)
    .bind(soak.error_rate)
    .bind(figures.capacity.map(|capacity| capacity.tps))
    .bind(figures.capacity.map(|capacity| capacity.workers.cast_signed()))
    .execute(pool)
    .await
    .unwrap();
    sqlx::query("insert into reports (run_id, sha256, bytes, body) values ($1, $2, $3, $4)")
        .bind(report.run_id.0)
        .bind(&packed.sha256[..])
        .bind(packed.bytes.cast_signed())
        .bind(&packed.body[..])
        .execute(pool)
        .await
        .unwrap();
    let policy = plimsoll_domain::policy::Policy::default();
    let comparison = plimsoll_domain::verdict::judge(None, report, &policy, &plimsoll_domain::noise::Noise::default());
    sqlx::query("insert into verdicts (run_id, verdict, baseline_run_ids, comparison) values ($1, $2, $3, $4)")
        .bind(report.run_id.0)
        .bind(comparison.verdict.name())
        .bind(Vec::<sqlx::types::Uuid>::new())
        .bind(Json(&comparison))
        .execute(pool)
        .await
        .unwrap();
}

/// What version 0.1 does at its start.
async fn start_as_0_1(pool: &Pool, name: &str, token: &str) {
    sqlx::query(
        "insert into tokens (name, sha256, scope) values ($1, $2, 'admin')
         on conflict (name) do update set sha256 = excluded.sha256, created_at = now()
         where tokens.sha256 <> excluded.sha256",
    )
    .bind(name)
    .bind(&hash(token)[..])
    .execute(pool)
    .await
    .unwrap();
    let known: Vec<(Vec<u8>, bool)> =
        sqlx::query_as("select sha256, scope = 'admin' as admin from tokens limit 1000").fetch_all(pool).await.unwrap();
    assert!(known.contains(&(hash(token).to_vec(), true)));
}

#[tokio::test(flavor = "multi_thread")]
async fn populated_tables_of_each_older_version_are_kept_and_read() {
    for version in MIGRATIONS.iter().map(|migration| migration.version).filter(|version| *version < 3) {
        let (pool, url) = at_version(version).await;
        let report = release("v1.0.0", 0).report();
        upload_as_0_1(&pool, &report).await;
        let scope = if version == 1 { "upload" } else { "admin" };
        sqlx::query("insert into tokens (name, sha256, scope) values ('ci', $1, $2)")
            .bind(&hash("a-token-of-long-ago")[..])
            .bind(scope)
            .execute(&pool)
            .await
            .unwrap();
        pool.close().await;

        let folder = tempfile::tempdir().unwrap();
        let config = Config { database_url: Some(url.clone()), ..Config::local(folder.path()) };
        let server = Server::start(config).await.unwrap();
        let address = server.address().to_string();
        let pages = tokio::task::spawn_blocking(move || {
            ["/readyz".to_owned(), format!("/sentiment/snapshots/{}", report.run_id), "/sentiment/history".to_owned()]
                .map(|path| get(&address, &path))
        });
        for page in pages.await.unwrap() {
            assert!(page.starts_with("HTTP/1.1 200"), "from {version}: {page}");
        }
        let pool = store::database::open(&url, 1).await.unwrap();
        let stored = store::reports::get(&pool, report.run_id).await.unwrap().unwrap();
        assert_eq!(pack::unpack(&stored).unwrap(), report, "from {version}");
        let token = store::tokens::in_use(&pool, &hash("a-token-of-long-ago")).await.unwrap().unwrap();
        assert_eq!((token.name.as_str(), token.grant.scope.name()), ("ci", scope), "from {version}");
        server.stop().await.unwrap();
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn an_older_server_works_on_the_newest_schema() {
    let (pool, url) = at_version(2).await;
    start_as_0_1(&pool, "server a", "the-first-of-its-tokens").await;
    store::migrate::run(&pool).await.unwrap();
    // It goes on, and starts again with a new token.
    start_as_0_1(&pool, "server a", "the-second-of-its-tokens").await;
    let report = release("v1.0.0", 0).report();
    upload_as_0_1(&pool, &report).await;
    // The new one beside it reads what it wrote.
    let folder = tempfile::tempdir().unwrap();
    let config = Config { database_url: Some(url), ..Config::local(folder.path()) };
    let server = Server::start(config).await.unwrap();
    let address = server.address().to_string();
    let path = format!("/api/v1/snapshots/{}", report.run_id);
    let answer = tokio::task::spawn_blocking(move || get(&address, &path)).await.unwrap();
    assert!(answer.starts_with("HTTP/1.1 200"), "{answer}");
    server.stop().await.unwrap();
}

#[tokio::test]
async fn a_schema_newer_than_the_program_is_no_hindrance() {
    let (pool, _) = at_version(0).await;
    store::migrate::run(&pool).await.unwrap();
    sqlx::raw_sql(
        "insert into _sqlx_migrations (version, description, success, checksum, execution_time)
         values (9999, 'of a newer version', true, '\\x00', 1)",
    )
    .execute(&pool)
    .await
    .unwrap();
    store::migrate::run(&pool).await.unwrap();
    assert!(store::migrate::is_current(&pool).await.unwrap());
}

#[tokio::test(flavor = "multi_thread")]
async fn several_servers_may_start_on_an_empty_database_at_once() {
    let (pool, url) = at_version(0).await;
    let start = || async {
        let folder = tempfile::tempdir().unwrap();
        let config = Config { database_url: Some(url.clone()), ..Config::local(folder.path()) };
        Server::start(config).await.unwrap().stop().await.unwrap();
    };
    tokio::join!(start(), start(), start(), start());
    let applied: i64 = sqlx::query_scalar("select count(*) from _sqlx_migrations").fetch_one(&pool).await.unwrap();
    assert_eq!(usize::try_from(applied).unwrap(), MIGRATIONS.iter().count());
}

/// Who waits for a lock lets nobody pass: the migration gives way and tries again.
#[tokio::test(flavor = "multi_thread")]
async fn a_migration_that_finds_a_table_in_use_gives_way() {
    let (pool, _) = at_version(2).await;
    let mut reader = pool.begin().await.unwrap();
    sqlx::query("select count(*) from projects").execute(&mut *reader).await.unwrap();
    let migration = tokio::spawn({
        let pool = pool.clone();
        async move { store::migrate::run(&pool).await }
    });
    let waits = "select exists (select 1 from pg_locks where relation = 'projects'::regclass and not granted)";
    while !sqlx::query_scalar::<_, bool>(waits).fetch_one(&pool).await.unwrap() {
        assert!(!migration.is_finished(), "it did not wait");
        tokio::time::sleep(Duration::from_millis(5)).await;
    }
    // A request behind it is held up for the bound on locks at most, though the reader stays.
    let behind = sqlx::query("select count(*) from projects").execute(&pool);
    tokio::time::timeout(Duration::from_secs(8), behind).await.expect("it gave way").unwrap();
    assert!(!store::migrate::is_current(&pool).await.unwrap());
    reader.rollback().await.unwrap();
    migration.await.unwrap().unwrap();
    assert!(store::migrate::is_current(&pool).await.unwrap());
}

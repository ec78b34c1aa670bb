//! What those who run a server look at: metrics, the doctor, the log.

use std::collections::BTreeSet;
use std::io::{BufRead as _, BufReader, Read as _};
use std::os::unix::fs::PermissionsExt as _;
use std::process::Stdio;
use std::time::Duration;

use axum::body::{Body, to_bytes};
use axum::http::Request;
use plimsoll_server::router::router;
use plimsoll_server::state::{AppState, Settings};
use plimsoll_server::store;
use rustix::process::{Pid, Signal, kill_process};
use secrecy::ExposeSecret as _;
use serde_json::Value;
use tower::ServiceExt as _;

use crate::app::{App, database, release};
use crate::embedded::folder;
use crate::program::{ask, program};

async fn scrape(state: &AppState) -> String {
    let request = Request::get("/metrics").body(Body::empty()).unwrap();
    let answer = router(state.clone()).oneshot(request).await.unwrap();
    assert_eq!(answer.headers()["content-type"], "text/plain; version=0.0.4; charset=utf-8");
    String::from_utf8(to_bytes(answer.into_body(), 1 << 20).await.unwrap().to_vec()).unwrap()
}

/// Every line is a comment of a known kind or a sample of a described series, and no series comes twice.
fn check_format(page: &str) {
    let (mut described, mut typed, mut series) = (BTreeSet::new(), BTreeSet::new(), BTreeSet::new());
    for line in page.lines().filter(|line| !line.is_empty()) {
        if let Some(help) = line.strip_prefix("# HELP ") {
            let (name, text) = help.split_once(' ').unwrap();
            assert!(!text.is_empty() && described.insert(name), "{line}");
        } else if let Some(kind) = line.strip_prefix("# TYPE ") {
            let (name, kind) = kind.split_once(' ').unwrap();
            assert!(["counter", "gauge", "histogram"].contains(&kind) && typed.insert(name), "{line}");
        } else {
            let (name, value) = line.rsplit_once(' ').unwrap();
            assert!(value.parse::<f64>().is_ok_and(f64::is_finite), "{line}");
            assert!(series.insert(name), "twice: {line}");
            let family = name.split('{').next().unwrap();
            let family =
                ["_bucket", "_sum", "_count"].iter().find_map(|end| family.strip_suffix(end)).unwrap_or(family);
            assert!(family.starts_with("plimsoll_") && described.contains(family) && typed.contains(family), "{line}");
        }
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn metrics_tell_requests_queue_and_verdicts_without_a_series_for_what_clients_write() {
    let app = App::new().await;
    app.upload(&release("v1.0.0", 0).report()).await;
    for n in 0..20 {
        app.get(&format!("/nothing/here/{n}")).await;
        app.get(&format!("/api/v1/snapshots/{}", plimsoll_domain::ids::RunId(uuid::Uuid::from_u128(n)))).await;
    }
    let page = app.read("/metrics").await;
    assert_eq!(page.status.as_u16(), 200);
    assert_eq!(app.get("/metrics").await.status.as_u16(), 401);

    sqlx::raw_sql(
        "insert into jobs (run_id, project, kind, state, priority, revision, requested_by, take_by, created_at) values
         (gen_random_uuid(), 'sentiment', 'measure', 'queued', 1, '{}', 'x', now(), now() - interval '90 seconds'),
         (gen_random_uuid(), 'sentiment', 'measure', 'queued', 1, '{}', 'x', now(), now())",
    )
    .execute(&app.pool)
    .await
    .unwrap();
    // Within five seconds the database is not asked again.
    let state = AppState::new(app.pool.clone(), Settings { open_metrics: true, ..Settings::default() });
    state.metrics().verdict("pass");
    for _ in 0..3 {
        router(state.clone()).oneshot(Request::get("/healthz").body(Body::empty()).unwrap()).await.unwrap();
        let odd = Request::builder().method("BREW").uri("/coffee/pot/of/mine?token=1").body(Body::empty()).unwrap();
        router(state.clone()).oneshot(odd).await.unwrap();
    }
    let page = scrape(&state).await;
    check_format(&page);
    for sample in [
        "plimsoll_jobs{state=\"queued\"} 2",
        "plimsoll_verdicts_total{verdict=\"pass\"} 1",
        "plimsoll_http_requests_total{method=\"GET\",route=\"/healthz\",status=\"2xx\"} 3",
        "plimsoll_http_requests_total{method=\"other\",route=\"none\",status=\"4xx\"} 3",
        "plimsoll_http_request_duration_seconds_count{method=\"GET\",route=\"/healthz\",status=\"2xx\"} 3",
        "plimsoll_database_up 1",
        "plimsoll_schema_current 1",
        "plimsoll_db_pool_max_connections 4",
    ] {
        assert!(page.lines().any(|line| line == sample), "{sample} is not in\n{page}");
    }
    let age = page.lines().find_map(|line| line.strip_prefix("plimsoll_jobs_oldest_age_seconds{state=\"queued\"} "));
    assert!(age.unwrap().parse::<f64>().unwrap() >= 90.0);
    sqlx::raw_sql("delete from jobs").execute(&app.pool).await.unwrap();
    assert!(scrape(&state).await.contains("plimsoll_jobs{state=\"queued\"} 2"), "from the cache");

    // A database that is away is said, and nothing of it is made up.
    let away = store::database::open(&database().await, 1).await.unwrap();
    let state = AppState::new(away.clone(), Settings { open_metrics: true, ..Settings::default() });
    away.close().await;
    let page = scrape(&state).await;
    check_format(&page);
    assert!(page.contains("plimsoll_database_up 0") && !page.contains("plimsoll_jobs"), "{page}");
}

#[tokio::test(flavor = "multi_thread")]
async fn the_doctor_names_what_is_wrong_and_what_to_do() {
    let app = App::new().await;
    let found = app.read("/api/v1/doctor").await;
    let level = |document: &Value, name: &str| {
        let checks = document["checks"].as_array().unwrap();
        checks.iter().find(|check| check["name"] == name).map(|check| check["level"].as_str().unwrap().to_owned())
    };
    assert_eq!((found.status.as_u16(), &found.json["sound"]), (200, &true.into()), "{found:?}");
    for name in ["database", "migrations", "clock", "connections", "queue", "leases", "webhooks", "public URL"] {
        assert_eq!(level(&found.json, name).as_deref(), Some("ok"), "{name}: {found:?}");
    }
    assert_eq!(app.get("/api/v1/doctor").await.status.as_u16(), 401);

    sqlx::raw_sql(
        "insert into projects (slug, policy) values ('p', '{}');
         insert into runners (id, name, labels, version, projects) values (gen_random_uuid(), 'r', '{}', '1', '{p}');
         insert into jobs (run_id, project, kind, state, priority, revision, requested_by, take_by, created_at, lease,
                           lease_expires_at) values
         (gen_random_uuid(), 'p', 'measure', 'queued', 1, '{}', 'x', now(), now() - interval '2 hours', null, null),
         (gen_random_uuid(), 'p', 'measure', 'running', 1, '{}', 'x', now(), now(), gen_random_uuid(),
          now() - interval '5 minutes');
         delete from _sqlx_migrations where version = 3",
    )
    .execute(&app.pool)
    .await
    .unwrap();
    let found = app.read("/api/v1/doctor").await.json;
    assert_eq!(found["sound"], false);
    for (name, wanted) in [("migrations", "failed"), ("queue", "warning"), ("leases", "failed")] {
        assert_eq!(level(&found, name).as_deref(), Some(wanted), "{found}");
    }
    let advised = |check: &Value| check["level"] == "ok" || check["advice"].is_string();
    assert!(found["checks"].as_array().unwrap().iter().all(advised), "{found}");
}

#[tokio::test(flavor = "multi_thread")]
async fn the_doctor_s_command_ends_with_1_when_something_failed() {
    let (folder, url) = (folder(), database().await);
    let token = folder.path().join("token");
    std::fs::write(&token, "a secret").unwrap();
    std::fs::set_permissions(&token, std::fs::Permissions::from_mode(0o600)).unwrap();
    let run = |url: Option<String>, json: bool| {
        let mut command = program();
        command.arg("doctor").arg("--data-dir").arg(folder.path()).args(json.then_some("--json"));
        command.envs(url.map(|url| ("DATABASE_URL", url)));
        async { tokio::task::spawn_blocking(move || command.output().unwrap()).await.unwrap() }
    };
    let well = run(Some(url.expose_secret().to_owned()), true).await;
    let document: Value = serde_json::from_slice(&well.stdout).unwrap();
    assert_eq!((well.status.code(), &document["sound"]), (Some(0), &true.into()), "{document}");
    let none = run(None, false).await;
    let said = String::from_utf8_lossy(&none.stdout);
    assert!(
        none.status.code() == Some(1) && said.contains("failed   database: no server has run with --data-dir"),
        "{said}"
    );
    std::fs::set_permissions(&token, std::fs::Permissions::from_mode(0o644)).unwrap();
    let open = run(Some(url.expose_secret().to_owned()), false).await;
    let said = String::from_utf8_lossy(&open.stdout);
    assert!(open.status.code() == Some(1) && said.contains("failed   secrets: others may read"), "{said}");
}

#[tokio::test(flavor = "multi_thread")]
async fn the_log_has_request_and_run_and_no_secret() {
    for level in ["info", "debug", "trace"] {
        let (folder, url) = (folder(), database().await);
        let mut command = program();
        command.args(["--log-format", "json", "serve", "--listen", "127.0.0.1:0", "--data-dir"]).arg(folder.path());
        command.env("DATABASE_URL", url.expose_secret()).env("PLIMSOLL_TOKENS", "configured-secret-token");
        command.env("RUST_LOG", level).stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::piped());
        let mut child = command.spawn().unwrap();
        let mut log = child.stderr.take().unwrap();
        let log = std::thread::spawn(move || {
            let mut text = String::new();
            let _ = log.read_to_string(&mut text);
            text
        });
        let mut line = String::new();
        BufReader::new(child.stdout.take().unwrap()).read_line(&mut line).unwrap();
        let address = line.trim().strip_prefix("listening on http://").unwrap().to_owned();
        let own = std::fs::read_to_string(folder.path().join("token")).unwrap().trim().to_owned();
        let report = release("v1.0.0", 0).report();
        let run = report.run_id;
        let said = tokio::task::spawn_blocking(move || {
            let end = format!("Host: {address}\r\nConnection: close\r\n");
            let form = "token=a-secret-in-a-form";
            let body = report.to_json();
            let requests = [
                format!(
                    "POST /api/v1/snapshots HTTP/1.1\r\n{end}Authorization: Bearer configured-secret-token\r\n\
                     Content-Length: {}\r\n\r\n{body}",
                    body.len()
                ),
                format!(
                    "GET /api/v1/snapshots/{run} HTTP/1.1\r\n{end}Authorization: Bearer {own}\r\nX-Request-Id: my-own-id\r\n\r\n"
                ),
                format!("GET /api/v1/projects HTTP/1.1\r\n{end}Authorization: Bearer a-wrong-secret-token\r\n\r\n"),
                format!("GET /api/v1/projects HTTP/1.1\r\n{end}Authorization: Basic dXNlcjpzZWNyZXQ=\r\n\r\n"),
                format!(
                    "GET / HTTP/1.1\r\n{end}Cookie: __Host-plimsoll=a-secret-cookie; plimsoll=a-secret-cookie\r\n\r\n"
                ),
                format!("GET /sign-in/github/callback?code=a-secret-code&state=a-secret-state HTTP/1.1\r\n{end}\r\n"),
                format!(
                    "POST /sign-in HTTP/1.1\r\n{end}Content-Type: application/x-www-form-urlencoded\r\n\
                     Origin: http://{address}\r\nContent-Length: {}\r\n\r\n{form}",
                    form.len()
                ),
            ];
            (requests.map(|request| ask(&address, &request)), own)
        });
        let (answers, own) = tokio::time::timeout(Duration::from_secs(120), said).await.unwrap().unwrap();
        assert!(answers[0].starts_with("HTTP/1.1 201") && answers[1].starts_with("HTTP/1.1 200"), "{answers:?}");
        kill_process(Pid::from_child(&child), Signal::TERM).unwrap();
        assert!(child.wait().unwrap().success());
        let log = log.join().unwrap();
        let password = url.expose_secret().split(['@', ':']).nth(2).unwrap();
        for secret in [
            &own,
            password,
            "configured-secret-token",
            "a-wrong-secret-token",
            "dXNlcjpzZWNyZXQ=",
            "a-secret-cookie",
            "a-secret-code",
            "a-secret-state",
            "a-secret-in-a-form",
        ] {
            let at = log.lines().find(|line| line.contains(secret));
            assert!(at.is_none(), "{level}: {secret} in {}", at.unwrap_or_default());
        }
        let lines: Vec<Value> = log.lines().map(|line| serde_json::from_str(line).expect(line)).collect();
        let stored = lines.iter().find(|line| line["message"] == "stored").unwrap();
        assert_eq!(
            (&stored["run_id"], &stored["span"]["route"]),
            (&run.to_string().into(), &"/api/v1/snapshots".into())
        );
        assert!(stored["span"]["request_id"].is_string() && stored["span"]["caller"] == "token PLIMSOLL_TOKENS");
        if level == "debug" {
            let of_ours = |line: &&Value| line["span"]["request_id"] == "my-own-id";
            assert!(lines.iter().filter(of_ours).any(|line| line["span"]["run"] == run.to_string()), "{log}");
        }
    }
}

//! Tokens, members and visibility: by the API, by the command line beside a server that runs, and what is remembered.

use std::process::{Command, Output, Stdio};

use axum::body::Body;
use axum::extract::ConnectInfo;
use axum::http::Request;
use plimsoll_server::access::{Caller, Grant, Scope, hash, session};
use plimsoll_server::postgres::{Cluster, Options};
use plimsoll_server::state::{AppState, Settings};
use plimsoll_server::store::sessions::SignedIn;
use plimsoll_server::store::{self, audit, members, tokens};
use plimsoll_server::tasks::prune;
use serde_json::{Value, json};
use tower::ServiceExt as _;

use crate::app::{Answer, App, release};
use crate::embedded::folder;

async fn by(app: &App, token: &str, method: &str, path: &str, body: Value) -> Answer {
    let request = Request::builder().method(method).uri(path).header("content-type", "application/json");
    let request = request.header("authorization", format!("Bearer {token}"));
    app.send(request.body(Body::from(body.to_string())).unwrap()).await
}

#[tokio::test]
async fn a_token_is_shown_once_works_in_its_place_and_ends_when_it_is_revoked() {
    let app = App::new().await;
    app.upload(&release("v1.0.0", 0).report()).await;
    let wanted = json!({"name": "ci", "scope": "admin", "project": "sentiment", "expires_in_s": 3600});
    let made = app.change("POST", "/api/v1/tokens", wanted.clone()).await;
    assert_eq!(made.status.as_u16(), 201, "{made:?}");
    let token = made.json["token"].as_str().unwrap().to_owned();
    assert!(token.starts_with("plim_") && token.len() == 5 + 64, "{token}");
    let id = made.json["id"].as_str().unwrap().to_owned();
    assert!(!app.read("/api/v1/tokens").await.json.to_string().contains(&token));
    assert_eq!(app.change("POST", "/api/v1/tokens", wanted).await.status.as_u16(), 409);

    // It administers its project, and only that.
    let policy = json!({"p99_increase": 0.1, "capacity_decrease": 0.05, "error_rate_points": 0.001});
    for (method, path, body, status) in [
        ("PUT", "/api/v1/projects/sentiment/policy", policy.clone(), 200),
        ("PUT", "/api/v1/projects/other/policy", policy, 404),
        ("POST", "/api/v1/tokens", json!({"name": "b", "scope": "read", "project": "sentiment"}), 201),
        ("POST", "/api/v1/tokens", json!({"name": "c", "scope": "read", "project": "other"}), 403),
        ("POST", "/api/v1/tokens", json!({"name": "d", "scope": "read"}), 403),
        (
            "POST",
            "/api/v1/tokens",
            json!({"name": "e", "scope": "read", "project": "sentiment", "expires_in_s": 5}),
            422,
        ),
        ("POST", "/api/v1/tokens", json!({"name": "server x", "scope": "read", "project": "sentiment"}), 422),
        ("GET", "/api/v1/audit", Value::Null, 403),
        ("GET", "/api/v1/audit?project=other", Value::Null, 403),
        ("GET", "/api/v1/audit?project=sentiment", Value::Null, 200),
        ("PUT", "/api/v1/projects/sentiment/visibility", json!({"visibility": "private"}), 200),
    ] {
        let answer = by(&app, &token, method, path, body).await;
        assert_eq!(answer.status.as_u16(), status, "{method} {path}: {answer:?}");
    }
    let seen = by(&app, &token, "GET", "/api/v1/tokens", Value::Null).await;
    let mut names: Vec<&str> = seen.json.as_array().unwrap().iter().map(|t| t["name"].as_str().unwrap()).collect();
    names.sort_unstable();
    assert_eq!(names, ["b", "ci"]);
    // One of the whole server does not exist for it.
    let servers = tokens::list(&app.pool, None).await.unwrap().into_iter().find(|t| t.project.is_none()).unwrap();
    let refused = by(&app, &token, "DELETE", &format!("/api/v1/tokens/{}", servers.id), Value::Null).await;
    assert_eq!(refused.status.as_u16(), 404);
    assert_eq!(app.get("/api/v1/projects/sentiment").await.status.as_u16(), 404, "it is private now");

    let path = format!("/api/v1/tokens/{id}");
    assert_eq!(by(&app, &token, "DELETE", &path, Value::Null).await.status.as_u16(), 204);
    assert_eq!(by(&app, &token, "GET", "/api/v1/tokens", Value::Null).await.status.as_u16(), 401);
    assert_eq!(app.change("DELETE", &path, Value::Null).await.status.as_u16(), 404);

    let remembered = audit::list(&app.pool, Some(&"sentiment".parse().unwrap()), None, 100).await.unwrap();
    let acts: Vec<(&str, &str)> =
        remembered.iter().rev().map(|r| (r.entry.actor.as_str(), r.entry.action.as_str())).collect();
    let own = "token ci";
    let expected = [(own, "policy.set"), (own, "token.create"), (own, "project.visibility"), (own, "token.revoke")];
    assert!(acts[0].0.starts_with("token server ") && acts[0].1 == "token.create", "{acts:?}");
    assert_eq!(acts[1..], expected);
    assert!(!format!("{remembered:?}").contains(&token), "no secret is remembered");
}

#[tokio::test]
async fn the_last_use_is_noted_once_a_minute() {
    let app = App::new().await;
    let grant = Grant { scope: Scope::Read, project: None };
    let new = tokens::New { name: "reader", grant: &grant, created_by: "a test", lasts: None };
    let token = tokens::insert(&app.pool, &hash("reader"), &new).await.unwrap().unwrap();
    let last = async || tokens::get(&app.pool, token.id).await.unwrap().unwrap().last_used_at;
    assert_eq!(last().await, None);
    by(&app, "reader", "GET", "/api/v1/projects", Value::Null).await;
    let first = last().await.expect("noted");
    by(&app, "reader", "GET", "/api/v1/projects", Value::Null).await;
    assert_eq!(last().await, Some(first));
    let earlier = "update access_tokens set last_used_at = now() - interval '2 minutes' where name = 'reader'";
    sqlx::raw_sql(earlier).execute(&app.pool).await.unwrap();
    by(&app, "reader", "GET", "/api/v1/projects", Value::Null).await;
    assert!(last().await > Some(first));
}

#[tokio::test]
async fn a_session_ends_with_its_token_and_follows_its_member() {
    let app = App::new().await;
    app.upload(&release("v1.0.0", 0).report()).await;
    let private = json!({"visibility": "private"});
    app.change("PUT", "/api/v1/projects/sentiment/visibility", private).await;
    let reads = async |cookie: &str| {
        let request = Request::get("/api/v1/projects/sentiment").header("cookie", format!("a=b; {cookie}"));
        app.send(request.body(Body::empty()).unwrap()).await.status.as_u16()
    };
    let grant = Grant { scope: Scope::Read, project: None };
    let new = tokens::New { name: "reader", grant: &grant, created_by: "a test", lasts: None };
    let token = tokens::insert(&app.pool, &hash("reader"), &new).await.unwrap().unwrap();
    let caller = Caller::anonymous();
    let cookie = session::begin(&app.state, &caller, SignedIn::Token(token.id)).await.unwrap();
    assert!(cookie.http_only() == Some(true) && cookie.path() == Some("/"));
    assert_eq!(cookie.same_site().unwrap().to_string(), "Lax");
    let by_token = format!("{}={}", cookie.name(), cookie.value());
    assert_eq!(reads(&by_token).await, 200);
    let stored: Vec<Vec<u8>> = sqlx::query_scalar("select sha256 from sessions").fetch_all(&app.pool).await.unwrap();
    assert_eq!(stored, [hash(cookie.value()).to_vec()]);
    // The token has expired, and with it every session that was begun with it.
    let expire = "update access_tokens set expires_at = now() where name = 'reader'";
    sqlx::raw_sql(expire).execute(&app.pool).await.unwrap();
    assert_eq!(reads(&by_token).await, 404);
    assert!(session::begin(&app.state, &caller, SignedIn::Token(token.id)).await.is_err());

    let here = Grant { scope: Scope::Read, project: Some("sentiment".parse().unwrap()) };
    members::put(&app.pool, "Ada", &here, "a test").await.unwrap();
    let cookie = session::begin(&app.state, &caller, SignedIn::Member("ADA".to_owned())).await.unwrap();
    let by_member = format!("{}={}", cookie.name(), cookie.value());
    assert_eq!(reads(&by_member).await, 200);
    members::remove(&app.pool, "ada", here.project.as_ref()).await.unwrap();
    assert_eq!(reads(&by_member).await, 404);
    members::put(&app.pool, "ada", &here, "a test").await.unwrap();
    assert_eq!(reads(&by_member).await, 200);
    let mut headers = axum::http::HeaderMap::new();
    headers.insert("cookie", by_member.parse().unwrap());
    session::end(&app.state, &headers).await.unwrap();
    assert_eq!(reads(&by_member).await, 404);

    // The oldest of too many goes.
    for _ in 0..25 {
        session::begin(&app.state, &caller, SignedIn::Member("ada".to_owned())).await.unwrap();
    }
    let count: i64 =
        sqlx::query_scalar("select count(*) from sessions where login = 'ada'").fetch_one(&app.pool).await.unwrap();
    assert_eq!(count, 20);
    sqlx::raw_sql("update sessions set expires_at = now()").execute(&app.pool).await.unwrap();
    let now = store::prune::now(&app.pool).await.unwrap();
    prune::step(&app.pool, &prune::cutoffs(now, None), None).await.unwrap();
    let left: i64 = sqlx::query_scalar("select count(*) from sessions").fetch_one(&app.pool).await.unwrap();
    assert_eq!(left, 0);
}

#[tokio::test]
async fn guessing_is_slowed_down_and_the_right_token_still_works() {
    let app = App::new().await;
    let from = |token: &str| {
        let mut request = Request::get("/api/v1/projects").header("authorization", format!("Bearer {token}"));
        let peer: std::net::SocketAddr = "192.0.2.7:1".parse().unwrap();
        request.extensions_mut().unwrap().insert(ConnectInfo(peer));
        request.body(Body::empty()).unwrap()
    };
    let mut last = None;
    for n in 0..40 {
        last = Some(app.send(from(&format!("a-guess-with-the-number-{n}"))).await);
    }
    let last = last.unwrap();
    assert_eq!((last.status.as_u16(), last.kind.as_str()), (429, "application/problem+json"), "{last:?}");
    let wait: u64 = last.headers["retry-after"].to_str().unwrap().parse().unwrap();
    assert!((1..=60).contains(&wait), "{wait}");
    assert_eq!(app.send(from(crate::app::TOKEN)).await.status.as_u16(), 200);
}

fn run(folder: &std::path::Path, args: &[&str]) -> Output {
    let mut command = Command::new(env!("CARGO_BIN_EXE_plimsoll-server"));
    for (name, _) in std::env::vars_os() {
        if name.to_string_lossy().starts_with("PLIMSOLL_") || name == "DATABASE_URL" || name == "RUST_LOG" {
            command.env_remove(name);
        }
    }
    command.args(args).arg("--data-dir").arg(folder).stdin(Stdio::null()).output().expect("the program")
}

#[test]
fn the_command_line_works_beside_a_server_and_without_one() {
    let folder = folder();
    let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
    let create = ["token", "create", "--name", "ci", "--scope", "upload", "--project", "sentiment", "--expires", "90d"];
    // A path that no server has run with is a mistake, and stays as it was.
    let nowhere = folder.path().join("mistyped");
    for args in [
        &create[..],
        &["token", "list"],
        &["member", "add", "ada", "--scope", "read"],
        &["project", "set", "sentiment", "--visibility", "public"],
        &["prune", "--dry-run"],
        &["prune"],
    ] {
        let refused = run(&nowhere, args);
        let heard = text(&refused.stderr);
        assert_eq!((refused.status.code(), text(&refused.stdout).as_str()), (Some(2), ""), "{args:?}: {heard}");
        assert!(heard.contains(&format!("no server has run with --data-dir {}", nowhere.display())), "{heard}");
    }
    let doctor = run(&nowhere, &["doctor"]);
    assert!(text(&doctor.stdout).contains("no server has run with --data-dir"), "{}", text(&doctor.stdout));
    assert_eq!((doctor.status.code(), nowhere.exists()), (Some(1), false));

    // A server has run here, and made new projects public.
    drop(Cluster::start(&Options { dir: folder.path().join("postgres"), durable: false }).unwrap());
    std::fs::write(folder.path().join("new-projects"), "public\n").unwrap();
    let made = run(folder.path(), &create);
    let token = text(&made.stdout);
    assert!(made.status.success(), "{}", text(&made.stderr));
    assert!(token.starts_with("plim_") && token.ends_with('\n') && token.lines().count() == 1, "{token:?}");
    assert!(text(&made.stderr).contains("upload for project sentiment, until "), "{}", text(&made.stderr));
    assert!(text(&made.stderr).contains("Project sentiment is new, and public."), "{}", text(&made.stderr));

    // Somebody does.
    let cluster = Cluster::start(&Options { dir: folder.path().join("postgres"), durable: false }).unwrap();
    let again = run(folder.path(), &create);
    assert_eq!(again.status.code(), Some(2), "{}", text(&again.stderr));
    assert!(text(&again.stderr).contains("\"ci\" is in use"), "{}", text(&again.stderr));
    let listed = run(folder.path(), &["token", "list", "--json"]);
    let listed: Value = serde_json::from_slice(&listed.stdout).unwrap();
    let row = &listed[0];
    assert_eq!((&row["name"], &row["scope"], &row["project"]), (&"ci".into(), &"upload".into(), &"sentiment".into()));
    assert!(!listed.to_string().contains(token.trim()));
    for (args, status, said) in [
        (vec!["token", "list"], 0, ""),
        (vec!["token", "create", "--name", "x", "--scope", "root"], 2, "known: read, upload, agent, admin"),
        (vec!["token", "revoke", "nobody"], 2, "token list"),
        (vec!["token", "revoke", "ci"], 0, "revoked"),
        (vec!["token", "revoke", "ci"], 2, "token list"),
        (vec!["member", "add", "Ada", "--scope", "admin"], 0, "Ada may now admin in all projects"),
        (vec!["member", "add", "a/b", "--scope", "read"], 2, "login"),
        (vec!["member", "list"], 0, ""),
        (vec!["member", "remove", "ada"], 0, "no member"),
        (vec!["member", "remove", "ada"], 2, "member list"),
        (vec!["member", "add", "ada", "--scope", "read", "--project", "sentiment"], 0, "in project sentiment"),
        (
            vec!["member", "add", "ada", "--scope", "read", "--project", "covert", "--new-projects", "private"],
            0,
            "Project covert is new, and private.",
        ),
        (vec!["project", "show", "sentiment"], 0, ""),
        (vec!["project", "show", "nothing"], 2, "no project nothing"),
        (vec!["project", "set", "sentiment", "--visibility", "public"], 0, "is public"),
    ] {
        let done = run(folder.path(), &args);
        let heard = text(&done.stderr);
        assert_eq!(done.status.code(), Some(status), "{args:?}: {heard}");
        assert!(heard.contains(said), "{args:?}: {heard}");
    }
    assert_eq!(text(&run(folder.path(), &["project", "show", "sentiment"]).stdout), "public\n");
    let runtime = tokio::runtime::Runtime::new().unwrap();
    let acts: Vec<String> = runtime.block_on(async {
        let pool = store::database::open(&cluster.url("plimsoll"), 1).await.unwrap();
        let found = audit::list(&pool, None, None, 100).await.unwrap();
        pool.close().await;
        found.into_iter().rev().map(|found| format!("{} {}", found.entry.actor, found.entry.action)).collect()
    });
    let expected = [
        "token.create",
        "token.revoke",
        "member.set",
        "member.remove",
        "member.set",
        "member.set",
        "project.visibility",
    ];
    assert_eq!(acts, expected.map(|act| format!("console {act}")));
}

#[tokio::test]
async fn under_tls_a_cookie_is_bound_to_the_host_and_plain_pages_are_strangers() {
    let app = App::new().await;
    let public_url = Some("https://plimsoll.example".to_owned());
    let state = AppState::new(app.pool.clone(), Settings { public_url, ..Settings::default() });
    let grant = Grant { scope: Scope::Admin, project: None };
    let new = tokens::New { name: "admin", grant: &grant, created_by: "a test", lasts: None };
    let token = tokens::insert(&app.pool, &hash("admin"), &new).await.unwrap().unwrap();
    let cookie = session::begin(&state, &Caller::anonymous(), SignedIn::Token(token.id)).await.unwrap();
    let text = cookie.to_string();
    assert!(text.starts_with("__Host-plimsoll="), "{text}");
    for part in ["HttpOnly", "SameSite=Lax", "Secure", "Path=/"] {
        assert!(text.contains(part), "{text}");
    }
    assert!(!text.contains("Domain"), "{text}");
    let router = plimsoll_server::router::router(state);
    for (name, origin, status) in [
        (cookie.name(), "https://plimsoll.example", 200),
        // The same name on plain HTTP: anybody on the way may have written that page.
        (cookie.name(), "http://plimsoll.example", 403),
        (cookie.name(), "https://plimsoll.example.evil.example", 403),
        // A cookie that a page on plain HTTP could have planted.
        ("plimsoll", "https://plimsoll.example", 401),
    ] {
        let request = Request::put("/api/v1/projects/sentiment/visibility")
            .header("host", "plimsoll.example")
            .header("origin", origin)
            .header("cookie", format!("{name}={}", cookie.value()))
            .header("content-type", "application/json")
            .body(Body::from(r#"{"visibility": "private"}"#))
            .unwrap();
        let answer = router.clone().oneshot(request).await.unwrap();
        assert_eq!(answer.status().as_u16(), status, "{name} {origin}");
        assert!(answer.headers().contains_key("strict-transport-security"));
    }
}

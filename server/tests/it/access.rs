//! Who may do what: every route, with every kind of caller.

use axum::body::Body;
use axum::http::{Method, Request, StatusCode};
use plimsoll_domain::ids::{ProjectSlug, RunId};
use plimsoll_domain::synthetic::Synthetic;
use plimsoll_server::access::{Grant, Need, Route, Scope, hash};
use plimsoll_server::router;
use plimsoll_server::store::projects::{self, Visibility};
use plimsoll_server::store::sessions::{self, SignedIn};
use plimsoll_server::store::{members, tokens};
use serde_json::Value;

use crate::app::{App, release};

/// Routes with a project or a run in their path that everybody may ask for, and why.
const OPEN_ALTHOUGH_NAMED: [(&str, &str); 1] = [("/charts/{run}/{chart}", "a signature stands for the right to read")];

/// A server with a public project, a private one that callers have to do with, and a private one of others.
struct World {
    app: App,
    private: ProjectSlug,
    run: RunId,
    public_run: RunId,
}

/// By what a request is known.
#[derive(Debug, Clone)]
enum By {
    Nobody,
    Bearer(String),
    Cookie(String),
}

/// What a caller has: a scope for the private project, for another one, or for all.
#[derive(Debug, Clone, Copy, PartialEq)]
enum Place {
    Here,
    Elsewhere,
    Everywhere,
}

impl World {
    async fn new() -> Self {
        let app = App::new().await;
        let slug = |name: &str| name.parse::<ProjectSlug>().unwrap();
        let mut runs = Vec::new();
        for (n, project) in (0..).zip(["public", "private", "elsewhere"]) {
            let report = Synthetic { project: project.to_owned(), ..release("v1.0.0", n) }.report();
            app.upload(&report).await;
            runs.push(report.run_id);
        }
        for project in ["private", "elsewhere"] {
            projects::set_visibility(&app.pool, &slug(project), Visibility::Private).await.unwrap();
        }
        Self { app, private: slug("private"), run: runs[1], public_run: runs[0] }
    }

    fn grant(&self, scope: Scope, place: Place) -> Grant {
        let project = match place {
            Place::Here => Some(self.private.clone()),
            Place::Elsewhere => Some("elsewhere".parse().unwrap()),
            Place::Everywhere => None,
        };
        Grant { scope, project }
    }

    /// A token that is the same as its name.
    async fn token(&self, name: &str, grant: &Grant) -> tokens::Token {
        let new = tokens::New { name, grant, created_by: "a test", lasts: None };
        tokens::insert(&self.app.pool, &hash(name), &new).await.unwrap().expect("a name that is free")
    }

    /// A new session, since some routes end the one they get.
    async fn cookie(&self, by: &SignedIn) -> By {
        let value = uuid::Uuid::now_v7().to_string();
        let hour = std::time::Duration::from_secs(3600);
        sessions::insert(&self.app.pool, &hash(&value), by, hour).await.unwrap();
        By::Cookie(value)
    }

    fn path(&self, route: &Route, project: &str, run: RunId) -> String {
        // Where the request itself says of which project it is.
        let query = if route.need == Need::Named(Scope::Admin) && route.method == Method::GET {
            "?project=private"
        } else {
            ""
        };
        format!("{}{query}", route.path)
            .replace("{project}", project)
            .replace("{run}", &run.to_string())
            .replace("{id}", "01890000-0000-7000-8000-000000000000")
            .replace("{pair}", &format!("{run}...{run}"))
            .replace("{name}", "style.css")
            .replace("{chart}", "staircase.svg")
    }

    async fn ask(&self, route: &Route, by: &By) -> Answer {
        self.ask_at(&route.method, &self.path(route, "private", self.run), by).await
    }

    async fn ask_at(&self, method: &Method, path: &str, by: &By) -> Answer {
        let request = Request::builder().method(method).uri(path).header("content-type", "application/json");
        let request = match by {
            By::Nobody => request,
            By::Bearer(token) => request.header("authorization", format!("Bearer {token}")),
            By::Cookie(value) => {
                request.header("cookie", format!("plimsoll={value}")).header("sec-fetch-site", "same-origin")
            }
        };
        self.app.probe(request.body(Body::empty()).unwrap()).await
    }
}

use crate::app::Probed as Answer;

/// How a route must answer.
#[derive(Debug, PartialEq)]
enum Expected {
    /// Whatever the handler says.
    Handled,
    Refused(u16),
}

fn expected(need: Need, scope: Option<(Scope, Place)>) -> Expected {
    let (wanted, for_server, named) = match need {
        Need::Open | Need::Signed | Need::Known | Need::Filtered => return Expected::Handled,
        Need::Project(wanted) | Need::Run(wanted) => (wanted, false, true),
        Need::Named(wanted) => (wanted, false, false),
        Need::Server(wanted) => (wanted, true, false),
    };
    match scope {
        // It looks as if it did not exist; what needs a token anyway says so.
        None if named && wanted == Scope::Read => Expected::Refused(404),
        None => Expected::Refused(401),
        Some((_, Place::Elsewhere)) if named => Expected::Refused(404),
        Some((_, Place::Here | Place::Elsewhere)) if for_server => Expected::Refused(403),
        Some((has, _)) if has >= wanted => Expected::Handled,
        Some(_) => Expected::Refused(403),
    }
}

fn check(route: &Route, who: &str, answer: &Answer, expected: &Expected) {
    let elsewhere = who.contains("Elsewhere");
    let status = answer.status.as_u16();
    let said = answer.json["detail"].as_str().unwrap_or_default();
    match expected {
        Expected::Refused(wanted) => {
            assert_eq!(status, *wanted, "{} {} by {who}: {said}", route.method, route.path);
            assert!(answer.json["status"].is_number(), "{} {} by {who}: no problem", route.method, route.path);
        }
        Expected::Handled => {
            // Which project it is about only the body tells, and there is none.
            if elsewhere && matches!(route.need, Need::Named(_)) && status == 403 {
                return;
            }
            let guarded = matches!(status, 401 | 403 | 429 | 500..) || said.contains("you may not read it");
            // A sign-in without a token is one that failed.
            let fails = route.path.starts_with("/sign-in") && matches!(status, 401 | 403);
            assert!(!guarded || fails, "{} {} by {who}: {status} {said}", route.method, route.path);
        }
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn every_route_answers_every_caller_as_its_need_says() {
    let world = World::new().await;
    let table = router::table(&world.app.state);
    assert!(table.len() > 20, "the table is the router's");

    let hopeless = [
        ("garbage", By::Bearer("garbage-that-is-long-enough".to_owned())),
        ("an expired token", By::Bearer(expired(&world).await)),
        ("a revoked token", By::Bearer(revoked(&world).await)),
        ("a cookie's value as a token", By::Bearer("plimsoll".to_owned())),
    ];
    for route in &table {
        for (who, by) in &hopeless {
            let answer = world.ask(route, by).await;
            // Guessing is slowed down meanwhile, which is a refusal too. What is open to everybody does not look.
            let open = matches!(route.need, Need::Open | Need::Signed);
            check(route, who, &answer, &if open { Expected::Handled } else { Expected::Refused(401) });
        }
        for (who, by) in [("nobody", By::Nobody), ("a strange cookie", By::Cookie("garbage".to_owned()))] {
            check(route, who, &world.ask(route, &by).await, &expected(route.need, None));
        }
    }
    for place in [Place::Here, Place::Elsewhere, Place::Everywhere] {
        for scope in Scope::ALL {
            let who = format!("{} {place:?}", scope.name());
            let grant = world.grant(scope, place);
            let token = world.token(&who, &grant).await;
            let login = who.replace(' ', "-").to_lowercase();
            members::put(&world.app.pool, &login, &grant, "a test").await.unwrap();
            for route in &table {
                let expected = expected(route.need, Some((scope, place)));
                check(route, &who, &world.ask(route, &By::Bearer(who.clone())).await, &expected);
                let sessions = [SignedIn::Token(token.id), SignedIn::Member(login.clone())];
                for by in sessions {
                    let cookie = world.cookie(&by).await;
                    check(route, &format!("{who} by cookie"), &world.ask(route, &cookie).await, &expected);
                }
            }
        }
    }
}

async fn expired(world: &World) -> String {
    world.token("expired", &world.grant(Scope::Admin, Place::Everywhere)).await;
    let sql = "update access_tokens set expires_at = now() - interval '1 second' where name = 'expired'";
    sqlx::raw_sql(sql).execute(&world.app.pool).await.unwrap();
    "expired".to_owned()
}

async fn revoked(world: &World) -> String {
    let token = world.token("revoked", &world.grant(Scope::Admin, Place::Everywhere)).await;
    assert!(tokens::revoke(&world.app.pool, token.id).await.unwrap());
    "revoked".to_owned()
}

#[tokio::test]
async fn a_route_that_names_a_project_or_a_run_is_not_open() {
    let app = App::new().await;
    for route in router::table(&app.state) {
        let named = route.path.contains("{project}") || route.path.contains("{run}");
        let open = matches!(route.need, Need::Open | Need::Signed | Need::Known | Need::Filtered);
        let listed = OPEN_ALTHOUGH_NAMED.iter().any(|(path, _)| *path == route.path);
        assert_eq!(named && open, listed, "{} {}", route.method, route.path);
        match route.need {
            Need::Project(_) => assert!(route.path.contains("{project}"), "{}", route.path),
            Need::Run(_) => assert!(route.path.contains("{run}"), "{}", route.path),
            _ => {}
        }
        // What changes something is never reached by a link.
        assert!(route.method != Method::HEAD, "{}", route.path);
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn what_one_may_not_read_looks_like_what_does_not_exist() {
    let world = World::new().await;
    let outsider = world.grant(Scope::Admin, Place::Elsewhere);
    world.token("outsider", &outsider).await;
    let absent = RunId(uuid::Uuid::from_u128(0x0189_0000_0000_7000_8000_0000_0000_0001));
    let callers = [By::Nobody, By::Bearer("outsider".to_owned())];
    for route in router::table(&world.app.state) {
        if !route.path.contains("{project}") && !route.path.contains("{run}") {
            continue;
        }
        for by in &callers {
            for method in [&route.method, &Method::HEAD] {
                let there = world.ask_at(method, &world.path(&route, "private", world.run), by).await;
                let not = world.ask_at(method, &world.path(&route, "nothing", absent), by).await;
                assert_eq!(hidden(&there, &world, absent), hidden(&not, &world, absent), "{by:?} {route:?}");
                assert!(there.status.is_client_error(), "{route:?}");
                let malformed = world.ask_at(method, &world.path(&route, "No%20Name", absent), by).await;
                assert!(malformed.status.is_client_error(), "{route:?}");
            }
        }
    }
}

/// An answer without the names that were asked for, and what differs from answer to answer.
fn hidden(answer: &Answer, world: &World, absent: RunId) -> (StatusCode, String, Vec<String>) {
    let text = answer.json.to_string();
    let text = text.replace(&world.run.to_string(), "RUN").replace(&absent.to_string(), "RUN");
    let text = text.replace("private", "PROJECT").replace("nothing", "PROJECT");
    let mut headers: Vec<String> = answer.headers.keys().map(ToString::to_string).collect();
    headers.sort();
    (answer.status, text, headers)
}

#[tokio::test(flavor = "multi_thread")]
async fn a_run_is_shown_under_its_own_project_only() {
    let world = World::new().await;
    let absent = RunId(uuid::Uuid::from_u128(0x0189_0000_0000_7000_8000_0000_0000_0001));
    world.token("everything", &world.grant(Scope::Admin, Place::Everywhere)).await;
    let by = By::Bearer("everything".to_owned());
    for route in router::table(&world.app.state) {
        if !route.path.contains("{project}") || !(route.path.contains("{run}") || route.path.contains("{pair}")) {
            continue;
        }
        // An administrator who may read both asks for the one under the name of the other.
        let other = world.ask_at(&route.method, &world.path(&route, "public", world.run), &by).await;
        let none = world.ask_at(&route.method, &world.path(&route, "public", absent), &by).await;
        assert_eq!(hidden(&other, &world, absent), hidden(&none, &world, absent), "{route:?}");
        assert_eq!(other.status, StatusCode::NOT_FOUND, "{route:?}");
        // Nor does a run that everybody may read tell which other projects there are.
        let there = world.ask_at(&route.method, &world.path(&route, "private", world.public_run), &By::Nobody).await;
        let not = world.ask_at(&route.method, &world.path(&route, "nothing", world.public_run), &By::Nobody).await;
        assert_eq!(hidden(&there, &world, absent), hidden(&not, &world, absent), "{route:?}");
    }
    let pair = |one: RunId, other: RunId| format!("/public/compare/{one}...{other}");
    let asks = [
        "/api/v1/comparisons?baseline=PUBLIC&candidate=RUN",
        "/api/v1/comparisons?baseline=RUN&candidate=PUBLIC",
        &pair(world.public_run, world.run),
        &pair(world.run, world.public_run),
        "/public/compare?baseline=PUBLIC&candidate=RUN",
        "/api/v1/projects/public/snapshots?before=RUN",
        "/public/history?before=RUN",
        "/api/v1/runs?before=RUN",
    ];
    for path in asks {
        let path = path.replace("PUBLIC", &world.public_run.to_string());
        let asked =
            |run: RunId| path.replace("RUN", &run.to_string()).replace(&world.run.to_string(), &run.to_string());
        let other = world.ask_at(&Method::GET, &asked(world.run), &By::Nobody).await;
        let none = world.ask_at(&Method::GET, &asked(absent), &By::Nobody).await;
        assert_eq!(hidden(&other, &world, absent), hidden(&none, &world, absent), "{path}");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn lists_leave_out_what_one_may_not_read() {
    let world = World::new().await;
    world.token("here", &world.grant(Scope::Read, Place::Here)).await;
    let names = |answer: &Answer| -> Vec<String> {
        let slug = |overview: &Value| overview["slug"].as_str().unwrap().to_owned();
        answer.json.as_array().unwrap().iter().map(slug).collect()
    };
    let list = async |by: By| names(&world.ask_at(&Method::GET, "/api/v1/projects", &by).await);
    assert_eq!(list(By::Nobody).await, ["public"]);
    assert_eq!(list(By::Bearer("here".to_owned())).await, ["private", "public"]);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_browser_changes_something_only_from_our_own_pages() {
    let world = World::new().await;
    let token = world.token("admin", &world.grant(Scope::Admin, Place::Everywhere)).await;
    type Case = (&'static str, &'static [(&'static str, &'static str)], bool);
    let own: [Case; 12] = [
        ("our page", &[("sec-fetch-site", "same-origin")], true),
        ("another site", &[("sec-fetch-site", "cross-site")], false),
        ("a neighbour", &[("sec-fetch-site", "same-site")], false),
        ("no page", &[("sec-fetch-site", "none")], false),
        ("nonsense", &[("sec-fetch-site", "")], false),
        ("another site that claims our origin", &[("sec-fetch-site", "cross-site"), ("origin", "http://here")], false),
        ("our page in an older browser", &[("origin", "http://here")], true),
        ("another site in an older browser", &[("origin", "http://evil.example")], false),
        ("another port", &[("origin", "http://here:8080")], false),
        ("a page without an origin", &[("origin", "null")], false),
        ("an origin without a scheme", &[("origin", "here")], false),
        ("neither", &[], false),
    ];
    // A signature is nothing that a browser brings along.
    let changes = |route: &&Route| route.method != Method::GET && route.need != Need::Signed;
    for route in router::table(&world.app.state).iter().filter(changes) {
        for (what, headers, allowed) in own {
            let By::Cookie(cookie) = world.cookie(&SignedIn::Token(token.id)).await else { unreachable!() };
            let request = || {
                let path = world.path(route, "private", world.run);
                let base = Request::builder().method(&route.method).uri(path).header("host", "here");
                headers.iter().fold(base, |request, (name, value)| request.header(*name, *value))
            };
            let body = |request: axum::http::request::Builder| request.body(Body::empty()).unwrap();
            let foreign = |answer: &Answer| {
                answer.json["detail"].as_str().is_some_and(|said| said.contains("did not come from a page"))
            };
            let by_cookie = world.app.probe(body(request().header("cookie", format!("plimsoll={cookie}")))).await;
            assert_eq!(foreign(&by_cookie), !allowed, "{what}: {} {}", route.method, route.path);
            // A program that shows a token is nobody's browser.
            let by_token = world.app.probe(body(request().header("authorization", "Bearer admin"))).await;
            assert!(!foreign(&by_token), "{what}: {} {}", route.method, route.path);
        }
    }
}

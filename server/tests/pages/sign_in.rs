//! Sign-in by token and by GitHub, and what the frame shows of it.

use axum::http::StatusCode;
use plimsoll_server::access::{Grant, Scope};
use plimsoll_server::store::{members, tokens};

use crate::fake_github::{FakeGitHub, Mood};
use crate::site::{Seen, Site, release};
use crate::visitor::Visitor;

const SESSION: &str = "plimsoll";

#[tokio::test]
async fn a_token_signs_in_and_sign_out_ends_it() {
    let site = Site::new(&[release("v1.0.0", 0, 10).report()]).await;
    site.make_private("sentiment").await;
    site.token("a reader of one project", Scope::Read, Some("sentiment")).await;
    let visitor = site.visitor();

    let hidden = visitor.get("/sentiment/history?testbed=A10").await;
    assert_eq!(hidden.status, StatusCode::NOT_FOUND);
    let offered = "/sign-in?next=%2Fsentiment%2Fhistory%3Ftestbed%3DA10";
    assert_eq!(hidden.attributes("main a", "href")[0], offered);
    let form = visitor.page(offered).await;
    let next = form.attributes("form input[name=next]", "value");
    assert_eq!(next, ["/sentiment/history?testbed=A10"]);
    assert!(form.all("a.button").is_empty(), "GitHub is not configured");

    let fields = [("token", " a reader of one project\n"), ("next", next[0].as_str())];
    let entered = visitor.post("/sign-in", &fields).await;
    assert_eq!(entered.status, StatusCode::SEE_OTHER);
    assert_eq!(entered.header("location"), "/sentiment/history?testbed=A10");
    let set = entered.header("set-cookie");
    assert!(set.contains("HttpOnly") && set.contains("SameSite=Lax") && set.contains("Path=/"), "{set}");

    let page = visitor.page("/sentiment/history").await;
    assert_eq!(page.one(".who"), "token a reader of one project");
    assert_eq!(page.one(".private"), "Private");
    assert!(!page.all("header a").contains(&"Settings".to_owned()), "a reader is offered no settings");
    let first = visitor.cookie(SESSION).expect("a session");

    let out = visitor.post("/sign-out", &[]).await;
    assert_eq!((out.status, out.header("location")), (StatusCode::SEE_OTHER, "/"));
    assert_eq!(visitor.cookie(SESSION), None);
    visitor.set_cookie(SESSION, &first);
    assert_eq!(visitor.get("/sentiment/history").await.status, StatusCode::NOT_FOUND, "the session is over");
    assert_eq!(visitor.page("/").await.one(".account"), "Sign in");
}

#[tokio::test]
async fn what_is_no_token_stays_outside_and_is_told_so() {
    let site = Site::new(&[]).await;
    let revoked = site.token("was revoked", Scope::Admin, None).await;
    tokens::revoke(&site.pool, revoked.id).await.unwrap();
    sqlx::query("update access_tokens set expires_at = now() - interval '1 second' where id = $1")
        .bind(site.token("has expired", Scope::Admin, None).await.id)
        .execute(&site.pool)
        .await
        .unwrap();
    for token in ["was revoked", "has expired", "was never known", "", "a-token-for-these-tests-only"] {
        let visitor = site.visitor();
        let page = visitor.post("/sign-in", &[("token", token), ("next", "https://evil.example/")]).await;
        assert_eq!(page.status, StatusCode::UNAUTHORIZED, "{token:?}");
        assert!(page.one("[role=alert]").contains("not known here, has expired or was revoked"));
        assert_eq!(page.attributes("form input[name=next]", "value"), ["/"]);
        assert!(!page.body.contains("was never known") && visitor.cookie(SESSION).is_none());
    }
    // A form of another site signs nobody in, nor out.
    site.token("works", Scope::Read, None).await;
    for from in ["cross-site", "same-site", "none"] {
        let visitor = site.visitor();
        let refused = visitor.post_from(from, "/sign-in", &[("token", "works")]).await;
        assert_eq!((refused.status, visitor.cookie(SESSION)), (StatusCode::FORBIDDEN, None), "{from}");
    }
}

/// Goes to GitHub, agrees, and comes back.
async fn by_github(visitor: &Visitor<'_>, github: &FakeGitHub, next: &str) -> Seen {
    let away = visitor.get(&format!("/sign-in/github?next={next}")).await;
    assert_eq!(away.status, StatusCode::SEE_OTHER, "{}", away.body);
    visitor.get(&format!("/sign-in/github/callback?{}", github.agree(away.header("location")))).await
}

async fn member(site: &Site, login: &str) {
    let grant = Grant { scope: Scope::Read, project: None };
    members::put(&site.pool, login, &grant, "a test").await.unwrap();
}

#[tokio::test]
async fn members_sign_in_by_github_however_their_login_is_written() {
    let github = FakeGitHub::start("Octo-Cat").await;
    let site = Site::with(github.settings(None), &[release("v1.0.0", 0, 10).report()]).await;
    member(&site, "octo-cat").await;
    site.make_private("sentiment").await;
    let visitor = site.visitor();
    let form = visitor.page("/sign-in?next=/sentiment/history").await;
    assert_eq!(form.attributes("a.button", "href"), ["/sign-in/github?next=%2Fsentiment%2Fhistory"]);
    let entered = by_github(&visitor, &github, "/sentiment/history").await;
    assert_eq!((entered.status, entered.header("location")), (StatusCode::SEE_OTHER, "/sentiment/history"));
    let page = visitor.page("/sentiment/history").await;
    assert_eq!(page.one(".who").to_lowercase(), "@octo-cat");

    // Whoever is struck from the members is out at once.
    members::remove(&site.pool, "octo-cat", None).await.unwrap();
    assert_eq!(visitor.get("/sentiment/history").await.status, StatusCode::NOT_FOUND);
    // Nothing of GitHub's is kept.
    let kept: Vec<String> = sqlx::query_scalar("select s::text from sessions s").fetch_all(&site.pool).await.unwrap();
    assert!(!kept.is_empty() && kept.iter().all(|row| !row.contains("token-0")), "{kept:?}");
}

#[tokio::test]
async fn who_is_no_member_is_told_whom_to_ask() {
    let github = FakeGitHub::start("stranger").await;
    let site = Site::with(github.settings(None), &[]).await;
    let visitor = site.visitor();
    let page = by_github(&visitor, &github, "/").await;
    assert_eq!(page.status, StatusCode::FORBIDDEN);
    let told = page.one("[role=alert]");
    assert!(told.contains("@stranger") && told.contains("Ask an administrator"), "{told}");
    assert_eq!(visitor.cookie(SESSION), None);
}

#[tokio::test]
async fn only_the_browser_that_began_comes_back_and_only_once() {
    let github = FakeGitHub::start("octocat").await;
    let site = Site::with(github.settings(None), &[]).await;
    member(&site, "octocat").await;
    let (victim, other) = (site.visitor(), site.visitor());
    let back = github.agree(other.get("/sign-in/github").await.header("location"));
    let callback = format!("/sign-in/github/callback?{back}");

    // Somebody else's way back, in a browser that began none or another.
    assert_eq!(victim.get(&callback).await.status, StatusCode::BAD_REQUEST);
    victim.get("/sign-in/github").await;
    let refused = victim.get(&callback).await;
    assert_eq!((refused.status, victim.cookie(SESSION)), (StatusCode::BAD_REQUEST, None));
    assert!(refused.one("[role=alert]").contains("not begun in this browser"), "{}", refused.body);

    let kept = other.cookie("plimsoll-github").expect("the cookie of the way");
    assert_eq!(other.get(&callback).await.status, StatusCode::SEE_OTHER);
    assert!(other.cookie(SESSION).is_some() && other.cookie("plimsoll-github").is_none());
    other.post("/sign-out", &[]).await;
    assert_eq!(other.get(&callback).await.status, StatusCode::BAD_REQUEST, "the way is used up");
    // Even with a copy of the cookie: GitHub takes a code once.
    other.set_cookie("plimsoll-github", &kept);
    let replayed = other.get(&callback).await;
    assert_eq!((replayed.status, other.cookie(SESSION)), (StatusCode::BAD_REQUEST, None));
    assert!(replayed.one("[role=alert]").contains("bad_verification_code"), "{}", replayed.body);

    // Another verifier than the one that GitHub was given the challenge of.
    let begun = other.get("/sign-in/github").await;
    let back = github.agree(begun.header("location"));
    let mine = other.cookie("plimsoll-github").expect("the cookie of the way");
    let parts: Vec<&str> = mine.split('.').collect();
    other.set_cookie("plimsoll-github", &format!("{}.{}.{}", parts[0], "0".repeat(64), parts[2]));
    assert_eq!(other.get(&format!("/sign-in/github/callback?{back}")).await.status, StatusCode::BAD_REQUEST);
}

#[tokio::test]
async fn github_may_be_denied_broken_or_slow() {
    let github = FakeGitHub::start("octocat").await;
    github.be(Mood::Slow);
    let site = Site::with(github.settings(None), &[]).await;
    member(&site, "octocat").await;
    let visitor = site.visitor();
    let denied = visitor.get("/sign-in/github").await;
    let state = denied.header("location").split("state=").nth(1).unwrap().split('&').next().unwrap().to_owned();
    let page = visitor.get(&format!("/sign-in/github/callback?error=access_denied&state={state}")).await;
    assert_eq!(page.status, StatusCode::FORBIDDEN);
    assert!(page.one("[role=alert]").contains("You did not let GitHub tell"), "{}", page.body);
    for mood in [Mood::Slow, Mood::Broken, Mood::Endless] {
        github.be(mood);
        let page = by_github(&visitor, &github, "/").await;
        assert_eq!((page.status, visitor.cookie(SESSION)), (StatusCode::BAD_GATEWAY, None), "{mood:?}");
        assert!(page.one("[role=alert]").contains("GitHub does not answer"), "{mood:?}: {}", page.body);
        assert_eq!(page.all("form input[name=token]").len(), 1, "a token may do meanwhile");
    }
}

#[tokio::test]
async fn behind_tls_cookies_are_bound_to_this_very_host() {
    let github = FakeGitHub::start("octocat").await;
    let site = Site::with(github.settings(Some("https://plimsoll.test")), &[]).await;
    member(&site, "octocat").await;
    let visitor = site.visitor();
    let away = visitor.get("/sign-in/github").await;
    let location = away.header("location").to_owned();
    assert!(location.contains("redirect_uri=https%3A%2F%2Fplimsoll.test%2Fsign-in%2Fgithub%2Fcallback"), "{location}");
    let set = away.header("set-cookie");
    assert!(set.starts_with("__Host-plimsoll-github=") && set.contains("Secure"), "{set}");
    assert!(set.contains("Max-Age=600") && set.contains("HttpOnly") && set.contains("Path=/"), "{set}");
    let entered = visitor.get(&format!("/sign-in/github/callback?{}", github.agree(&location))).await;
    assert_eq!(entered.status, StatusCode::SEE_OTHER, "{}", entered.body);
    assert!(visitor.cookie("__Host-plimsoll").is_some());
    // Without configuration there is no such way.
    let plain = Site::new(&[]).await;
    assert_eq!(plain.get("/sign-in/github").await.status, StatusCode::NOT_FOUND);
}

#[tokio::test]
async fn to_sign_in_again_ends_the_session_before() {
    let site = Site::new(&[]).await;
    let visitor = site.signed_in(Scope::Admin, None).await;
    assert!(visitor.page("/sign-in").await.one(".lead").contains("You are signed in as token admin of all"));
    let before = visitor.cookie(SESSION).expect("a session");
    site.token("another", Scope::Read, None).await;
    visitor.post("/sign-in", &[("token", "another")]).await;
    assert_eq!(visitor.page("/").await.one(".who"), "token another");
    visitor.set_cookie(SESSION, &before);
    assert_eq!(visitor.page("/").await.one(".account"), "Sign in");
}

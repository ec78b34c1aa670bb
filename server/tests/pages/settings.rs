//! What administrators set, and what others are not offered.

use axum::body::Body;
use axum::http::{Request, StatusCode};
use plimsoll_server::access::Scope;
use plimsoll_server::store::tokens;

use crate::site::{Site, release};

#[tokio::test]
async fn a_page_for_administrators_asks_to_sign_in_and_then_for_more() {
    let site = Site::new(&[]).await;
    let refused = site.visitor().get("/settings/tokens").await;
    assert_eq!(refused.status, StatusCode::UNAUTHORIZED);
    assert_eq!(refused.one(".say"), "Sign in to see this.");
    assert_eq!(refused.attributes("main a", "href")[0], "/sign-in?next=%2Fsettings%2Ftokens");
    let agent = site.signed_in(Scope::Agent, None).await;
    let refused = agent.get("/settings/tokens").await;
    assert_eq!((refused.status, refused.one(".who")), (StatusCode::FORBIDDEN, "token agent of all".to_owned()));
    assert!(refused.body.contains("needs the scope “admin” for the whole server"), "{}", refused.body);
    assert!(!agent.page("/").await.all("header a").contains(&"Settings".to_owned()));
}

#[tokio::test]
async fn a_token_is_shown_once_works_and_is_revoked() {
    let site = Site::new(&[release("v1.0.0", 0, 10).report()]).await;
    site.make_private("sentiment").await;
    let admin = site.signed_in(Scope::Admin, None).await;
    let form = [("name", "ci of sentiment"), ("scope", "read"), ("project", "sentiment"), ("days", "90")];
    let made = admin.post("/settings/tokens", &form).await;
    assert_eq!((made.status, made.header("cache-control")), (StatusCode::OK, "no-store"), "{}", made.body);
    let secret = made.one(".once");
    assert!(secret.len() >= 64, "{secret}");
    let listed = admin.page("/settings/tokens").await;
    assert!(!listed.body.contains(&secret), "shown again");
    let row = listed.table("Tokens").into_iter().find(|row| row[0] == "ci of sentiment").expect("its row");
    assert_eq!((row[1].as_str(), row[2].as_str(), row[5].as_str()), ("read", "sentiment", "never"), "{row:?}");
    assert!(row[3].ends_with("by token admin of all"), "{row:?}");

    let read = async || {
        let request = Request::get("/api/v1/projects/sentiment").header("authorization", format!("Bearer {secret}"));
        site.send(request.body(Body::empty()).unwrap()).await.status
    };
    assert_eq!(read().await, StatusCode::OK);
    let holder = site.visitor();
    holder.post("/sign-in", &[("token", &secret)]).await;
    holder.page("/sentiment/history").await;

    // Its name is taken while it is in use.
    let again = admin.post("/settings/tokens", &form).await;
    assert_eq!(again.status, StatusCode::CONFLICT);
    assert!(again.one("[role=alert]").contains("revoke it first") && again.all(".once").is_empty());

    let listed = admin.page("/settings/tokens").await;
    let revoke: Vec<String> = listed.attributes("form[action$=revoke]", "action");
    let token = tokens::by_name(&site.pool, "ci of sentiment").await.unwrap().unwrap();
    let path = format!("/settings/tokens/{}/revoke", token.id);
    assert!(revoke.contains(&path), "{revoke:?}");
    assert_eq!(admin.post_from("cross-site", &path, &[]).await.status, StatusCode::FORBIDDEN);
    assert_eq!(read().await, StatusCode::OK);
    let done = admin.post(&path, &[]).await;
    assert_eq!((done.status, done.header("location")), (StatusCode::SEE_OTHER, "/settings/tokens"));
    assert_eq!(read().await, StatusCode::UNAUTHORIZED);
    assert_eq!(holder.get("/sentiment/history").await.status, StatusCode::NOT_FOUND, "its session is over too");
    let row = admin.page("/settings/tokens").await.table("Tokens");
    assert!(row.iter().any(|row| row[0] == "ci of sentiment" && row[6].contains("revoked")), "{row:?}");
}

#[tokio::test]
async fn what_is_wrong_with_a_form_is_told_beside_it() {
    let site = Site::new(&[]).await;
    let admin = site.signed_in(Scope::Admin, None).await;
    for (form, told) in [
        ([("name", "<b>"), ("scope", "read"), ("project", ""), ("days", "")], "does not fit"),
        ([("name", "x"), ("scope", "root"), ("project", ""), ("days", "")], "is no scope"),
        ([("name", "x"), ("scope", "read"), ("project", "A B"), ("days", "")], "project"),
        ([("name", "x"), ("scope", "read"), ("project", ""), ("days", "soon")], "is no number of days"),
        ([("name", "x"), ("scope", "read"), ("project", ""), ("days", "0")], "at least a minute"),
        ([("name", "server x"), ("scope", "read"), ("project", ""), ("days", "")], "is kept for"),
    ] {
        let page = admin.post("/settings/tokens", &form).await;
        assert_eq!(page.status, StatusCode::UNPROCESSABLE_ENTITY, "{form:?}");
        assert!(page.one("[role=alert]").contains(told), "{form:?}: {}", page.one("[role=alert]"));
        assert!(page.all(".once").is_empty() && !page.body.contains("<b>\""), "{form:?}");
    }
}

#[tokio::test]
async fn who_administers_one_project_reaches_no_other() {
    let site = Site::new(&[]).await;
    let foreign = site.token("of another", Scope::Read, Some("other")).await;
    let own = site.signed_in(Scope::Admin, Some("mine")).await;
    assert_eq!(own.get("/settings/tokens").await.status, StatusCode::FORBIDDEN);
    assert_eq!(own.get("/other/settings").await.status, StatusCode::FORBIDDEN);
    let page = own.page("/mine/settings").await;
    assert!(!page.body.contains("of another"));
    assert!(page.all("form[action='/mine/settings/tokens'] select[name=project]").is_empty());

    // A form that names another project makes a token of this one.
    let form = [("name", "narrow"), ("scope", "admin"), ("project", "other"), ("days", "")];
    let made = own.post("/mine/settings/tokens", &form).await;
    assert_eq!((made.status, made.all(".once").len()), (StatusCode::OK, 1), "{}", made.body);
    let token = tokens::by_name(&site.pool, "narrow").await.unwrap().unwrap();
    assert_eq!(token.project.as_ref().map(|project| project.as_str()), Some("mine"));

    let path = format!("/mine/settings/tokens/{}/revoke", foreign.id);
    assert_eq!(own.post(&path, &[]).await.status, StatusCode::NOT_FOUND);
    assert!(tokens::by_name(&site.pool, "of another").await.unwrap().is_some(), "it is in use");
    let path = format!("/mine/settings/tokens/{}/revoke", token.id);
    assert_eq!(own.post(&path, &[]).await.header("location"), "/mine/settings#tokens");
    assert!(tokens::by_name(&site.pool, "narrow").await.unwrap().is_none());
}

#[tokio::test]
async fn a_project_becomes_private_and_public_again() {
    let site = Site::new(&[release("v1.0.0", 0, 10).report()]).await;
    let own = site.signed_in(Scope::Admin, Some("sentiment")).await;
    assert_eq!(own.page("/sentiment/settings").await.one(".say"), "Public: everybody who can connect reads it.");
    let done = own.post("/sentiment/settings/visibility", &[("visibility", "private")]).await;
    assert_eq!(done.header("location"), "/sentiment/settings#visibility");
    assert_eq!(site.get("/sentiment/history").await.status, StatusCode::NOT_FOUND);
    let page = own.page("/sentiment/settings").await;
    assert!(page.one(".say").starts_with("Private:") && page.one("header .private") == "Private");
    own.post("/sentiment/settings/visibility", &[("visibility", "public")]).await;
    site.page("/sentiment/history").await;
    assert!(own.post("/sentiment/settings/visibility", &[("visibility", "secret")]).await.status.is_client_error());
    let reader = site.signed_in(Scope::Agent, Some("sentiment")).await;
    let refused = reader.post("/sentiment/settings/visibility", &[("visibility", "private")]).await;
    assert_eq!(refused.status, StatusCode::FORBIDDEN);
}

#[tokio::test]
async fn a_policy_is_set_in_per_cent_and_what_does_not_fit_is_told_at_its_field() {
    let site = Site::new(&[]).await;
    let own = site.signed_in(Scope::Admin, Some("mine")).await;
    let path = "/mine/settings/policy";
    let shown = async |page: crate::site::Seen| -> Vec<String> {
        page.attributes("form[action$=policy] input", "value").into_iter().collect()
    };
    assert_eq!(shown(own.page("/mine/settings").await).await, ["10", "5", "0.1"]);
    let form = |p99, capacity, errors| {
        [
            ("p99_increase", p99),
            ("capacity_decrease", capacity),
            ("error_rate_points", errors),
            ("when_in_doubt", "pass"),
        ]
    };

    let wrong = own.post(path, &form("12", "<b>", "-1")).await;
    assert_eq!(wrong.status, StatusCode::UNPROCESSABLE_ENTITY);
    assert_eq!(wrong.attributes("[aria-invalid=true]", "name"), ["capacity_decrease", "error_rate_points"]);
    assert!(wrong.one("#capacity_decrease-wrong").contains("from 0 to 100"), "{}", wrong.body);
    assert!(wrong.all("#p99_increase-wrong").is_empty());
    assert_eq!(shown(wrong).await, ["12", "<b>", "-1"], "as they were filled in");
    assert_eq!(own.post_from("cross-site", path, &form("90", "90", "90")).await.status, StatusCode::FORBIDDEN);
    assert_eq!(shown(own.page("/mine/settings").await).await, ["10", "5", "0.1"], "nothing has changed");

    let done = own.post(path, &form("12.5", "7,5 %", "0")).await;
    assert_eq!((done.status, done.header("location")), (StatusCode::SEE_OTHER, "/mine/settings#policy"));
    assert_eq!(shown(own.page("/mine/settings").await).await, ["12.5", "7.5", "0"]);
    let stored: serde_json::Value = serde_json::from_str(&own.get("/api/v1/projects/mine/policy").await.body).unwrap();
    let expected = serde_json::json!({"p99_increase": 0.125, "capacity_decrease": 0.075, "error_rate_points": 0.0,
        "when_in_doubt": "pass"});
    assert_eq!(stored, expected);
    let acts = own.page("/audit").await.table("Acts");
    let set: Vec<_> = acts.iter().filter(|row| row[0] == "policy.set").collect();
    assert!(set.len() == 1 && set[0][5].contains("0.125"), "{acts:?}");

    let agent = site.signed_in(Scope::Agent, Some("mine")).await;
    assert_eq!(agent.post(path, &form("90", "90", "90")).await.status, StatusCode::FORBIDDEN);
}

#[tokio::test]
async fn a_project_lists_its_own_members() {
    let site = Site::new(&[]).await;
    let (own, all) = (site.signed_in(Scope::Admin, Some("mine")).await, site.signed_in(Scope::Admin, None).await);
    assert!(own.page("/mine/settings").await.body.contains("Nobody is a member."));
    for (login, scope, project) in [("ada", "upload", "mine"), ("grace", "admin", ""), ("emmy", "read", "other")] {
        all.post("/settings/members", &[("login", login), ("scope", scope), ("project", project)]).await;
    }
    let page = own.page("/mine/settings").await;
    let rows = page.table("Members");
    assert!(rows.len() == 1 && rows[0][..2] == ["@ada", "upload"], "{rows:?}");
    assert!(page.all("form[action='/settings/members/remove']").is_empty(), "which is not theirs to do");
    assert!(page.attributes("a", "href").iter().all(|href| href != "/settings/tokens#members"));
    let page = all.page("/mine/settings").await;
    assert!(page.attributes("a", "href").contains(&"/settings/tokens#members".to_owned()));
}

#[tokio::test]
async fn webhooks_are_added_with_a_secret_that_is_shown_once() {
    let site = Site::new(&[]).await;
    let own = site.signed_in(Scope::Admin, Some("mine")).await;
    for (url, why) in [("http://127.0.0.1/", "not public"), ("nonsense", "url")] {
        let page = own.post("/mine/settings/webhooks", &[("url", url)]).await;
        assert_eq!(page.status, StatusCode::UNPROCESSABLE_ENTITY, "{url}");
        assert!(page.one("[role=alert]").to_lowercase().contains(why), "{url}: {}", page.one("[role=alert]"));
    }
    let made = own.post("/mine/settings/webhooks", &[("url", "https://example.com/hook?a=<b>")]).await;
    assert_eq!((made.status, made.one(".once").len()), (StatusCode::OK, 64), "{}", made.body);
    let page = own.page("/mine/settings").await;
    assert!(!page.body.contains(&made.one(".once")));
    let rows = page.table("Webhooks");
    assert!(rows.len() == 1 && rows[0][0].starts_with("https://example.com/hook"), "{rows:?}");
    let remove = page.attributes("form[action$=remove]", "action");
    let other = site.signed_in(Scope::Admin, Some("other")).await;
    let elsewhere = remove[0].replace("/mine/", "/other/");
    assert_eq!(other.post(&elsewhere, &[]).await.status, StatusCode::NOT_FOUND);
    assert_eq!(own.post(&remove[0], &[]).await.header("location"), "/mine/settings#webhooks");
    assert!(own.page("/mine/settings").await.table("Webhooks").is_empty());
    assert_eq!(own.post(&remove[0], &[]).await.status, StatusCode::NOT_FOUND);
}

#[tokio::test]
async fn members_come_and_go() {
    let site = Site::new(&[]).await;
    let admin = site.signed_in(Scope::Admin, None).await;
    let put = admin.post("/settings/members", &[("login", "@Octo-Cat"), ("scope", "upload"), ("project", "")]).await;
    assert_eq!(put.header("location"), "/settings/tokens#members", "{}", put.body);
    let rows = admin.page("/settings/tokens").await.table("Members");
    assert_eq!(rows[0][..3], ["@octo-cat", "upload", "all"]);
    let bad = admin.post("/settings/members", &[("login", "a b"), ("scope", "read"), ("project", "")]).await;
    assert_eq!(bad.status, StatusCode::UNPROCESSABLE_ENTITY);
    admin.post("/settings/members/remove", &[("login", "octo-cat"), ("project", "")]).await;
    assert!(admin.page("/settings/tokens").await.table("Members").is_empty());
}

#[tokio::test]
async fn the_audit_log_is_read_by_administrators_each_their_part() {
    let site = Site::new(&[]).await;
    let mine = site.signed_in(Scope::Admin, Some("mine")).await;
    let all = site.signed_in(Scope::Admin, None).await;
    mine.post("/mine/settings/visibility", &[("visibility", "private")]).await;
    all.post("/settings/tokens", &[("name", "fresh"), ("scope", "read"), ("project", ""), ("days", "30")]).await;

    assert_eq!(site.visitor().get("/audit").await.status, StatusCode::UNAUTHORIZED);
    let page = all.page("/audit").await;
    let acts: Vec<String> = page.table("Acts").into_iter().map(|row| row[0].clone()).collect();
    assert!(acts.contains(&"token.create".to_owned()) && acts.contains(&"project.visibility".to_owned()), "{acts:?}");
    assert!(
        page.one(".say").contains("The last privileged act on this server was token.create"),
        "{}",
        page.one(".say")
    );

    let page = mine.page("/audit").await;
    assert!(page.table("Acts").iter().all(|row| row[3] == "mine") && !page.body.contains("fresh"));
    assert!(page.table("Acts").iter().any(|row| row[0] == "project.visibility" && row[5] == "visibility: private"));
    assert_eq!(mine.get("/audit?project=other").await.status, StatusCode::FORBIDDEN);
    assert_eq!(all.page("/audit?project=mine").await.table("Acts").len(), page.table("Acts").len());
}

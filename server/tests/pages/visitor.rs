//! A person with a browser: keeps cookies, sends forms from our own pages.

use std::collections::BTreeMap;
use std::sync::Mutex;

use axum::body::Body;
use axum::http::{Request, StatusCode, header};
use plimsoll_domain::ids::ProjectSlug;
use plimsoll_server::access::{Grant, Scope, hash};
use plimsoll_server::store::{projects, tokens};

use crate::site::{Seen, Site};

pub(crate) struct Visitor<'a> {
    site: &'a Site,
    cookies: Mutex<BTreeMap<String, String>>,
}

impl Site {
    pub(crate) fn visitor(&self) -> Visitor<'_> {
        Visitor { site: self, cookies: Mutex::default() }
    }

    /// Signed in by a new token with this scope, for a project or for all.
    pub(crate) async fn signed_in(&self, scope: Scope, project: Option<&str>) -> Visitor<'_> {
        let name = format!("{} of {}", scope.name(), project.unwrap_or("all"));
        self.token(&name, scope, project).await;
        let visitor = self.visitor();
        let entered = visitor.post("/sign-in", &[("token", &name)]).await;
        assert_eq!((entered.status, entered.header("location")), (StatusCode::SEE_OTHER, "/"), "{}", entered.body);
        visitor
    }

    /// A token that is the same as its name.
    pub(crate) async fn token(&self, name: &str, scope: Scope, project: Option<&str>) -> tokens::Token {
        let project: Option<ProjectSlug> = project.map(|slug| slug.parse().expect("a project's name"));
        if let Some(project) = &project {
            projects::ensure(&self.pool, project, projects::Visibility::Public).await.expect("the project");
        }
        let grant = Grant { scope, project };
        let new = tokens::New { name, grant: &grant, created_by: "a test", lasts: None };
        let made = tokens::insert(&self.pool, &hash(name), &new).await.expect("the database");
        made.expect("a name that is free")
    }

    pub(crate) async fn make_private(&self, project: &str) {
        sqlx::query("update projects set visibility = 'private' where slug = $1")
            .bind(project)
            .execute(&self.pool)
            .await
            .expect("the project");
    }
}

impl Visitor<'_> {
    pub(crate) async fn get(&self, path: &str) -> Seen {
        self.send(Request::get(path).header("sec-fetch-site", "same-origin"), Body::empty()).await
    }

    /// A page that must be there.
    pub(crate) async fn page(&self, path: &str) -> Seen {
        let seen = self.get(path).await;
        assert_eq!(seen.status, StatusCode::OK, "{path}: {}", seen.body);
        seen
    }

    /// Sends a form of ours.
    pub(crate) async fn post(&self, path: &str, fields: &[(&str, &str)]) -> Seen {
        self.post_from("same-origin", path, fields).await
    }

    /// Sends a form from a page that stands where `site` says.
    pub(crate) async fn post_from(&self, site: &str, path: &str, fields: &[(&str, &str)]) -> Seen {
        let form = url::form_urlencoded::Serializer::new(String::new()).extend_pairs(fields).finish();
        let request = Request::post(path)
            .header("sec-fetch-site", site)
            .header("content-type", "application/x-www-form-urlencoded");
        self.send(request, Body::from(form)).await
    }

    pub(crate) fn cookie(&self, name: &str) -> Option<String> {
        self.cookies.lock().expect("no test panics with it").get(name).cloned()
    }

    pub(crate) fn set_cookie(&self, name: &str, value: &str) {
        self.cookies.lock().expect("no test panics with it").insert(name.to_owned(), value.to_owned());
    }

    async fn send(&self, request: axum::http::request::Builder, body: Body) -> Seen {
        let cookies = self.cookies.lock().expect("no test panics with it").clone();
        let mut request = request.header("accept", "text/html,*/*").header("host", "plimsoll.test");
        if !cookies.is_empty() {
            let all: Vec<String> = cookies.iter().map(|(name, value)| format!("{name}={value}")).collect();
            request = request.header("cookie", all.join("; "));
        }
        let seen = self.site.send(request.body(body).expect("a request")).await;
        self.keep(&seen);
        seen
    }

    fn keep(&self, seen: &Seen) {
        let mut cookies = self.cookies.lock().expect("no test panics with it");
        for set in seen.headers.get_all(header::SET_COOKIE) {
            let set = set.to_str().expect("plain text");
            let (name, value) = set.split(';').next().and_then(|pair| pair.split_once('=')).expect("a cookie");
            match value {
                "" => cookies.remove(name),
                value => cookies.insert(name.to_owned(), value.to_owned()),
            };
        }
    }
}

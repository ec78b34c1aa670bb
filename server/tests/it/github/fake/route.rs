//! Which question is which, and the answers' form.

use std::collections::HashMap;

use axum::body::Body;
use axum::http::Response;
use serde_json::{Value, json};
use url::Url;

use super::auth::{self, Caller};
use super::model::{Model, Repository};
use super::{checks, comments, reads, shape};

/// Both are answers.
pub(super) type Handled = Result<Reply, Reply>;

#[derive(Debug)]
pub(super) struct Incoming<'a> {
    pub(super) method: &'a str,
    pub(super) segments: Vec<String>,
    pub(super) query: &'a HashMap<String, String>,
    pub(super) body: &'a Value,
    pub(super) caller: Caller,
}

#[derive(Debug)]
pub(super) struct Reply {
    pub(super) status: u16,
    headers: Vec<(&'static str, String)>,
    body: Value,
    /// A list's page after this one.
    next: Option<usize>,
    /// No such question.
    pub(super) unknown: bool,
}

pub(super) fn route(model: &mut Model, incoming: &Incoming<'_>) -> Handled {
    let segments: Vec<&str> = incoming.segments.iter().map(String::as_str).collect();
    match (incoming.method, incoming.caller, segments.as_slice()) {
        ("GET", Caller::App, ["app"]) => Ok(Reply::of(200, shape::app(model))),
        ("GET", Caller::App, ["app", "installations"]) => reads::installations(model, incoming),
        ("POST", Caller::App, ["app", "installations", id, "access_tokens"]) => auth::issue(model, number(id)?),
        ("GET", Caller::Installation(id), ["installation", "repositories"]) => reads::repositories(model, id, incoming),
        (_, Caller::Installation(installation), ["repos", owner, name, rest @ ..]) => {
            let id = model.find(installation, &format!("{owner}/{name}"), incoming)?;
            in_repository(model, id, incoming, rest)
        }
        (_, Caller::Installation(installation), ["repositories", id, rest @ ..]) => {
            let id = number(id)?;
            model.reaches(installation, id)?;
            in_repository(model, id, incoming, rest)
        }
        (_, _, ["app" | "repos" | "installation", ..]) => Err(Reply::told(401, "Requires authentication as another")),
        _ => Err(Reply::unknown()),
    }
}

fn in_repository(model: &mut Model, id: i64, incoming: &Incoming<'_>, rest: &[&str]) -> Handled {
    let need = |model: &Model, name, level| model.permits(name, level);
    match (incoming.method, rest) {
        ("GET", []) => Ok(Reply::of(200, shape::repository(model.at(id)))),
        ("GET", ["pulls"]) => need(model, "pull_requests", "read").and_then(|()| reads::pulls(model.at(id), incoming)),
        ("GET", ["pulls", n]) => {
            need(model, "pull_requests", "read")?;
            reads::pull(model.at(id), number(n)?)
        }
        ("GET", ["pulls", n, "files"]) => {
            need(model, "pull_requests", "read")?;
            reads::pull_files(model.at(id), number(n)?, incoming)
        }
        ("GET", ["compare", both]) => need(model, "contents", "read").and_then(|()| reads::compare(model.at(id), both)),
        ("GET", ["git", "ref", "tags", tag @ ..]) => {
            need(model, "contents", "read")?;
            reads::tag_ref(model.at(id), &tag.join("/"))
        }
        ("GET", ["git", "tags", sha]) => {
            need(model, "contents", "read").and_then(|()| reads::tag_object(model.at(id), sha))
        }
        ("GET", ["tags"]) => need(model, "contents", "read").and_then(|()| reads::tags(model.at(id), incoming)),
        ("GET", ["branches", name]) => need(model, "contents", "read").and_then(|()| reads::branch(model.at(id), name)),
        ("GET", ["rules", "branches", name]) => reads::rules(model.at(id), name, incoming),
        ("GET", ["contents", path @ ..]) => {
            need(model, "contents", "read")?;
            reads::contents(model.at(id), &path.join("/"), incoming)
        }
        ("GET", ["collaborators", login, "permission"]) => reads::permission(model, id, login),
        ("GET", ["commits", sha, "check-runs"]) => {
            need(model, "checks", "read").and_then(|()| checks::list(model.at(id), sha, incoming))
        }
        ("POST", ["check-runs"]) => need(model, "checks", "write").and_then(|()| checks::create(model, id, incoming)),
        ("PATCH", ["check-runs", run]) => {
            need(model, "checks", "write")?;
            checks::update(model, id, number(run)?, incoming)
        }
        ("GET", ["issues", n, "comments"]) => {
            need(model, "pull_requests", "read")?;
            comments::list(model.at(id), number(n)?, incoming)
        }
        ("POST", ["issues", n, "comments"]) => {
            need(model, "pull_requests", "write")?;
            comments::create(model, id, number(n)?, incoming)
        }
        ("PATCH", ["issues", "comments", comment]) => {
            need(model, "pull_requests", "write")?;
            comments::update(model, id, number(comment)?, incoming)
        }
        ("DELETE", ["issues", "comments", comment]) => {
            need(model, "pull_requests", "write")?;
            comments::delete(model, id, number(comment)?)
        }
        _ => Err(Reply::unknown()),
    }
}

fn number(text: &str) -> Result<i64, Reply> {
    text.parse().map_err(|_| Reply::missing())
}

impl Incoming<'_> {
    /// One page of a list, with its items between `wrap`.
    pub(super) fn page(&self, items: Vec<Value>, wrap: impl FnOnce(usize, Vec<Value>) -> Value) -> Reply {
        let asked = |name: &str| self.query.get(name).and_then(|text| text.parse::<usize>().ok()).filter(|n| *n > 0);
        let (size, page) = (asked("per_page").unwrap_or(30).min(100), asked("page").unwrap_or(1));
        let total = items.len();
        let next = (page * size < total).then_some(page + 1);
        let shown = items.into_iter().skip((page - 1) * size).take(size).collect();
        Reply { next, ..Reply::of(200, wrap(total, shown)) }
    }

    pub(super) fn list(&self, items: Vec<Value>) -> Reply {
        self.page(items, |_, shown| Value::Array(shown))
    }
}

impl Reply {
    pub(super) fn of(status: u16, body: Value) -> Self {
        Self { status, headers: Vec::new(), body, next: None, unknown: false }
    }

    pub(super) fn told(status: u16, message: &str) -> Self {
        Self::of(status, json!({ "message": message, "documentation_url": "https://docs.github.example/rest" }))
    }

    /// As GitHub's "Validation Failed".
    pub(super) fn invalid(message: &str) -> Self {
        Self::of(422, json!({ "message": "Validation Failed", "errors": [{ "code": "custom", "message": message }] }))
    }

    pub(super) fn text(status: u16, text: &str) -> Self {
        Self::of(status, Value::String(text.to_owned()))
    }

    pub(super) fn missing() -> Self {
        Self::told(404, "Not Found")
    }

    fn unknown() -> Self {
        Self { unknown: true, ..Self::missing() }
    }

    pub(super) fn header(mut self, name: &'static str, value: impl ToString) -> Self {
        self.headers.push((name, value.to_string()));
        self
    }

    /// `at` is the API's address and the request's, for links.
    pub(super) fn into_response(self, at: Option<(&str, &str)>) -> Response<Body> {
        let mut response = Response::builder().status(self.status);
        for (name, value) in self.headers {
            response = response.header(name, value);
        }
        if let (Some(next), Some((api, uri))) = (self.next, at) {
            let mut link = Url::parse(api).and_then(|api| api.join(uri)).expect("an address of ours");
            let rest: Vec<_> = link.query_pairs().into_owned().filter(|(name, _)| name != "page").collect();
            link.query_pairs_mut().clear().extend_pairs(rest).append_pair("page", &next.to_string());
            response = response.header("link", format!("<{link}>; rel=\"next\""));
        }
        let body = match self.body {
            Value::String(text) => Body::from(text),
            Value::Null => Body::empty(),
            json => Body::from(json.to_string()),
        };
        response.header("content-type", "application/json; charset=utf-8").body(body).expect("headers of ours")
    }
}

impl Model {
    pub(super) fn at(&self, id: i64) -> &Repository {
        &self.repositories[&id]
    }
}

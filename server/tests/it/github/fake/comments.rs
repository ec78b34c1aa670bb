//! The conversation of a pull request.

use serde_json::Value;

use super::model::{APP, Comment, Model, Repository, SLUG};
use super::route::{Handled, Incoming, Reply};
use super::shape;

/// In bytes.
const MAX_BODY: usize = 65_536;

pub(super) fn list(at: &Repository, pull: i64, incoming: &Incoming<'_>) -> Handled {
    at.pulls.get(&pull).ok_or_else(Reply::missing)?;
    let found = at.comments.values().filter(|comment| comment.pull == pull).map(shape::comment);
    Ok(incoming.list(found.collect()))
}

pub(super) fn create(model: &mut Model, repository: i64, pull: i64, incoming: &Incoming<'_>) -> Handled {
    let (id, created_at, body) = (model.next_id(), model.now(), body(incoming.body)?);
    let at = model.repo(repository);
    at.pulls.get(&pull).ok_or_else(Reply::missing)?;
    let login = Some(format!("{SLUG}[bot]"));
    let comment = Comment { id, pull, login, app_id: Some(APP), body, created_at, edits: 0 };
    let answer = shape::comment(&comment);
    at.comments.insert(id, comment);
    Ok(Reply::of(201, answer))
}

pub(super) fn update(model: &mut Model, repository: i64, id: i64, incoming: &Incoming<'_>) -> Handled {
    let comment = model.repo(repository).comments.get_mut(&id).ok_or_else(Reply::missing)?;
    comment.body = body(incoming.body)?;
    comment.edits += 1;
    Ok(Reply::of(200, shape::comment(comment)))
}

pub(super) fn delete(model: &mut Model, repository: i64, id: i64) -> Handled {
    model.repo(repository).comments.remove(&id).ok_or_else(Reply::missing)?;
    Ok(Reply::of(204, Value::Null))
}

fn body(given: &Value) -> Result<String, Reply> {
    match given["body"].as_str() {
        None | Some("") => Err(Reply::invalid("Body can't be blank")),
        Some(text) if text.len() > MAX_BODY => Err(Reply::invalid("Body is too long (maximum is 65536 characters)")),
        Some(text) => Ok(text.to_owned()),
    }
}

impl Repository {
    /// Those of the App on a pull request.
    pub(crate) fn ours(&self, pull: i64) -> Vec<&Comment> {
        self.comments.values().filter(|comment| comment.pull == pull && comment.app_id == Some(APP)).collect()
    }
}

//! One request and its answer; pages of a list by number. (With an address of one's own, the `next` links lead to
//! answers without the token.)

use std::future::{Future, poll_fn};
use std::pin::pin;
use std::time::Duration;

use futures_util::future::BoxFuture;
use hyper::body::{Body, Bytes};
use hyper::header::{ACCEPT, LINK, LOCATION};
use hyper::{HeaderMap, Method, Request};
use octocrab::Octocrab;
use serde::de::DeserializeOwned;
use serde_json::Value;

use super::{Error, Result};

#[derive(Debug)]
pub(super) struct Call<'a> {
    method: Method,
    /// With its query, encoded.
    path: String,
    body: Option<Value>,
    /// The permission it takes.
    needs: &'a str,
}

impl<'a> Call<'a> {
    pub(super) fn get(path: impl Into<String>) -> Self {
        Self::new(Method::GET, path)
    }

    pub(super) fn new(method: Method, path: impl Into<String>) -> Self {
        Self { method, path: path.into(), body: None, needs: "" }
    }

    pub(super) fn body(self, body: Value) -> Self {
        Self { body: Some(body), ..self }
    }

    /// For whoever reads that it is missing.
    pub(super) fn needs(self, permission: &'a str) -> Self {
        Self { needs: permission, ..self }
    }
}

#[derive(Debug)]
pub(super) struct Answer {
    status: u16,
    headers: HeaderMap,
    body: Vec<u8>,
}

impl Answer {
    pub(super) fn is_unauthorized(&self) -> bool {
        self.status == 401
    }

    pub(super) fn is_missing(&self) -> bool {
        matches!(self.status, 404 | 410)
    }

    /// Itself, if it is a success.
    pub(super) fn accepted(self, call: &Call<'_>) -> Result<Self> {
        match self.status {
            200..300 => Ok(self),
            status => Err(Error::of(status, &self.headers, &self.body, call.needs)),
        }
    }

    pub(super) fn json<T: DeserializeOwned>(&self) -> Result<T> {
        let odd =
            |error| Error::Refused { status: self.status, message: format!("an answer of another form: {error}") };
        serde_json::from_slice(&self.body).map_err(odd)
    }

    fn has_next(&self) -> bool {
        let mut links = self.headers.get_all(LINK).iter().filter_map(|link| link.to_str().ok());
        links.any(|link| link.contains(r#"rel="next""#))
    }
}

/// A hundred things with a comment or a patch each stay below it.
const MAX_ANSWER: usize = 16 << 20;

pub(super) async fn send(crab: &Octocrab, call: &Call<'_>, time: Duration) -> Result<Answer> {
    within(time, exchange(crab, call)).await
}

pub(super) async fn within<T>(time: Duration, answer: impl Future<Output = Result<T>>) -> Result<T> {
    let late = |_| Error::Unreachable(format!("nothing came within {time:?}"));
    tokio::time::timeout(time, answer).await.map_err(late)?
}

async fn exchange(crab: &Octocrab, call: &Call<'_>) -> Result<Answer> {
    let answer = once(crab, call, &call.path).await?;
    match moved(&answer) {
        Some(path) => once(crab, call, &path).await,
        None => Ok(answer),
    }
}

async fn once(crab: &Octocrab, call: &Call<'_>, path: &str) -> Result<Answer> {
    let request = Request::builder().method(&call.method).uri(path).header(ACCEPT, "application/vnd.github+json");
    let request = crab.build_request(request, call.body.as_ref()).map_err(|error| Error::unreachable(&error))?;
    let answer = crab.execute(request).await.map_err(|error| Error::unreachable(&error))?;
    let (head, body) = answer.into_parts();
    Ok(Answer { status: head.status.as_u16(), headers: head.headers, body: read(body).await? })
}

/// Where a repository with a new name is found. Requests with a body do not follow it by themselves.
fn moved(answer: &Answer) -> Option<String> {
    if !matches!(answer.status, 307 | 308) {
        return None;
    }
    let to = answer.headers.get(LOCATION)?.to_str().ok()?;
    // Only the path: the token goes to nobody else.
    let at = to.find("/repositories/")?;
    Some(to[at..].to_owned())
}

async fn read(body: impl Body<Data = Bytes, Error = octocrab::Error>) -> Result<Vec<u8>> {
    let mut body = pin!(body);
    let mut read = Vec::new();
    while let Some(frame) = poll_fn(|context| body.as_mut().poll_frame(context)).await {
        let frame = frame.map_err(|error| Error::unreachable(&error))?;
        let Ok(data) = frame.into_data() else { continue };
        if read.len() + data.len() > MAX_ANSWER {
            return Err(Error::Unreachable(format!("an answer of more than {} MiB", MAX_ANSWER >> 20)));
        }
        read.extend_from_slice(&data);
    }
    Ok(read)
}

/// The number of a page, from 1.
#[derive(Debug, Clone, Copy)]
pub(super) struct Page(usize);

impl Page {
    /// Of the list at this path.
    pub(super) fn of(self, path: &str) -> String {
        let joint = if path.contains('?') { '&' } else { '?' };
        format!("{path}{joint}per_page=100&page={}", self.0)
    }
}

/// A list, page by page, and whether that was all of it. `P` is a page as it travels. What asks is boxed: of an
/// asynchronous closure the compiler cannot tell whether another thread may go on with it.
pub(super) async fn pages<'a, P, T>(
    most: usize,
    ask: impl Fn(Page) -> BoxFuture<'a, Result<Answer>>,
) -> Result<(Vec<T>, bool)>
where
    P: DeserializeOwned + Into<Vec<T>>,
{
    let mut list = Vec::new();
    for number in 1..=most {
        let answer = ask(Page(number)).await?;
        list.extend(answer.json::<P>()?.into());
        if !answer.has_next() {
            return Ok((list, true));
        }
    }
    Ok((list, false))
}

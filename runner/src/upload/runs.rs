//! Runs that the server has others carry out.

use std::time::Duration;

use plimsoll_domain::ids::RunId;
use plimsoll_domain::job::{Run, RunRequest};
use reqwest::{Method, Response, header};
use url::Url;

use super::{Server, ServerError, Tried, answer, parse};

/// How long a stream of events may stay open; silence ends it much earlier.
const LONGEST_STREAM: Duration = Duration::from_secs(24 * 3_600);

impl Server {
    /// Asks for a run. Asking again with the same run id is no harm.
    pub async fn submit(&self, wanted: &RunRequest) -> Result<Run, ServerError> {
        let url = self.url("api/v1/runs")?;
        parse(&self.send(|| self.request(Method::POST, url.clone()).json(wanted)).await?)
    }

    /// Ends a run before its time.
    pub async fn cancel(&self, run: RunId, reason: &str) -> Result<Run, ServerError> {
        let url = self.url(&format!("api/v1/runs/{run}/cancel"))?;
        let reason = serde_json::json!({ "reason": reason });
        parse(&self.send(|| self.request(Method::POST, url.clone()).json(&reason)).await?)
    }

    /// The address of a page of the server.
    pub fn page(&self, path: &str) -> Option<Url> {
        let page = self.base.join(path.trim_start_matches('/')).ok()?;
        (page.origin() == self.base.origin()).then_some(page)
    }

    /// How a run stands. One try.
    pub(crate) async fn run(&self, run: RunId) -> Result<Run, Tried> {
        let url = self.url(&format!("api/v1/runs/{run}"))?;
        Ok(parse(&self.once(self.request(Method::GET, url)).await?)?)
    }

    /// The stream of a run's events after the one of this number. One try; `None`: there will be no more.
    pub(crate) async fn events(&self, run: RunId, after: Option<u64>) -> Result<Option<Response>, Tried> {
        let url = self.url(&format!("api/v1/runs/{run}/events"))?;
        let mut request = self.request(Method::GET, url).timeout(LONGEST_STREAM);
        if let Some(after) = after {
            request = request.header("last-event-id", after);
        }
        let request = self.authorized(request).await?;
        let mut request = request.build().map_err(|error| Tried::unreachable(error.to_string()))?;
        request.headers_mut().insert(header::ACCEPT, header::HeaderValue::from_static("text/event-stream"));
        let sent = self.client.execute(request).await;
        let response = sent.map_err(|error| Tried::unreachable(answer::causes(&error)))?;
        match response.status() {
            reqwest::StatusCode::NO_CONTENT => Ok(None),
            status if status.is_success() => Ok(Some(response)),
            _ => Err(answer::refusal(response).await),
        }
    }
}

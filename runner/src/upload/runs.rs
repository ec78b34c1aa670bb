//! Runs that the server has others carry out.

use plimsoll_domain::ids::RunId;
use plimsoll_domain::job::{Run, RunRequest};
use reqwest::Method;
use url::Url;

use super::{Server, ServerError, parse};

impl Server {
    /// Asks for a run. Asking again with the same run id is no harm.
    pub async fn submit(&self, wanted: &RunRequest) -> Result<Run, ServerError> {
        let url = self.url("api/v1/runs")?;
        parse(&self.send(|| self.request(Method::POST, url.clone()).json(wanted)).await?)
    }

    /// Ends a run before its time.
    pub async fn cancel(&self, run: RunId) -> Result<Run, ServerError> {
        let url = self.url(&format!("api/v1/runs/{run}/cancel"))?;
        parse(&self.send(|| self.request(Method::POST, url.clone())).await?)
    }

    /// The address of a page of the server.
    pub fn page(&self, path: &str) -> Option<Url> {
        let page = self.base.join(path.trim_start_matches('/')).ok()?;
        (page.origin() == self.base.origin()).then_some(page)
    }
}

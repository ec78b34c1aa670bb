//! The server, seen from the runner: pinned loads, uploads, policies, runs. Bounded in time, tries and bytes.

mod answer;
mod error;
mod package;
mod parts;
mod retry;
mod runs;
mod token;

use std::time::Duration;

use plimsoll_domain::comparison::Comparison;
use plimsoll_domain::ids::{Digest, ProjectSlug, RunId};
use plimsoll_domain::policy::Policy;
use plimsoll_domain::report::Report;
use reqwest::{Method, RequestBuilder, header};
use serde::{Deserialize, Serialize};
use url::Url;

use crate::exit::Failure;

pub(crate) use answer::{one_line, parse};
pub use error::ServerError;
pub(crate) use error::Tried;
pub use package::Package;
pub(crate) use package::ZSTD;
pub use retry::{Pauses, Wait};
pub use token::Token;

/// A Plimsoll server.
#[derive(Debug, Clone)]
pub struct Server {
    /// Ends with `/`.
    base: Url,
    token: Option<Token>,
    client: reqwest::Client,
}

/// The load at which a project's stability phase runs, as the server answers.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize)]
pub struct Pinned {
    pub workers: u32,
    pub capacity_workers: Option<u32>,
    pub run_id: Option<RunId>,
}

/// The answer to an upload.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Uploaded {
    pub run_id: RunId,
    /// The snapshot's or the comparison's page.
    pub url: Option<String>,
    pub comparison: Comparison,
    /// Whether the server did not have it yet.
    pub created: bool,
    /// Whether the verdict may decide a check; a server of an earlier version says nothing of it, and lets all decide.
    #[serde(default = "yes")]
    pub gates: bool,
    /// Why it may not.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub gates_not_because: Option<String>,
}

fn yes() -> bool {
    true
}

impl Uploaded {
    /// Why the verdict decides no check, if so.
    pub fn undecisive(&self) -> Option<&str> {
        const UNSAID: &str = "the server does not let it decide";
        (!self.gates).then(|| self.gates_not_because.as_deref().unwrap_or(UNSAID))
    }
}

impl Server {
    /// A server at an address; nothing is sent yet.
    pub fn new(address: &str, token: Option<String>) -> Result<Self, Failure> {
        let wrong = |why: &str| {
            Failure::usage(format!("--server {address:?} {why}"))
                .hint("write its address, for example https://plimsoll.example")
        };
        let mut base = Url::parse(address).map_err(|_| wrong("is no address"))?;
        if !matches!(base.scheme(), "http" | "https") || base.host_str().is_none_or(str::is_empty) {
            return Err(wrong("is no http or https address"));
        }
        if !base.path().ends_with('/') {
            base.set_path(&format!("{}/", base.path()));
        }
        let token = Token::fixed(token)?;
        let client = reqwest::Client::builder()
            .connect_timeout(Duration::from_secs(5))
            .timeout(Duration::from_secs(60))
            .redirect(reqwest::redirect::Policy::none())
            .user_agent(concat!("plimsoll/", env!("CARGO_PKG_VERSION")))
            .build()
            .map_err(|error| Failure::internal(format!("no client for the server: {error}")))?;
        Ok(Self { base, token, client })
    }

    /// Known by this token from now on.
    #[must_use]
    pub fn known_by(self, token: Token) -> Self {
        Self { token: Some(token), ..self }
    }

    pub fn address(&self) -> &str {
        self.base.as_str().trim_end_matches('/')
    }

    /// The pinned load of a project on a testbed; `None` when nothing pins it yet.
    pub async fn pinned_load(
        &self,
        project: &ProjectSlug,
        plan: &Digest,
        testbed: &Digest,
    ) -> Result<Option<Pinned>, ServerError> {
        let mut url = self.url(&format!("api/v1/projects/{project}/pinned-load"))?;
        url.query_pairs_mut().append_pair("plan", plan.as_str()).append_pair("testbed", testbed.as_str());
        match self.send(|| self.request(Method::GET, url.clone())).await {
            Ok(bytes) => parse(&bytes).map(Some),
            Err(ServerError::Refused { status: 404, problem: true, .. }) => Ok(None),
            Err(error) => Err(error),
        }
    }

    /// Whether this is a server to which this token may upload, asked before a long run rather than after it: an upload
    /// without a report is refused for its content only once its token is accepted. A server that cannot be reached may
    /// come back until then.
    pub async fn accepts_token(&self) -> Result<(), ServerError> {
        let url = self.url("api/v1/snapshots")?;
        let empty = || self.request(Method::POST, url.clone()).header(header::CONTENT_TYPE, "application/json");
        match self.send(empty).await {
            Err(error @ ServerError::Refused { status: 300..=399 | 401 | 403 | 404 | 405, .. }) => Err(error),
            _ => Ok(()),
        }
    }

    /// Sends a report, with a few tries. Sending it again is no harm: the server knows it by its run id.
    pub async fn upload(&self, report: &Report) -> Result<Uploaded, ServerError> {
        let package = Package::of(report).map_err(ServerError::Strange)?;
        self.deliver(&package, Pauses::few(), &mut |_| {}).await
    }

    /// Sends a report for as long as `pauses` go on; `tell` hears of each. What the server has it does not get again.
    pub async fn deliver(
        &self,
        package: &Package,
        mut pauses: Pauses,
        tell: &mut (dyn FnMut(&Wait<'_>) + Send),
    ) -> Result<Uploaded, ServerError> {
        loop {
            let before = package.arrived();
            let tried = match self.try_to_deliver(package).await {
                Ok(uploaded) => return Ok(uploaded),
                Err(tried) => tried,
            };
            if package.arrived() > before {
                pauses.restart();
            }
            let pause = tried.pause(&mut pauses)?;
            tell(&pauses.wait(&tried, pause));
            tokio::time::sleep(pause).await;
        }
    }

    /// One try. A server of an earlier version refuses zstd, by its name or, in parts, by its bytes, and gets gzip.
    pub(crate) async fn try_to_deliver(&self, package: &Package) -> Result<Uploaded, Tried> {
        let tried = match self.try_once(package).await {
            Err(tried) => tried,
            uploaded => return uploaded,
        };
        let is_unknown = match tried.status() {
            Some(415) => true,
            Some(400) => package.is_large(),
            _ => false,
        };
        match is_unknown.then(|| package.as_gzip()) {
            Some(Ok(Some(gzip))) => self.try_once(&gzip).await,
            _ => Err(tried),
        }
    }

    /// A large report goes in parts, from where the server says.
    async fn try_once(&self, package: &Package) -> Result<Uploaded, Tried> {
        if package.is_large()
            && let Some(uploaded) = self.in_parts(package).await?
        {
            return Ok(uploaded);
        }
        let url = self.url("api/v1/snapshots")?;
        let request = self
            .request(Method::POST, url)
            .header(header::CONTENT_TYPE, "application/json")
            .header(header::CONTENT_ENCODING, package.encoding())
            .body(package.bytes().to_vec());
        Ok(parse(&self.once(request).await?)?)
    }

    /// Makes a policy the project's.
    pub async fn push_policy(&self, project: &ProjectSlug, policy: &Policy) -> Result<(), ServerError> {
        let url = self.url(&format!("api/v1/projects/{project}/policy"))?;
        self.send(|| self.request(Method::PUT, url.clone()).json(policy)).await.map(drop)
    }

    pub(crate) fn url(&self, path: &str) -> Result<Url, ServerError> {
        self.base.join(path).map_err(|error| ServerError::Strange(error.to_string()))
    }

    pub(crate) fn request(&self, method: Method, url: Url) -> RequestBuilder {
        self.client.request(method, url).header(header::ACCEPT, "application/json")
    }

    /// Sends until there is an answer that stands, with a few pauses between the tries.
    pub(crate) async fn send(&self, request: impl Fn() -> RequestBuilder) -> Result<Vec<u8>, ServerError> {
        let mut pauses = Pauses::few();
        loop {
            match self.once(request()).await {
                Ok(bytes) => return Ok(bytes),
                Err(tried) => tokio::time::sleep(tried.pause(&mut pauses)?).await,
            }
        }
    }

    /// Sends once: the body of an answer that says yes.
    pub(crate) async fn once(&self, request: RequestBuilder) -> Result<Vec<u8>, Tried> {
        self.once_within(request, MAX_ANSWER).await
    }

    /// The same for an answer of at most so many bytes.
    pub(crate) async fn once_within(&self, request: RequestBuilder, most: usize) -> Result<Vec<u8>, Tried> {
        let request = self.authorized(request).await?;
        let response = request.send().await.map_err(|error| Tried::unreachable(answer::causes(&error)))?;
        match response.status().is_success() {
            // One that breaks off is asked for again: what was sent is known by its run id.
            true => Ok(answer::body(response, most).await?),
            false => Err(answer::refusal(response).await),
        }
    }
}

const MAX_ANSWER: usize = 16 << 20;

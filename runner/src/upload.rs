//! The server, seen from the runner: pinned loads, uploads, policies. Bounded in time, tries and bytes.

use std::io::Write as _;
use std::time::Duration;

use plimsoll_domain::comparison::Comparison;
use plimsoll_domain::ids::{Digest, ProjectSlug, RunId};
use plimsoll_domain::policy::Policy;
use plimsoll_domain::report::Report;
use reqwest::{Method, RequestBuilder, Response, StatusCode, header};
use serde::{Deserialize, Serialize};
use url::Url;

use crate::exit::{Exit, Failure};

/// A Plimsoll server.
#[derive(Debug)]
pub struct Server {
    /// Ends with `/`.
    base: Url,
    token: Option<Token>,
    client: reqwest::Client,
}

/// A bearer token. Never shown.
#[derive(Clone)]
pub struct Token(String);

impl std::fmt::Debug for Token {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("Token(…)")
    }
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
}

/// Why the server did not do what was asked.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum ServerError {
    /// No answer, or one that says to come back later, after all tries.
    Unreachable(String),
    /// It answered, and said no; `problem`: in a problem document, as a Plimsoll server does.
    Refused { status: u16, message: String, problem: bool },
    /// It answered something that is not the answer.
    Strange(String),
}

/// Pauses between the tries.
const PAUSES: [Duration; 3] = [Duration::from_millis(500), Duration::from_secs(1), Duration::from_secs(2)];
/// The longest pause that a server may ask for.
const LONGEST_PAUSE: Duration = Duration::from_secs(10);
const MAX_ANSWER: usize = 16 << 20;
/// Larger reports are compressed on the way.
const GZIP_FROM: usize = 64 << 10;

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
        let token = token.filter(|token| !token.is_empty());
        if token.as_deref().is_some_and(|token| !token.bytes().all(|b| b.is_ascii_graphic())) {
            return Err(Failure::usage("the token holds a blank or another character that no token has"));
        }
        let client = reqwest::Client::builder()
            .connect_timeout(Duration::from_secs(5))
            .timeout(Duration::from_secs(60))
            .redirect(reqwest::redirect::Policy::none())
            .user_agent(concat!("plimsoll/", env!("CARGO_PKG_VERSION")))
            .build()
            .map_err(|error| Failure::internal(format!("no client for the server: {error}")))?;
        Ok(Self { base, token: token.map(Token), client })
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

    /// Sends a report. Sending it again is no harm: the server knows it by its run id.
    pub async fn upload(&self, report: &Report) -> Result<Uploaded, ServerError> {
        let url = self.url("api/v1/snapshots")?;
        let plain = report.to_json().into_bytes();
        let (body, encoding) = match plain.len() {
            0..GZIP_FROM => (plain, None),
            _ => (gzip(&plain).map_err(ServerError::Strange)?, Some("gzip")),
        };
        let request = || {
            let request = self
                .request(Method::POST, url.clone())
                .header(header::CONTENT_TYPE, "application/json")
                .body(body.clone());
            match encoding {
                Some(encoding) => request.header(header::CONTENT_ENCODING, encoding),
                None => request,
            }
        };
        parse(&self.send(request).await?)
    }

    /// Makes a policy the project's.
    pub async fn push_policy(&self, project: &ProjectSlug, policy: &Policy) -> Result<(), ServerError> {
        let url = self.url(&format!("api/v1/projects/{project}/policy"))?;
        self.send(|| self.request(Method::PUT, url.clone()).json(policy)).await.map(drop)
    }

    fn url(&self, path: &str) -> Result<Url, ServerError> {
        self.base.join(path).map_err(|error| ServerError::Strange(error.to_string()))
    }

    fn request(&self, method: Method, url: Url) -> RequestBuilder {
        let request = self.client.request(method, url).header(header::ACCEPT, "application/json");
        match &self.token {
            Some(Token(token)) => request.bearer_auth(token),
            None => request,
        }
    }

    /// Sends until there is an answer that stands, with pauses between the tries.
    async fn send(&self, request: impl Fn() -> RequestBuilder) -> Result<Vec<u8>, ServerError> {
        let mut pauses = PAUSES.iter();
        loop {
            let (error, asked) = match request().send().await {
                Ok(response) if comes_back(response.status()) => {
                    let asked = retry_after(&response);
                    (ServerError::Unreachable(refusal(response).await.1), asked)
                }
                // An answer that breaks off is asked for again: what was sent is known by its run id.
                Ok(response) if response.status().is_success() => match body(response).await {
                    Err(ServerError::Unreachable(why)) => (ServerError::Unreachable(why), None),
                    answer => return answer,
                },
                Ok(response) if response.status().is_redirection() => {
                    let to = response.headers().get(header::LOCATION).and_then(|to| to.to_str().ok()).unwrap_or("?");
                    let message = format!("it redirects to {to:?}; give that address itself");
                    return Err(ServerError::Refused { status: response.status().as_u16(), message, problem: false });
                }
                Ok(response) => {
                    let (status, message, problem) = refusal(response).await;
                    return Err(ServerError::Refused { status, message, problem });
                }
                Err(error) => (ServerError::Unreachable(causes(&error)), None),
            };
            let Some(pause) = pauses.next() else { return Err(error) };
            tokio::time::sleep(asked.unwrap_or(*pause).min(LONGEST_PAUSE)).await;
        }
    }
}

impl ServerError {
    /// The failure of a command that needed the server.
    pub fn failure(self, server: &Server) -> Failure {
        let at = server.address();
        match self {
            Self::Unreachable(why) => Failure::new(
                "unreachable",
                Exit::Unreachable,
                format!("the server at {at} could not be reached: {why}"),
            ),
            Self::Refused { status: 401 | 403, message, .. } => {
                Failure::new("refused", Exit::Usage, format!("the server at {at} refuses: {message}"))
                    .hint("set PLIMSOLL_TOKEN, or --token, to a token of this server that may do this")
            }
            Self::Refused { status: 300..=399 | 404 | 405, message, .. } => {
                Failure::new("refused", Exit::Usage, format!("the server at {at} refuses: {message}"))
                    .hint("is --server the address of a Plimsoll server?")
            }
            Self::Refused { message, .. } => {
                Failure::new("refused", Exit::Failed, format!("the server at {at} refuses: {message}"))
            }
            Self::Strange(why) => Failure::new(
                "strange_answer",
                Exit::Unreachable,
                format!("{at} does not answer like a Plimsoll server: {why}"),
            ),
        }
    }
}

fn comes_back(status: StatusCode) -> bool {
    status.is_server_error() || status == StatusCode::TOO_MANY_REQUESTS || status == StatusCode::REQUEST_TIMEOUT
}

fn retry_after(response: &Response) -> Option<Duration> {
    let seconds = response.headers().get(header::RETRY_AFTER)?.to_str().ok()?.trim().parse().ok()?;
    Some(Duration::from_secs(seconds))
}

/// The status and what a problem document says, or the status' own words; whether there was such a document.
async fn refusal(response: Response) -> (u16, String, bool) {
    #[derive(Deserialize)]
    struct Problem {
        title: Option<String>,
        detail: Option<String>,
    }
    let status = response.status();
    let problem: Option<Problem> = body(response).await.ok().and_then(|bytes| serde_json::from_slice(&bytes).ok());
    let said = problem.and_then(|problem| match (problem.title, problem.detail) {
        (Some(title), Some(detail)) => Some(format!("{title}: {detail}")),
        (title, detail) => title.or(detail),
    });
    let problem = said.is_some();
    let words = || format!("status {status}");
    // What another machine says goes onto a terminal: one bounded line without control characters.
    let text: String = said.unwrap_or_else(words).chars().filter(|c| !c.is_control()).take(500).collect();
    (status.as_u16(), text, problem)
}

async fn body(mut response: Response) -> Result<Vec<u8>, ServerError> {
    let mut bytes = Vec::new();
    while let Some(chunk) = response.chunk().await.map_err(|error| ServerError::Unreachable(causes(&error)))? {
        bytes.extend_from_slice(&chunk);
        if bytes.len() > MAX_ANSWER {
            return Err(ServerError::Strange(format!("an answer of more than {MAX_ANSWER} bytes")));
        }
    }
    Ok(bytes)
}

fn parse<T: for<'de> Deserialize<'de>>(bytes: &[u8]) -> Result<T, ServerError> {
    serde_json::from_slice(bytes).map_err(|error| ServerError::Strange(error.to_string()))
}

fn gzip(plain: &[u8]) -> Result<Vec<u8>, String> {
    let mut encoder = flate2::write::GzEncoder::new(Vec::new(), flate2::Compression::default());
    encoder.write_all(plain).and_then(|()| encoder.finish()).map_err(|error| error.to_string())
}

/// The innermost cause: "connection refused" rather than "error sending request".
fn causes(error: &reqwest::Error) -> String {
    if error.is_timeout() {
        return "no answer in time".to_owned();
    }
    let mut cause: &dyn std::error::Error = error;
    while let Some(inner) = cause.source() {
        cause = inner;
    }
    cause.to_string()
}

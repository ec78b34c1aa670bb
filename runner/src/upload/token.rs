//! By what a request is known to the server: a token of the server's, or the identity of a workflow of GitHub Actions,
//! which GitHub vouches for.

use std::sync::Arc;
use std::time::{Duration, Instant};

use reqwest::{RequestBuilder, header};
use serde::Deserialize;
use tokio::sync::Mutex;
use url::Url;

use super::{Server, Tried, answer};
use crate::exit::Failure;
use crate::plan::Environment;

/// A bearer token. Never shown.
#[derive(Clone)]
pub struct Token(Kind);

#[derive(Clone)]
enum Kind {
    Fixed(String),
    Workflow(Arc<Workflow>),
}

/// Where GitHub gives out identity tokens to this job. Such a token lasts minutes, and a run longer: each is asked for
/// when it is needed.
struct Workflow {
    url: Url,
    secret: String,
    held: Mutex<Option<(Instant, String)>>,
}

/// A token is used for so long; GitHub's last five minutes.
const FRESH: Duration = Duration::from_secs(60);
const WITHIN: Duration = Duration::from_secs(10);
const LONGEST: usize = 64 << 10;

impl std::fmt::Debug for Token {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("Token(…)")
    }
}

impl Token {
    /// `None` for an empty one, which is as good as unset.
    pub(super) fn fixed(token: Option<String>) -> Result<Option<Self>, Failure> {
        let token = token.filter(|token| !token.is_empty());
        if token.as_deref().is_some_and(|token| !token.bytes().all(|b| b.is_ascii_graphic())) {
            return Err(Failure::usage("the token holds a blank or another character that no token has"));
        }
        Ok(token.map(|token| Self(Kind::Fixed(token))))
    }

    /// The identity of the workflow that this runs in, made out to `audience`.
    pub fn of_workflow(audience: &str, environment: Environment) -> Result<Self, Failure> {
        let set = |name: &str| environment(name).filter(|value| !value.is_empty());
        let (Some(url), Some(secret)) = (set("ACTIONS_ID_TOKEN_REQUEST_URL"), set("ACTIONS_ID_TOKEN_REQUEST_TOKEN"))
        else {
            return Err(Failure::usage(
                "GitHub gives this job no identity token: ACTIONS_ID_TOKEN_REQUEST_URL is not set",
            )
            .hint("give the job `permissions: id-token: write`; a pull request from a fork never gets one"));
        };
        let strange = || Failure::usage("ACTIONS_ID_TOKEN_REQUEST_URL is no http or https address");
        let mut url = Url::parse(&url).map_err(|_| strange())?;
        if !matches!(url.scheme(), "http" | "https") {
            return Err(strange());
        }
        url.query_pairs_mut().append_pair("audience", audience);
        Ok(Self(Kind::Workflow(Arc::new(Workflow { url, secret, held: Mutex::default() }))))
    }
}

impl Server {
    /// With the token that this request shows.
    pub(super) async fn authorized(&self, request: RequestBuilder) -> Result<RequestBuilder, Tried> {
        match &self.token {
            None => Ok(request),
            Some(Token(Kind::Fixed(token))) => Ok(request.bearer_auth(token)),
            Some(Token(Kind::Workflow(workflow))) => Ok(request.bearer_auth(workflow.token(&self.client).await?)),
        }
    }
}

impl Workflow {
    async fn token(&self, client: &reqwest::Client) -> Result<String, Tried> {
        #[derive(Deserialize)]
        struct Given {
            value: String,
        }
        let mut held = self.held.lock().await;
        if let Some((_, token)) = held.as_ref().filter(|(since, _)| since.elapsed() < FRESH) {
            return Ok(token.clone());
        }
        let failed = |why: String| Tried::unreachable(format!("GitHub gives no identity token: {why}"));
        let asked = Instant::now();
        let request = client.get(self.url.clone()).bearer_auth(&self.secret).timeout(WITHIN);
        let response = request.header(header::ACCEPT, "application/json").send().await;
        // The address and the answer may hold what others must not see.
        let response = response.map_err(|error| failed(answer::causes(&error.without_url())))?;
        if !response.status().is_success() {
            return Err(failed(format!("status {}", response.status())));
        }
        let bytes = answer::body(response, LONGEST).await.map_err(|error| failed(error.why().to_owned()))?;
        let given = serde_json::from_slice::<Given>(&bytes).ok().map(|given| given.value);
        let token = given.filter(|token| !token.is_empty() && token.bytes().all(|b| b.is_ascii_graphic()));
        let token = token.ok_or_else(|| failed("its answer has another form".to_owned()))?;
        *held = Some((asked, token.clone()));
        Ok(token)
    }
}

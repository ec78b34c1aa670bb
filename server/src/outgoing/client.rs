//! The client: no redirects, no proxy of the environment, bounded in time, and no word of the answer is kept but its
//! status.

use std::error::Error as _;
use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;

use reqwest::dns::{Addrs, Name, Resolve, Resolving};
use reqwest::header::HeaderMap;
use tokio::sync::OnceCell;
use url::{Host, Url};

use super::address::is_public;

const CONNECT_WITHIN: Duration = Duration::from_secs(5);
/// From the look-up of the name to the answer's head.
pub(crate) const ANSWER_WITHIN: Duration = Duration::from_secs(10);
const MAX_URL: usize = 2_000;

/// Sends requests where people want them.
#[derive(Debug)]
pub struct Outgoing {
    allow_private: bool,
    /// Made with the first request: a host without trusted certificates serves nevertheless.
    client: OnceCell<reqwest::Client>,
}

/// Where to: an address in the form that is allowed.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Target(Url);

/// Why an address is not asked.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum Refused {
    #[error("this is no URL: {0}")]
    Form(url::ParseError),
    #[error("the URL has more than {MAX_URL} characters")]
    Long,
    #[error("the URL must start with http:// or https://")]
    Scheme,
    #[error("the URL must carry no user name and no password")]
    Credentials,
    /// Not which one: that would tell about the network behind the server.
    #[error("the address is not public; only with --allow-private-webhooks does the server send there")]
    Private,
}

#[derive(Debug, thiserror::Error)]
pub enum SendError {
    #[error(transparent)]
    Refused(#[from] Refused),
    #[error("no answer within {} s", ANSWER_WITHIN.as_secs())]
    Timeout,
    #[error("no connection")]
    Connect,
    #[error("the connection broke off")]
    Broken,
    #[error("no client for requests: {0}")]
    Client(reqwest::Error),
}

impl Outgoing {
    pub fn new(allow_private: bool) -> Self {
        Self { allow_private, client: OnceCell::new() }
    }

    /// Checks the form, and the address where it stands in the URL itself. A name is checked when it is resolved, for
    /// each request.
    pub fn target(&self, text: &str) -> Result<Target, Refused> {
        if text.len() > MAX_URL {
            return Err(Refused::Long);
        }
        let mut url = Url::parse(text.trim()).map_err(Refused::Form)?;
        if !matches!(url.scheme(), "http" | "https") {
            return Err(Refused::Scheme);
        }
        if !url.username().is_empty() || url.password().is_some() {
            return Err(Refused::Credentials);
        }
        let public = match url.host() {
            Some(Host::Ipv4(address)) => is_public(address.into()),
            Some(Host::Ipv6(address)) => is_public(address.into()),
            Some(Host::Domain(_)) => true,
            None => return Err(Refused::Form(url::ParseError::EmptyHost)),
        };
        if !public && !self.allow_private {
            return Err(Refused::Private);
        }
        url.set_fragment(None);
        Ok(Target(url))
    }

    /// Sends it once and returns the status. The answer's body is not read.
    pub async fn post(&self, target: &Target, headers: HeaderMap, body: Vec<u8>) -> Result<u16, SendError> {
        let client = self.client.get_or_try_init(async || self.build()).await.map_err(SendError::Client)?;
        let answer = client.post(target.0.clone()).headers(headers).body(body).send().await.map_err(classify)?;
        Ok(answer.status().as_u16())
    }

    fn build(&self) -> Result<reqwest::Client, reqwest::Error> {
        // Does nothing where the program has chosen one.
        let _ = rustls::crypto::ring::default_provider().install_default();
        reqwest::Client::builder()
            .user_agent(concat!("plimsoll-server/", env!("CARGO_PKG_VERSION")))
            .dns_resolver(Arc::new(Resolver { allow_private: self.allow_private }))
            .redirect(reqwest::redirect::Policy::none())
            .no_proxy()
            // Each request resolves and checks anew.
            .pool_max_idle_per_host(0)
            .connect_timeout(CONNECT_WITHIN)
            .timeout(ANSWER_WITHIN)
            .build()
    }
}

impl Target {
    /// For a log and the audit: paths and queries of webhooks often hold secrets.
    pub fn origin(&self) -> String {
        self.0.origin().ascii_serialization()
    }

    pub fn as_str(&self) -> &str {
        self.0.as_str()
    }
}

/// Resolves names for the connections themselves: what was checked here is what is connected to.
#[derive(Debug)]
struct Resolver {
    allow_private: bool,
}

impl Resolve for Resolver {
    fn resolve(&self, name: Name) -> Resolving {
        let allow_private = self.allow_private;
        Box::pin(async move {
            // The port is the URL's, whatever is said here.
            let found: Vec<SocketAddr> = tokio::net::lookup_host((name.as_str(), 0)).await?.collect();
            // One that has both kinds is as suspicious.
            if !allow_private && !found.iter().all(|address| is_public(address.ip())) {
                return Err(Refused::Private.into());
            }
            Ok(Box::new(found.into_iter()) as Addrs)
        })
    }
}

fn classify(error: reqwest::Error) -> SendError {
    let mut cause = error.source();
    while let Some(inner) = cause {
        if let Some(refused) = inner.downcast_ref::<Refused>() {
            return SendError::Refused(refused.clone());
        }
        cause = inner.source();
    }
    if error.is_timeout() {
        SendError::Timeout
    } else if error.is_connect() {
        SendError::Connect
    } else {
        SendError::Broken
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn private(url: &str) -> bool {
        Outgoing::new(true).target(url).unwrap_or_else(|e| panic!("{url}: {e}"));
        Outgoing::new(false).target(url) == Err(Refused::Private)
    }

    #[test]
    fn an_address_is_known_in_every_spelling() {
        for host in [
            "127.0.0.1",
            "127.0.0.1.",
            "0x7f.1",
            "0x7f000001",
            "2130706433",
            "017700000001",
            "127.1",
            "0",
            "0.0.0.0",
            "%31%32%37.0.0.1",
            "１２７.0.0.1",
            "10.0.0.1:8080",
            "[::1]",
            "[::]",
            "[::ffff:10.0.0.1]",
            "[::ffff:7f00:1]",
            "[0:0:0:0:0:ffff:a9fe:a9fe]",
            "[64:ff9b::10.0.0.1]",
            "[2002:7f00:1::]",
            "[fe80::1]",
            "[fd00::1]",
            "169.254.169.254",
            "0xa9.0xfe.0xa9.0xfe",
            "100.64.0.1",
            "3232235777",
        ] {
            assert!(private(&format!("http://{host}/hook")), "{host}");
        }
        for host in ["example.com", "1.1.1.1", "0x1.1.1.1", "[2606:4700:4700::1111]", "[::ffff:1.1.1.1]"] {
            assert!(!private(&format!("https://{host}/hook")), "{host}");
        }
    }

    #[test]
    fn only_plain_web_addresses_are_taken() {
        let all = Outgoing::new(true);
        for (url, why) in [
            ("ftp://example.com/", Refused::Scheme),
            ("file:///etc/passwd", Refused::Scheme),
            ("javascript:alert(1)", Refused::Scheme),
            ("http://user@example.com/", Refused::Credentials),
            ("http://:secret@example.com/", Refused::Credentials),
        ] {
            assert_eq!(all.target(url), Err(why), "{url}");
        }
        for url in ["", "/path", "http://", "http://[::1", "http://exa mple.com/", "http://256.0.0.1/"] {
            assert!(matches!(all.target(url), Err(Refused::Form(_))), "{url}");
        }
        assert_eq!(all.target(&format!("http://example.com/{}", "x".repeat(MAX_URL))), Err(Refused::Long));
        assert_eq!(all.target(" https://example.com/a?b=c#d ").unwrap().as_str(), "https://example.com/a?b=c");
        assert_eq!(all.target("https://example.com:8443/secret").unwrap().origin(), "https://example.com:8443");
    }

    #[tokio::test]
    async fn a_name_is_checked_when_it_is_resolved() {
        let none = Outgoing::new(false);
        for host in ["localhost", "LOCALHOST"] {
            let target = none.target(&format!("http://{host}:9/")).unwrap();
            let sent = none.post(&target, HeaderMap::new(), Vec::new()).await;
            assert!(matches!(sent, Err(SendError::Refused(Refused::Private))), "{host}: {sent:?}");
        }
    }
}

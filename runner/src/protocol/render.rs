//! Requests as bytes, rendered once before the run.

use url::{Host, Url};

use crate::spec::Requests;

/// Why a request cannot be sent.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum BadRequest {
    #[error("the scheme {0:?} is not http or https")]
    Scheme(String),
    #[error("the URL names no host")]
    Host,
    #[error("{0:?} is not an HTTP method")]
    Method(String),
    #[error("{0:?} is not a header name")]
    HeaderName(String),
    #[error("the value of the header {0} holds a control character")]
    HeaderValue(String),
    #[error("the header {0} is set by plimsoll itself")]
    HeaderReserved(String),
    #[error("there is no request body to send, not even an empty one")]
    NoBody,
}

/// Each body with its head in front.
pub(super) fn render(requests: &Requests, keep_alive: bool) -> Result<Vec<Vec<u8>>, BadRequest> {
    check(requests)?;
    let head = head(requests, keep_alive)?;
    Ok(requests.bodies.iter().map(|body| with_head(&head, &requests.method, body, requests)).collect())
}

/// `host:port` as the host header wants it: the port only when it is not the scheme's own.
fn authority(url: &Url) -> Result<String, BadRequest> {
    let host = match url.host().ok_or(BadRequest::Host)? {
        Host::Ipv6(address) => format!("[{address}]"),
        host => host.to_string(),
    };
    Ok(url.port().map_or_else(|| host.clone(), |port| format!("{host}:{port}")))
}

fn check(requests: &Requests) -> Result<(), BadRequest> {
    if !["http", "https"].contains(&requests.url.scheme()) {
        return Err(BadRequest::Scheme(requests.url.scheme().to_owned()));
    }
    if !is_token(&requests.method) {
        return Err(BadRequest::Method(requests.method.clone()));
    }
    for (name, value) in &requests.headers {
        if !is_token(name) {
            return Err(BadRequest::HeaderName(name.clone()));
        }
        // These decide where a message ends.
        if ["content-length", "transfer-encoding", "connection"].iter().any(|own| name.eq_ignore_ascii_case(own)) {
            return Err(BadRequest::HeaderReserved(name.clone()));
        }
        if value.bytes().any(|b| (b < b' ' && b != b'\t') || b == 0x7f) {
            return Err(BadRequest::HeaderValue(name.clone()));
        }
    }
    if requests.bodies.is_empty() { Err(BadRequest::NoBody) } else { Ok(()) }
}

/// Everything up to the headers that depend on the body.
fn head(requests: &Requests, keep_alive: bool) -> Result<String, BadRequest> {
    let has = |name: &str| requests.headers.iter().any(|(given, _)| given.eq_ignore_ascii_case(name));
    let path = &requests.url[url::Position::BeforePath..url::Position::AfterQuery];
    let mut head = format!("{} {path} HTTP/1.1\r\n", requests.method);
    let mut add = |name: &str, value: &str| head.push_str(&format!("{name}: {value}\r\n"));
    if !has("host") {
        add("host", &authority(&requests.url)?);
    }
    if !has("user-agent") {
        add("user-agent", concat!("plimsoll/", env!("CARGO_PKG_VERSION")));
    }
    if !has("accept") {
        add("accept", "*/*");
    }
    for (name, value) in &requests.headers {
        add(name, value);
    }
    if !keep_alive {
        add("connection", "close");
    }
    Ok(head)
}

fn with_head(head: &str, method: &str, body: &[u8], requests: &Requests) -> Vec<u8> {
    let mut bytes = head.as_bytes().to_vec();
    let typed = requests.headers.iter().any(|(name, _)| name.eq_ignore_ascii_case("content-type"));
    if !body.is_empty() && !typed {
        bytes.extend_from_slice(b"content-type: application/json\r\n");
    }
    // A method that expects a body says that it is empty.
    if !body.is_empty() || ["POST", "PUT", "PATCH"].contains(&method) {
        bytes.extend_from_slice(format!("content-length: {}\r\n", body.len()).as_bytes());
    }
    bytes.extend_from_slice(b"\r\n");
    bytes.extend_from_slice(body);
    bytes
}

fn is_token(text: &str) -> bool {
    !text.is_empty() && text.bytes().all(|b| b.is_ascii_alphanumeric() || b"!#$%&'*+-.^_`|~".contains(&b))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn requests(url: &str, method: &str, headers: &[(&str, &str)], bodies: &[&str]) -> Requests {
        Requests {
            url: url.parse().unwrap(),
            method: method.to_owned(),
            headers: headers.iter().map(|(n, v)| ((*n).to_owned(), (*v).to_owned())).collect(),
            bodies: bodies.iter().map(|body| body.as_bytes().to_vec()).collect(),
        }
    }

    fn text(requests: &Requests, keep_alive: bool) -> Vec<String> {
        let rendered = render(requests, keep_alive).unwrap();
        rendered.into_iter().map(|bytes| String::from_utf8(bytes).unwrap()).collect()
    }

    #[test]
    fn each_body_has_a_complete_head() {
        let headers = [("Authorization", "Bearer x")];
        let sent = text(&requests("http://h:8000/predict?v=2", "POST", &headers, &["{}", ""]), true);
        let common = format!(
            "POST /predict?v=2 HTTP/1.1\r\nhost: h:8000\r\nuser-agent: plimsoll/{}\r\naccept: */*\r\nAuthorization: Bearer x\r\n",
            env!("CARGO_PKG_VERSION")
        );
        assert_eq!(sent[0], format!("{common}content-type: application/json\r\ncontent-length: 2\r\n\r\n{{}}"));
        assert_eq!(sent[1], format!("{common}content-length: 0\r\n\r\n"));
    }

    #[test]
    fn own_headers_win_and_defaults_stay_out() {
        let headers =
            [("Host", "model.internal"), ("user-agent", "x"), ("Accept", "text/plain"), ("content-type", "text/plain")];
        let sent = text(&requests("https://[::1]/", "GET", &headers, &["", "q"]), false);
        assert_eq!(
            sent[0],
            "GET / HTTP/1.1\r\nHost: model.internal\r\nuser-agent: x\r\nAccept: text/plain\r\ncontent-type: text/plain\r\nconnection: close\r\n\r\n"
        );
        assert!(sent[1].ends_with("content-length: 1\r\n\r\nq"));
        assert!(text(&requests("https://[::1]:9/", "GET", &[], &[""]), true)[0].contains("host: [::1]:9\r\n"));
    }

    #[test]
    fn what_would_break_the_message_is_refused() {
        let refuse = |r: Requests| render(&r, true).unwrap_err();
        assert_eq!(refuse(requests("ftp://h/", "GET", &[], &[""])), BadRequest::Scheme("ftp".to_owned()));
        assert_eq!(refuse(requests("http://h/", "GE T", &[], &[""])), BadRequest::Method("GE T".to_owned()));
        let header = |n, v| refuse(requests("http://h/", "GET", &[(n, v)], &[""]));
        assert_eq!(header("a b", "1"), BadRequest::HeaderName("a b".to_owned()));
        assert_eq!(header("a", "1\r\nb: 2"), BadRequest::HeaderValue("a".to_owned()));
        assert_eq!(header("Content-Length", "1"), BadRequest::HeaderReserved("Content-Length".to_owned()));
        assert_eq!(refuse(requests("http://h/", "GET", &[], &[])), BadRequest::NoBody);
    }
}

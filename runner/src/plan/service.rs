//! `[service]`: where and how requests are sent.

use std::collections::BTreeMap;

use plimsoll_domain::plan::Service;
use url::Url;

use super::section::{Field, Section, nearest};
use super::source::PlanError;
use super::{Environment, Overrides};

pub(super) const KEYS: [&str; 6] = ["url", "method", "headers", "connect_timeout", "response_timeout", "keep_alive"];
/// What stands for a secret in reports and on screen.
pub(super) const MASK: &str = "***";

/// The section as the report carries it, and as it goes over the wire.
pub(super) struct Read {
    pub(super) service: Service,
    pub(super) url: Url,
    pub(super) headers: Vec<(String, String)>,
}

/// Reads the section. `has_body` decides the defaults of method and content type.
pub(super) fn read(
    top: &Section,
    has_body: bool,
    given: &Overrides,
    environment: Environment,
) -> Result<Read, PlanError> {
    let section = top.sub("service", &KEYS)?;
    let url = target(&section, given.url.as_deref())?;
    let method = match section.get("method") {
        Some(field) => method(&field, has_body)?,
        None => if has_body { "POST" } else { "GET" }.to_owned(),
    };
    let mut headers = Vec::new();
    let mut shown = BTreeMap::new();
    for field in section.open("headers")?.fields() {
        let name = header_name(&field)?;
        let raw = field.string()?;
        let value = expand(&field, raw, environment)?;
        if shown.insert(name.clone(), masked(&name, raw)).is_some() {
            return Err(field.error("is there twice; names of headers do not tell upper from lower case"));
        }
        headers.push((name, value));
    }
    if has_body && !shown.contains_key(CONTENT_TYPE) {
        shown.insert(CONTENT_TYPE.to_owned(), JSON.to_owned());
        headers.push((CONTENT_TYPE.to_owned(), JSON.to_owned()));
    }
    let timeout =
        |key, default| section.get(key).map_or(Ok(default), |field: Field| field.duration_ms(SHORTEST_TIMEOUT_MS));
    let service = Service {
        origin: url.origin().ascii_serialization(),
        path: url
            .query()
            .map_or_else(|| url.path().to_owned(), |query| format!("{}?{}", url.path(), masked_query(query))),
        method,
        headers: shown,
        connect_timeout_ms: timeout("connect_timeout", 3_000)?,
        response_timeout_ms: timeout("response_timeout", 60_000)?,
        keep_alive: section.get("keep_alive").map_or(Ok(true), |field| field.bool())?,
    };
    Ok(Read { service, url, headers })
}

const CONTENT_TYPE: &str = "content-type";
const JSON: &str = "application/json";
const SHORTEST_TIMEOUT_MS: u64 = 10;
const METHODS: [&str; 5] = ["GET", "POST", "PUT", "PATCH", "DELETE"];
/// The engine writes these itself.
const RESERVED: [&str; 4] = ["content-length", "transfer-encoding", "connection", "expect"];

/// The plan's address, the flag's, or the flag's host with the plan's path.
fn target(section: &Section, flag: Option<&str>) -> Result<Url, PlanError> {
    let planned = |field: &Field| {
        let text = field.string()?;
        address(text).map_err(|why| field.error(why).hint("write \"http://127.0.0.1:8000/predict\""))
    };
    let Some(flag) = flag else {
        return planned(&section.need("url", "\"http://127.0.0.1:8000/predict\"")?);
    };
    let mut url = address(flag).map_err(|why| PlanError::whole(&section.source.path, format!("--url {why}")))?;
    let bare = flag.split_once("://").is_some_and(|(_, rest)| !rest.contains(['/', '?']));
    if bare && let Some(field) = section.get("url") {
        let planned = planned(&field)?;
        url.set_path(planned.path());
        url.set_query(planned.query());
    }
    Ok(url)
}

/// Reads an address to which load may be sent. The error completes a sentence that begins with the value's name.
fn address(text: &str) -> Result<Url, String> {
    if !text.contains("://") {
        return Err("needs a scheme: http:// or https://".to_owned());
    }
    let url = Url::parse(text).map_err(|error| format!("is no address: {error}"))?;
    if !matches!(url.scheme(), "http" | "https") {
        return Err(format!("has the scheme `{}`; plimsoll speaks http and https", url.scheme()));
    }
    if url.host_str().is_none_or(str::is_empty) {
        return Err("names no host".to_owned());
    }
    if !url.username().is_empty() || url.password().is_some() {
        return Err("must not carry a user name or password; send them as a header".to_owned());
    }
    if url.port() == Some(0) {
        return Err("has port 0".to_owned());
    }
    Ok(url)
}

fn method(field: &Field, has_body: bool) -> Result<String, PlanError> {
    let method = field.string()?.to_ascii_uppercase();
    if !METHODS.contains(&method.as_str()) {
        let lower = METHODS.map(str::to_ascii_lowercase);
        let near = nearest(&method, &lower.each_ref().map(String::as_str)).map(str::to_ascii_uppercase);
        let hint =
            near.map_or_else(|| format!("known: {}", METHODS.join(", ")), |near| format!("did you mean {near}?"));
        return Err(field.error(format!("is no method plimsoll sends: {method:?}")).hint(hint));
    }
    if has_body && method == "GET" {
        return Err(field.error("is GET, but [workload] has a body").hint("use POST, or take the body out"));
    }
    Ok(method)
}

fn header_name(field: &Field) -> Result<String, PlanError> {
    let at_key = |why: String| field.source.error(field.key_span.clone(), why);
    let name = field.key.to_ascii_lowercase();
    let token = |c: char| c.is_ascii_alphanumeric() || "!#$%&'*+-.^_`|~".contains(c);
    if name.is_empty() || !name.chars().all(token) {
        return Err(at_key(format!("{:?} is no name of a header", field.key)));
    }
    if RESERVED.contains(&name.as_str()) {
        return Err(at_key(format!("plimsoll writes the header `{name}` itself"))
            .hint("for `connection: close` set keep_alive = false in [service]"));
    }
    Ok(name)
}

/// Replaces each `${NAME}` by the environment's value.
fn expand(field: &Field, raw: &str, environment: Environment) -> Result<String, PlanError> {
    let mut out = String::new();
    let mut rest = raw;
    while let Some(start) = rest.find("${") {
        let (before, after) = (&rest[..start], &rest[start + 2..]);
        let Some(end) = after.find('}') else {
            return Err(field.error("has a `${` without its `}`"));
        };
        let name = &after[..end];
        let value = environment(name).ok_or_else(|| {
            field
                .error(format!("needs the environment variable {name}, which is not set"))
                .hint(format!("export {name}=…"))
        })?;
        out.push_str(before);
        out.push_str(&value);
        rest = &after[end + 1..];
    }
    out.push_str(rest);
    if out.bytes().any(|b| (b < 0x20 && b != b'\t') || b == 0x7f) {
        return Err(field.error("holds a line break or another control character"));
    }
    Ok(out)
}

/// What names of secrets contain.
const SECRET: [&str; 12] =
    ["auth", "jwt", "sign", "session", "secret", "key", "token", "cookie", "password", "passwd", "pwd", "credential"];

fn is_secret(name: &str) -> bool {
    let name = name.to_ascii_lowercase();
    SECRET.iter().any(|word| name.contains(word))
}

/// The value as reports and screens may show it: `${NAME}` stays unexpanded, and of a secret everything else is masked.
fn masked(name: &str, raw: &str) -> String {
    if !is_secret(name) {
        return raw.to_owned();
    }
    let mut out = String::new();
    let mut rest = raw;
    loop {
        let start = rest.find("${").unwrap_or(rest.len());
        if start > 0 {
            out.push_str(MASK);
        }
        // `expand` has found every `${` closed.
        let Some(length) = rest[start..].find('}') else { return out };
        out.push_str(&rest[start..=start + length]);
        rest = &rest[start + length + 1..];
    }
}

/// The query with the values of its secrets masked.
fn masked_query(query: &str) -> String {
    let parameters = query.split('&').map(|parameter| match parameter.split_once('=') {
        Some((name, _)) if url::form_urlencoded::parse(name.as_bytes()).any(|(name, _)| is_secret(&name)) => {
            format!("{name}={MASK}")
        }
        _ => parameter.to_owned(),
    });
    parameters.collect::<Vec<_>>().join("&")
}

impl std::fmt::Debug for Read {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{:?}", self.service)
    }
}
